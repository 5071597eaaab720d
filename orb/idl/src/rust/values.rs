//! Value types: the trait of a value, the struct of its state, and their encoding.
//!
//! A value type `Circle` becomes `trait Circle`, whose methods are its public members and its operations, and
//! `struct CircleState`. A value without operations is its state. For other values users implement the trait,
//! and register a function that makes values from states. A position of the type is `Option<ValueRef<dyn
//! Circle>>`.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::method::{self, Method};
use super::types::{Passing, Scope};
use super::value_links::{concrete_base, is_plain, lineage, supported, truncatable_ids};
use super::{docs, errors, lints, scope, typed};
use crate::model::{DefId, Definition, Factory, Member, StateMember, Type, ValueType};

/// The code of a value type, without the module of its nested definitions.
pub(super) fn value(scope: Scope<'_, '_>, definition: &Definition, body: &ValueType) -> TokenStream {
    let declared = declaration(scope, definition, body);
    let bases = upcasts(scope, definition);
    let (kind, typed) = (kind(scope, definition.id), typed::value(scope, definition, body));
    if body.is_abstract || body.forward_only {
        let errors = errors::enums(scope, definition.id);
        return quote! { #declared #kind #typed #bases #errors };
    }
    let state = state(scope, definition, body);
    let concrete = concrete(scope, definition, body);
    let plain = is_plain(scope.cx.model, definition.id).then(|| plain(scope, definition, body));
    let initializers = initializers(scope, definition, body);
    let errors = errors::enums(scope, definition.id);
    quote! { #declared #state #kind #typed #concrete #bases #plain #initializers #errors }
}

/// The aliases of the errors of its operations and initializers, for its module.
pub(super) fn own_errors(scope: Scope<'_, '_>, definition: &Definition, body: &ValueType) -> TokenStream {
    let methods = method::own(scope.cx, definition.id).into_iter();
    let initializers = body.factories.iter().zip(&scope.cx.names.value(definition.id).initializers);
    let initializers = initializers.map(|(factory, (ident, error))| Method {
        owner: definition.id,
        ident: ident.clone(),
        operation: factory.name.clone(),
        oneway: false,
        doc: &factory.doc,
        parameters: Vec::new(),
        result: None,
        raises: &factory.raises,
        error: error.clone(),
        context: None,
        locals: scope::Scope::default(),
    });
    methods.chain(initializers).filter_map(|method| errors::alias(scope, &method)).collect()
}

fn declaration(scope: Scope<'_, '_>, definition: &Definition, body: &ValueType) -> TokenStream {
    let rt = scope.rt();
    let cx = scope.cx;
    let (ident, names) = (&cx.names.place(definition.id).ident, cx.names.value(definition.id));
    let doc = docs::attributes(&definition.doc);
    let mut supertraits: Vec<TokenStream> = body.bases.iter().map(|&base| scope.path(base)).collect();
    if supertraits.is_empty() {
        supertraits.push(quote! { #rt::ValueBase });
    }
    supertraits.extend(body.supports.iter().map(|&interface| servant(scope, interface)));
    let methods = method::own(cx, definition.id);
    let methods = methods.iter().map(|method| {
        let (doc, signature) = (method.docs(), method.signature(scope, &method.ident));
        quote! { #doc #signature; }
    });
    let stateful = (!body.is_abstract && !body.forward_only).then(|| {
        let (state, method) = (&names.state, &names.state_method);
        let members = body.members.iter().zip(names.accessors.iter().zip(fields(body).0));
        let accessors = members
            .filter(|(member, _)| member.is_public)
            .map(|(member, (ident, field))| accessor(scope, member, ident, quote! { self.#method().#field }));
        quote! {
            #[doc = " Its members with those of its bases."]
            fn #method(&self) -> &#state;
            #( #accessors )*
        }
    });
    let marshal = names.marshal.as_ref().map(|marshal| {
        let own = " Writes the state, which a function registered with `custom_factory` reads.";
        quote! {
            #[doc = #own]
            fn #marshal<'a>(&'a self, out: &mut #rt::Encoder<'a>) -> Result<(), #rt::CdrError>;
        }
    });
    quote! { #doc pub trait #ident: #( #supertraits )+* { #stateful #( #methods )* #marshal } }
}

/// The method that returns a public member.
fn accessor(scope: Scope<'_, '_>, member: &StateMember, ident: &Ident, field_value: TokenStream) -> TokenStream {
    let doc = docs::attributes(&member.member.doc);
    let ty = &member.member.ty;
    if scope.cx.values.holds_values(scope.cx.model, ty) {
        let owned = scope.owned(ty);
        return quote! { #doc fn #ident(&self) -> #owned { #field_value.get() } };
    }
    let (result, field_value) = match scope.cx.passing(ty) {
        Passing::Value => (scope.owned(ty), field_value),
        Passing::Reference => (scope.argument(ty), quote! { #field_value.as_ref() }),
        Passing::Text | Passing::WideText | Passing::Slice | Passing::Borrowed => {
            (scope.argument(ty), quote! { &#field_value })
        }
    };
    quote! { #doc fn #ident(&self) -> #result { #field_value } }
}

/// The field names of the state, and the one for the base's state.
fn fields(body: &ValueType) -> (Vec<Ident>, Ident) {
    let mut scope = scope::Scope::default();
    let fields = super::names::fields_in(&mut scope, body.members.iter().map(|state| &state.member));
    (fields, scope.take("base"))
}

fn field_type(scope: Scope<'_, '_>, member: &Member) -> TokenStream {
    let (rt, owned) = (scope.rt(), scope.owned(&member.ty));
    if scope.cx.values.holds_values(scope.cx.model, &member.ty) {
        quote! { #rt::Linked<#owned> }
    } else {
        owned
    }
}

fn state(scope: Scope<'_, '_>, definition: &Definition, body: &ValueType) -> TokenStream {
    let rt = scope.rt();
    let cx = scope.cx;
    let ident = &cx.names.value(definition.id).state;
    let doc = format!(" The members of a `{}`, private ones too.", definition.scoped_name);
    let derive = cx.traits.of_value(cx.model, definition.id).derive();
    let (fields, base_field) = fields(body);
    let types: Vec<TokenStream> = body.members.iter().map(|state| field_type(scope, &state.member)).collect();
    let members = body.members.iter().zip(fields.iter().zip(&types)).map(|(member, (field, ty))| {
        lints::allow_complex(cx, &member.member.ty, 1);
        let doc = docs::attributes(&member.member.doc);
        quote! { #doc pub #field: #ty }
    });
    let base = concrete_base(cx.model, body).map(|base| scope.beside(base, &cx.names.value(base).state));
    let inherited = base.iter().map(|base| quote! { #[doc = " The members of its base."] pub #base_field: #base });
    let all: Vec<&Ident> = base.iter().map(|_| &base_field).chain(&fields).collect();
    let all_types: Vec<TokenStream> = base.iter().chain(&types).cloned().collect();
    let encode = super::steps::sequence(&all, |field| quote! { #rt::Encode::encode(&self.#field, out) });
    let name = |plain: &str| super::names::own(&format!("{}{plain}", if all.is_empty() { "_" } else { "" }));
    let (out, input) = (name("out"), name("input"));
    let least = super::structs::min_octets(scope, &all_types);
    quote! {
        #[doc = #doc]
        #derive
        pub struct #ident { #( #inherited, )* #( #members ),* }
        impl #rt::Encode for #ident {
            fn encode<'a>(&'a self, #out: &mut #rt::Encoder<'a>) -> Result<(), #rt::CdrError> {
                #encode
            }
        }
        impl #rt::Decode for #ident {
            const MIN_OCTETS: usize = #least;
            fn decode(#input: &mut #rt::Decoder<'_>) -> Result<Self, #rt::CdrError> {
                Ok(Self { #( #all: #rt::Decode::decode(input)? ),* })
            }
        }
    }
}

/// The possible values at a position of the type: for a value type, or an abstract interface.
pub(super) fn kind(scope: Scope<'_, '_>, id: DefId) -> TokenStream {
    let rt = scope.rt();
    let cx = scope.cx;
    let abstraction = interface_or_value(scope, id);
    let repository_id = &cx.model[id].repository_id;
    let plain_values: Vec<DefId> = cx.values.plain(id).iter().copied().filter(|id| !cx.left_out.contains(id)).collect();
    let arms = plain_values.iter().map(|&id| {
        let (repository_id, target) = (&cx.model[id].repository_id, scope.target(&Type::Named(id)));
        quote! { #repository_id => Some(&#rt::PlainFactory::<#target>::NEW), }
    });
    let factories = (!plain_values.is_empty()).then(|| {
        quote! {
            fn known(repository_id: &str) -> Option<&'static dyn #rt::ValueFactory> {
                match repository_id { #( #arms )* _ => None, }
            }
        }
    });
    quote! {
        impl #rt::ValueType for #abstraction {
            const REPOSITORY_ID: &'static str = #repository_id;
            #factories
        }
    }
}

fn servant(scope: Scope<'_, '_>, interface: DefId) -> TokenStream {
    scope.beside(interface, &scope.cx.names.interface(interface).servant)
}

/// `dyn` with the trait of a value type, or with the servant trait of an interface.
fn interface_or_value(scope: Scope<'_, '_>, id: DefId) -> TokenStream {
    let path = servant(scope, id);
    quote! { dyn #path }
}

fn concrete(scope: Scope<'_, '_>, definition: &Definition, body: &ValueType) -> TokenStream {
    let rt = scope.rt();
    let cx = scope.cx;
    let (ident, names) = (&cx.names.place(definition.id).ident, cx.names.value(definition.id));
    let (state, implementation) = (&names.state, &cx.implementation);
    let ids = truncatable_ids(cx.model, definition.id);
    let custom = body.is_custom.then(|| quote! { const IS_CUSTOM: bool = true; });
    let forms = lineage(cx.model, definition.id).into_iter().chain([definition.id]);
    let forms = forms.map(|id| interface_or_value(scope, id));
    let method = &names.state_method;
    let encode = match &names.marshal {
        Some(marshal) => quote! { #ident::#marshal(value, out) },
        None => quote! { #rt::Encode::encode(#ident::#method(value), out) },
    };
    quote! {
        impl #rt::ConcreteValue for dyn #ident {
            type State = #state;
            const IDS: &'static [&'static str] = &[ #( #ids ),* ];
            #custom
        }
        impl<#implementation: #ident> #rt::ImplementedBy<#implementation> for dyn #ident {
            fn offer(value: &#rt::Arc<#implementation>, cast: &mut #rt::Cast<'_>) {
                #( cast.offer::<#forms>(|| <#rt::Arc<#implementation> as ::std::clone::Clone>::clone(value)); )*
            }
            fn encode_state<'a>(
                value: &'a #implementation,
                out: &mut #rt::Encoder<'a>,
            ) -> Result<(), #rt::CdrError> {
                #encode
            }
        }
    }
}

/// The conversions to each base, and to each supported interface.
fn upcasts(scope: Scope<'_, '_>, definition: &Definition) -> TokenStream {
    let rt = scope.rt();
    let ident = &scope.cx.names.place(definition.id).ident;
    let forms = lineage(scope.cx.model, definition.id).into_iter().map(|id| interface_or_value(scope, id));
    let forms = forms.chain([quote! { dyn #rt::ValueBase }]);
    let upcasts = forms.map(|form| {
        quote! {
            impl #rt::IsA<#form> for dyn #ident {
                fn upcast(value: #rt::Arc<Self>) -> #rt::Arc<#form> {
                    value
                }
            }
        }
    });
    upcasts.collect()
}

/// A value without operations is its state.
fn plain(scope: Scope<'_, '_>, definition: &Definition, body: &ValueType) -> TokenStream {
    let cx = scope.cx;
    let state = &cx.names.value(definition.id).state;
    let mut states = vec![(definition.id, quote! { self })];
    let (mut here, mut base_state) = (body, quote! { self });
    while let Some(base) = concrete_base(cx.model, here) {
        let field = fields(here).1;
        base_state = quote! { #base_state.#field };
        states.push((base, quote! { &#base_state }));
        let Some(next) = cx.model[base].as_value_type() else { break };
        here = next;
    }
    let traits = lineage(cx.model, definition.id).into_iter().chain([definition.id]);
    debug_assert!(supported(cx.model, definition.id).is_empty(), "a plain value supports nothing");
    let traits = traits.map(|id| {
        let path = scope.path(id);
        let method = states.iter().find(|(state_owner, _)| *state_owner == id).map(|(_, base_state)| {
            let names = cx.names.value(id);
            let (method, result) = (&names.state_method, scope.beside(id, &names.state));
            quote! { fn #method(&self) -> &#result { #base_state } }
        });
        quote! { impl #path for #state { #method } }
    });
    traits.collect()
}

/// The initializers: constructors for programs that do not know the implementing type.
fn initializers(scope: Scope<'_, '_>, definition: &Definition, body: &ValueType) -> Option<TokenStream> {
    let rt = scope.rt();
    let cx = scope.cx;
    let names = cx.names.value(definition.id);
    if body.factories.is_empty() {
        return None;
    }
    let (ident, factory) = (&cx.names.place(definition.id).ident, &names.factory);
    let doc = format!(" The initializers of `{}`, implemented by a factory of values.", definition.scoped_name);
    let methods = body.factories.iter().zip(&names.initializers).map(|(initializer, (method, error))| {
        let Factory { parameters, doc, raises, .. } = initializer;
        let (idents, _) = super::names::parameters(parameters);
        let doc = docs::attributes(doc);
        let types = parameters.iter().map(|parameter| scope.argument(&parameter.ty));
        let error = match error {
            Some(error) => scope.within(definition.id, error),
            None => quote! { #rt::SystemException },
        };
        lints::allow_large_errors(cx, raises);
        super::method::allow_name(cx, method);
        if parameters.len() > 6 {
            cx.allow("clippy::too_many_arguments");
        }
        quote! { #doc fn #method(&self, #( #idents: #types ),*) -> Result<#rt::ValueRef<dyn #ident>, #error>; }
    });
    Some(quote! { #[doc = #doc] pub trait #factory { #( #methods )* } })
}
