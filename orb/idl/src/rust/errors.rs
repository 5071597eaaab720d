//! The errors of an operation: the exceptions that it raises, and system exceptions.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::engines::Engine;
use super::method::Method;
use super::prelude;
use super::scope;
use super::types::Scope;

/// The error enum of an operation, in its interface's module.
pub(super) fn error(scope: Scope<'_, '_>, method: &Method<'_>) -> Option<TokenStream> {
    let name = method.error.as_ref()?;
    let rt = scope.rt();
    let cx = scope.cx;
    let mut taken = scope::Scope::reserving(&["System"]);
    let variants: Vec<Ident> =
        method.raises.iter().map(|&id| taken.take(prelude::plain(&cx.names.place(id).ident.to_string()))).collect();
    let types: Vec<TokenStream> = method.raises.iter().map(|&id| scope.path(id)).collect();
    let docs = method.raises.iter().map(|&id| format!(" The exception `{}`.", cx.model[id].scoped_name));
    let doc = format!(" The errors of `{}`.", method.operation);
    let is_equal = method.raises.iter().all(|&id| cx.traits.of_definition(cx.model, id).has_partial_eq());
    let partial_eq = is_equal.then(|| quote! { , PartialEq });
    let is_local = cx.is_local(method.owner);
    let codec = (!is_local).then(|| codec(scope, method, name, &variants, &types));
    Some(quote! {
        #[doc = #doc]
        #[derive(Clone, Debug #partial_eq)]
        pub enum #name {
            #( #[doc = #docs] #variants(#types), )*
            #[doc = " A system exception: the request failed in transit, or in an ORB."]
            System(#rt::SystemException),
        }
        impl ::std::fmt::Display for #name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    #( #name::#variants(exception) => ::std::fmt::Display::fmt(exception, f), )*
                    #name::System(exception) => ::std::fmt::Display::fmt(exception, f),
                }
            }
        }
        impl ::std::error::Error for #name {}
        #(
            impl From<#types> for #name {
                fn from(exception: #types) -> Self {
                    #name::#variants(exception)
                }
            }
        )*
        impl From<#rt::SystemException> for #name {
            fn from(exception: #rt::SystemException) -> Self {
                #name::System(exception)
            }
        }
        #codec
    })
}

/// The encoding of the error as a reply, and its decoding.
fn codec(
    scope: Scope<'_, '_>,
    method: &Method<'_>,
    name: &Ident,
    variants: &[Ident],
    types: &[TokenStream],
) -> TokenStream {
    let rt = scope.rt();
    let ids: Vec<&str> = method.raises.iter().map(|&id| scope.cx.model[id].repository_id.as_str()).collect();
    let by_tables = scope.cx.engines.of(&scope.cx.model[method.owner].scoped_name) == Engine::Interpretive;
    let decode = if by_tables {
        quote! { #( #ids => Some(#rt::interpreted::exception::<#types>(input).map(#name::#variants)), )* }
    } else {
        quote! { #( #ids => Some(<#types as #rt::Decode>::decode(input).map(#name::#variants)), )* }
    };
    quote! {
        impl #rt::UserExceptions for #name {
            fn decode(id: &str, input: &mut #rt::Decoder<'_>) -> Option<Result<Self, #rt::CdrError>> {
                match id {
                    #decode
                    _ => None,
                }
            }
            fn members(&self) -> Result<(&'static str, #rt::Value<'_>), #rt::SystemException> {
                match self {
                    #( #name::#variants(exception) => Ok((#ids, #rt::Value::coded(exception))), )*
                    #name::System(exception) => Err(exception.clone()),
                }
            }
        }
    }
}
