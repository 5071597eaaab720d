//! Type codes: the description of a type that an `any` carries.
//!
//! Each generated type implements `Typed`; a typedef, which is not a distinct type in Rust, has a function
//! beside it. Both create the type code once and keep it. The runtime's macros write the implementation; those of
//! structs, exceptions and enums do so beside the codec.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::labels;
use super::names;
use super::types::Scope;
use super::value_links::concrete_base;
use crate::model::{Definition, DefinitionKind, Interface, Label, Member, Type, Typedef, Union, ValueBox, ValueType};

/// The members of a struct or exception as the runtime's macros take them: `id: Istring as "id" = istring_tc`.
/// The type code is left out where it is that of the Rust type.
pub(super) fn members(scope: Scope<'_, '_>, members: &[Member]) -> Vec<TokenStream> {
    let fields = names::fields(members);
    let members = fields.iter().zip(members).map(|(field, member)| {
        let (ty, name, code) = (scope.owned(&member.ty), &member.name, distinct(scope, &member.ty));
        quote! { #field: #ty as #name #code }
    });
    members.collect()
}

/// `= type_code`, unless the type code is that of the Rust type.
fn distinct(scope: Scope<'_, '_>, ty: &Type) -> Option<TokenStream> {
    let is_distinct = !is_implied(scope, ty);
    is_distinct.then(|| {
        let code = function(scope, ty);
        quote! { = #code }
    })
}

/// Whether the Rust type has the type code of the IDL type: aliases are the same type in Rust, native types,
/// abstract bases and local objects have the form of others.
fn is_implied(scope: Scope<'_, '_>, ty: &Type) -> bool {
    match ty {
        Type::Sequence { element, .. } | Type::Array { element, .. } => is_implied(scope, element),
        Type::Named(id) => match &scope.cx.model[*id].kind {
            DefinitionKind::Typedef(_) | DefinitionKind::Native => false,
            DefinitionKind::Interface(_) => !scope.cx.is_local(*id),
            _ => true,
        },
        Type::AbstractBase => false,
        _ => true,
    }
}

/// `Typed` for a union. A branch with several labels gives several members (CORBA 3.3 Part 1, 8.11.2).
pub(super) fn union(scope: Scope<'_, '_>, definition: &Definition, body: &Union) -> TokenStream {
    let (rt, id, name) = (scope.rt(), &definition.repository_id, &definition.name);
    let discriminator = type_code(scope, &body.discriminator);
    let labelled = body.branches.iter().flat_map(|branch| branch.labels.iter().map(move |label| (label, branch)));
    let members = labelled.map(|(label, branch)| {
        let label = match label {
            Label::Default => quote! { Default },
            label => {
                let number = labels::number(scope.cx.model, label).unwrap_or(0);
                let number = Literal::i128_unsuffixed(number);
                quote! { Value(#number) }
            }
        };
        let (name, ty) = (&branch.member.name, type_code(scope, &branch.member.ty));
        quote! { (#rt::Label::#label, #name, #ty) }
    });
    recursive(scope, definition, &quote! { #rt::TypeCode::union(#id, #name, &#discriminator, &[ #( #members ),* ]) })
}

/// `Typed` for a local interface: for the trait of its objects.
pub(super) fn local_interface(scope: Scope<'_, '_>, definition: &Definition) -> TokenStream {
    let (rt, id, name) = (scope.rt(), &definition.repository_id, &definition.name);
    let target = scope.target(&Type::Named(definition.id));
    quote! { #rt::typed! { #target => #rt::TypeCode::local_interface(#id, #name) } }
}

/// The constructor of a reference's type code.
pub(super) fn reference_kind(body: &Interface) -> TokenStream {
    if body.is_abstract {
        quote! { abstract_interface }
    } else {
        quote! { object_reference }
    }
}

/// `Typed` for a value type: for its trait.
pub(super) fn value(scope: Scope<'_, '_>, definition: &Definition, body: &ValueType) -> TokenStream {
    let (rt, id, name) = (scope.rt(), &definition.repository_id, &definition.name);
    let modifier = match body {
        ValueType { is_custom: true, .. } => quote! { Custom },
        ValueType { is_abstract: true, .. } => quote! { Abstract },
        ValueType { is_truncatable: true, .. } => quote! { Truncatable },
        _ => quote! { None },
    };
    let base = match concrete_base(scope.cx.model, body) {
        Some(base) => {
            let base = typed(scope, &Type::Named(base));
            quote! { Some(&#base) }
        }
        None => quote! { None },
    };
    let members = body.members.iter().map(|state| {
        let (name, ty) = (&state.member.name, type_code(scope, &state.member.ty));
        let visibility = if state.is_public {
            quote! { Public }
        } else {
            quote! { Private }
        };
        quote! { (#name, #ty, #rt::Visibility::#visibility) }
    });
    let members = list(members, &quote! { (&str, #rt::TypeCode, #rt::Visibility) });
    let type_code = quote! { #rt::TypeCode::value(#id, #name, #rt::ValueModifier::#modifier, #base, #members) };
    recursive(scope, definition, &type_code)
}

/// `Typed` for a boxed value.
pub(super) fn value_box(scope: Scope<'_, '_>, definition: &Definition, body: &ValueBox) -> TokenStream {
    let (rt, id, name) = (scope.rt(), &definition.repository_id, &definition.name);
    let content = type_code(scope, &body.ty);
    recursive(scope, definition, &quote! { #rt::TypeCode::value_box(#id, #name, &#content) })
}

/// The functions beside a typedef: its type code, and an `any` of it from the Rust type `any`.
pub(super) fn typedef(
    scope: Scope<'_, '_>,
    definition: &Definition,
    body: &Typedef,
    any: Option<&TokenStream>,
) -> TokenStream {
    let (rt, id, name) = (scope.rt(), &definition.repository_id, &definition.name);
    let names = &scope.cx.names;
    let function = names.type_code(definition.id);
    let any = any.map(|value| {
        let function = names.any_function(definition.id);
        quote! { #function(#value), }
    });
    let (ty, code) = (scope.owned(&body.ty), distinct(scope, &body.ty));
    let contents = quote! { #function, #any #id, #name, #ty #code };
    match scope.module.is_empty() {
        true => quote! { #rt::root_alias! { #contents } },
        false => quote! { #rt::alias! { #contents } },
    }
}

/// The function that returns the type code of a type.
fn function(scope: Scope<'_, '_>, ty: &Type) -> TokenStream {
    match ty {
        Type::Named(id) if matches!(scope.cx.model[*id].kind, DefinitionKind::Typedef(_)) => {
            scope.beside(*id, scope.cx.names.type_code(*id))
        }
        Type::Named(id) if !matches!(scope.cx.model[*id].kind, DefinitionKind::Native) => typed_function(scope, ty),
        Type::Sequence { .. } | Type::Array { .. } | Type::Named(_) => {
            let code = type_code(scope, ty);
            quote! { || #code }
        }
        Type::Object => {
            let rt = scope.rt();
            quote! { #rt::TypeCode::object }
        }
        Type::AbstractBase => {
            let rt = scope.rt();
            quote! { #rt::TypeCode::abstract_base }
        }
        _ => typed_function(scope, ty),
    }
}

/// The type code of a type, as an expression.
fn type_code(scope: Scope<'_, '_>, ty: &Type) -> TokenStream {
    let rt = scope.rt();
    match ty {
        Type::Sequence { element, bound } => {
            let (element, bound) = (type_code(scope, element), Literal::u32_unsuffixed(bound.unwrap_or(0)));
            quote! { #rt::sequence_code(&#element, #bound) }
        }
        Type::Array { element, dimensions } => {
            dimensions.iter().rev().fold(type_code(scope, element), |element, &len| {
                let len = Literal::u32_unsuffixed(len);
                quote! { #rt::array_code(&#element, #len) }
            })
        }
        Type::Object => quote! { #rt::TypeCode::object() },
        Type::AbstractBase => quote! { #rt::TypeCode::abstract_base() },
        Type::Named(id) => {
            let definition = &scope.cx.model[*id];
            match &definition.kind {
                DefinitionKind::Typedef(_) => {
                    let function = function(scope, ty);
                    quote! { #function() }
                }
                DefinitionKind::Native => {
                    let (id, name) = (&definition.repository_id, &definition.name);
                    quote! { #rt::native_code(#id, #name) }
                }
                _ => typed(scope, ty),
            }
        }
        _ => typed(scope, ty),
    }
}

fn typed(scope: Scope<'_, '_>, ty: &Type) -> TokenStream {
    let function = typed_function(scope, ty);
    quote! { #function() }
}

fn typed_function(scope: Scope<'_, '_>, ty: &Type) -> TokenStream {
    let (rt, target) = (scope.rt(), scope.target(ty));
    quote! { <#target as #rt::Typed>::type_code }
}

/// A slice; an empty one has its element type written out.
fn list(items: impl Iterator<Item = TokenStream>, element: &TokenStream) -> TokenStream {
    let items: Vec<TokenStream> = items.collect();
    if items.is_empty() {
        quote! { &[] as &[#element] }
    } else {
        quote! { &[ #( #items ),* ] }
    }
}

/// For types whose members may refer to the type itself.
fn recursive(scope: Scope<'_, '_>, definition: &Definition, type_code: &TokenStream) -> TokenStream {
    let (rt, id) = (scope.rt(), &definition.repository_id);
    let target = scope.target(&Type::Named(definition.id));
    quote! { #rt::typed! { #target, #id => #type_code } }
}
