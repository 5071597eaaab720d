//! Client side of an interface: a typed object reference whose methods invoke.
//!
//! `narrow` itself is in `object` of `spandrel-orb`.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::arguments::{decode, encode, wide};
use super::interpreted::operations;
use super::method::{self, Method, tuple};
use super::scope;
use super::types::Scope;
use super::{Sides, ami, asynchronous, collocation, docs, typed};
use crate::model::{Definition, Interface, ParameterMode};

/// The reference type of an interface.
pub(super) fn reference(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let rt = scope.rt();
    let ident = &scope.cx.names.place(definition.id).ident;
    let doc = docs::or(&definition.doc, || format!(" A reference to a `{}`.", definition.scoped_name));
    let methods = matches!(scope.cx.sides, Sides::Both | Sides::Client).then(|| methods(scope, definition));
    let conversions = conversions(scope, definition, body);
    let repository_id = &definition.repository_id;
    let typed = typed::interface(scope, definition, body);
    quote! {
        #doc
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct #ident(#rt::ObjectRef);
        impl #rt::Interface for #ident {
            const REPOSITORY_ID: &'static str = #repository_id;
            #[inline]
            fn from_object(object: #rt::ObjectRef) -> Self {
                Self(object)
            }
            #[inline]
            fn as_object(&self) -> &#rt::ObjectRef {
                &self.0
            }
        }
        impl #rt::Reference for #ident {
            #[inline]
            fn ior(&self) -> &#rt::Ior {
                #rt::Reference::ior(&self.0)
            }
        }
        impl #rt::FromBound for #ident {
            fn from_bound(bound: #rt::Arc<dyn ::std::any::Any + Send + Sync>) -> Result<Self, #rt::CdrError> {
                #rt::FromBound::from_bound(bound).map(Self)
            }
        }
        impl #ident {
            #[doc = " Narrows a reference; calls the object unless the reference names this interface. BAD_PARAM if the object lacks it."]
            pub fn narrow(object: &#rt::ObjectRef) -> Result<Self, #rt::SystemException> {
                object.narrow()
            }
            #[doc = " Narrows a reference without a check that the object has this interface."]
            pub fn unchecked_narrow(object: &#rt::ObjectRef) -> Self {
                object.unchecked_narrow()
            }
            #[doc = " The untyped reference."]
            #[inline]
            pub fn as_object(&self) -> &#rt::ObjectRef {
                &self.0
            }
            #methods
        }
        #conversions
        #typed
    }
}

/// Widening conversions: to each base, and to the untyped reference.
fn conversions(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let rt = scope.rt();
    let ident = &scope.cx.names.place(definition.id).ident;
    let bases = body.all_bases.iter().map(|&base| {
        let base = scope.path(base);
        quote! {
            impl From<#ident> for #base {
                fn from(reference: #ident) -> Self {
                    #rt::Interface::from_object(reference.0)
                }
            }
        }
    });
    quote! {
        impl From<#ident> for #rt::ObjectRef {
            fn from(reference: #ident) -> Self {
                reference.0
            }
        }
        #( #bases )*
    }
}

fn methods(scope: Scope<'_, '_>, definition: &Definition) -> TokenStream {
    // Unrelated bases may have methods with the same Rust name.
    let mut taken = scope::Scope::default();
    let flattened = method::flattened(scope.cx, definition.id);
    let named: Vec<_> = flattened.into_iter().map(|method| (taken.take_ident(&method.ident), method)).collect();
    let methods = named.iter().map(|(ident, method)| {
        let (doc, signature) = (method.docs(), method.signature(scope, ident));
        let (attempt, body) = (collocation::attempt(scope, method), invocation(scope, method));
        quote! { #doc pub #signature { #attempt #body } }
    });
    let methods: TokenStream = methods.collect();
    let asynchronous = scope.cx.asynchronous.client.then(|| asynchronous::methods(scope, &named, &mut taken));
    let ami = scope.cx.asynchronous.ami.then(|| ami::senders(scope, definition.id, &named, &mut taken));
    quote! { #methods #asynchronous #ami }
}

fn invocation(scope: Scope<'_, '_>, method: &Method<'_>) -> TokenStream {
    if operations::goes_by_tables(scope, method) {
        return operations::stub(scope, method);
    }
    let operation = &method.operation;
    let (wide, encode) = (wide(scope, method), encode(scope, method, false));
    if method.oneway {
        return quote! { #wide self.0.send_oneway(#operation, #encode) };
    }
    let decode = decode(scope, method);
    let store = store(method);
    quote! { #wide self.0.invoke(#operation, #encode, #decode) #store }
}

/// The code after a successful call that stores the values of `inout` parameters.
fn store(method: &Method<'_>) -> Option<TokenStream> {
    if method.parameters.iter().all(|parameter| parameter.mode != ParameterMode::InOut) {
        return None;
    }
    let mut locals = method.locals.clone();
    let result = method.result.map(|_| locals.take("result"));
    let mut received: Vec<Ident> = result.iter().cloned().collect();
    let mut kept = received.clone();
    let mut stores = Vec::new();
    for parameter in method.parameters.iter().filter(|parameter| parameter.is_returned()) {
        let ident = &parameter.ident;
        if parameter.mode == ParameterMode::Out {
            received.push(ident.clone());
            kept.push(ident.clone());
        } else {
            let value = locals.take(&format!("new_{}", scope::plain(ident)));
            stores.push(quote! { *#ident = #value; });
            received.push(value);
        }
    }
    let received = tuple(&received);
    let kept = (!kept.is_empty()).then(|| tuple(&kept));
    Some(quote! { .map(|#received| { #( #stores )* #kept }) })
}
