//! Type codes: the description of a type that an `any` carries.
//!
//! Each generated type implements `Typed`; a typedef, which is not a distinct type in Rust, has a function
//! beside it. Both create the type code once and keep it.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::labels;
use super::types::Scope;
use super::value_links::concrete_base;
use crate::model::{
    Definition, DefinitionKind, Enum, Interface, Label, Member, Struct, Type, Typedef, Union, ValueBox, ValueType,
};

/// `Typed` for a struct.
pub(super) fn structure(scope: Scope<'_, '_>, definition: &Definition, body: &Struct) -> TokenStream {
    composed(scope, definition, &body.members, &quote! { structure })
}

/// `Typed` for an exception.
pub(super) fn exception(scope: Scope<'_, '_>, definition: &Definition, body: &Struct) -> TokenStream {
    composed(scope, definition, &body.members, &quote! { exception })
}

fn composed(scope: Scope<'_, '_>, definition: &Definition, members: &[Member], builder: &TokenStream) -> TokenStream {
    let (rt, id, name) = (scope.rt(), &definition.repository_id, &definition.name);
    let members = members.iter().map(|member| {
        let (name, ty) = (&member.name, type_code(scope, &member.ty));
        quote! { (#name, #ty) }
    });
    let members = list(members, &quote! { (&str, #rt::TypeCode) });
    recursive(scope, definition, &quote! { #rt::TypeCode::#builder(#id, #name, #members) })
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

/// `Typed` for an enum.
pub(super) fn enumeration(scope: Scope<'_, '_>, definition: &Definition, body: &Enum) -> TokenStream {
    let (rt, id, name) = (scope.rt(), &definition.repository_id, &definition.name);
    let enumerators = body.enumerators.iter().map(|&id| &scope.cx.model[id].name);
    let made = quote! { #rt::TypeCode::enumeration(#id, #name, &[ #( #enumerators ),* ]) };
    implementation(scope, definition, &quote! { TYPE.type_code(|| #made) })
}

/// `Typed` for an interface: for its reference, or the trait of local objects.
pub(super) fn interface(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let (rt, id, name) = (scope.rt(), &definition.repository_id, &definition.name);
    let builder = if scope.cx.is_local(definition.id) {
        quote! { local_interface }
    } else if body.is_abstract {
        quote! { abstract_interface }
    } else {
        quote! { object_reference }
    };
    implementation(scope, definition, &quote! { TYPE.type_code(|| #rt::TypeCode::#builder(#id, #name)) })
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
    let made = quote! { #rt::TypeCode::value(#id, #name, #rt::ValueModifier::#modifier, #base, #members) };
    recursive(scope, definition, &made)
}

/// `Typed` for a boxed value.
pub(super) fn value_box(scope: Scope<'_, '_>, definition: &Definition, body: &ValueBox) -> TokenStream {
    let (rt, id, name) = (scope.rt(), &definition.repository_id, &definition.name);
    let content = type_code(scope, &body.ty);
    recursive(scope, definition, &quote! { #rt::TypeCode::value_box(#id, #name, &#content) })
}

/// The function beside a typedef.
pub(super) fn typedef(scope: Scope<'_, '_>, definition: &Definition, body: &Typedef) -> TokenStream {
    let (rt, id, name) = (scope.rt(), &definition.repository_id, &definition.name);
    let function = scope.cx.names.type_code(definition.id);
    let content = type_code(scope, &body.ty);
    let doc =
        format!(" The type code of the alias `{}`, distinct from that of the aliased type.", definition.scoped_name);
    quote! {
        #[doc = #doc]
        pub fn #function() -> #rt::TypeCode {
            static TYPE: #rt::Defining = #rt::Defining::new();
            TYPE.type_code(|| #rt::TypeCode::alias(#id, #name, &#content))
        }
    }
}

/// The type code of a type, as an expression that may use `?`.
fn type_code(scope: Scope<'_, '_>, ty: &Type) -> TokenStream {
    let rt = scope.rt();
    match ty {
        Type::Sequence { element, bound } => {
            let (element, bound) = (type_code(scope, element), Literal::u32_unsuffixed(bound.unwrap_or(0)));
            quote! { #rt::TypeCode::sequence(&#element, #bound)? }
        }
        Type::Array { element, dimensions } => {
            dimensions.iter().rev().fold(type_code(scope, element), |element, &len| {
                let len = Literal::u32_unsuffixed(len);
                quote! { #rt::TypeCode::array(&#element, #len)? }
            })
        }
        Type::Object => quote! { #rt::TypeCode::object() },
        Type::AbstractBase => quote! { #rt::TypeCode::abstract_base() },
        Type::Named(id) => {
            let definition = &scope.cx.model[*id];
            match &definition.kind {
                DefinitionKind::Typedef(_) => {
                    let function = scope.beside(*id, scope.cx.names.type_code(*id));
                    quote! { #function() }
                }
                DefinitionKind::Native => {
                    let (id, name) = (&definition.repository_id, &definition.name);
                    quote! { #rt::TypeCode::native(#id, #name)? }
                }
                _ => typed(scope, ty),
            }
        }
        _ => typed(scope, ty),
    }
}

fn typed(scope: Scope<'_, '_>, ty: &Type) -> TokenStream {
    let (rt, target) = (scope.rt(), scope.target(ty));
    quote! { <#target as #rt::Typed>::type_code() }
}

/// A slice; an empty one has its element type written out.
fn list(items: impl Iterator<Item = TokenStream>, of: &TokenStream) -> TokenStream {
    let items: Vec<TokenStream> = items.collect();
    if items.is_empty() {
        quote! { &[] as &[#of] }
    } else {
        quote! { &[ #( #items ),* ] }
    }
}

/// For types whose members may refer to the type itself.
fn recursive(scope: Scope<'_, '_>, definition: &Definition, made: &TokenStream) -> TokenStream {
    let id = &definition.repository_id;
    implementation(scope, definition, &quote! { TYPE.recursive(#id, || #made) })
}

fn implementation(scope: Scope<'_, '_>, definition: &Definition, body: &TokenStream) -> TokenStream {
    let rt = scope.rt();
    let target = scope.target(&Type::Named(definition.id));
    quote! {
        impl #rt::Typed for #target {
            fn type_code() -> #rt::TypeCode {
                static TYPE: #rt::Defining = #rt::Defining::new();
                #body
            }
        }
    }
}
