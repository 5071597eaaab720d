//! The errors of operations: the exceptions that they raise, and system exceptions.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::error_sets::ErrorSet;
use super::method::Method;
use super::prelude;
use super::scope;
use super::types::Scope;
use crate::model::DefId;

/// The alias of an operation's error enum, in its interface's module.
pub(super) fn alias(scope: Scope<'_, '_>, method: &Method<'_>) -> Option<TokenStream> {
    let alias = method.error.as_ref()?;
    let cx = scope.cx;
    let (home, module) = (cx.externals.home(method.owner), &cx.names.place(method.owner).module);
    let set = cx.names.error_sets().of_clause(cx.model, home, module, method.raises);
    let error = scope.beside(set.owner, &set.ident);
    let doc = format!(" The errors of `{}`.", method.operation);
    Some(quote! { #[doc = #doc] pub type #alias = #error; })
}

/// The error enums that are written beside an interface or value type.
pub(super) fn enums(scope: Scope<'_, '_>, owner: DefId) -> TokenStream {
    scope.cx.names.error_sets().of_owner(owner).map(|set| error(scope, set)).collect()
}

/// The error enum of a set of exceptions.
fn error(scope: Scope<'_, '_>, set: &ErrorSet) -> TokenStream {
    let ErrorSet { ident: name, exceptions, .. } = set;
    let rt = scope.rt();
    let cx = scope.cx;
    let mut variants = scope::Scope::reserving(&["System"]);
    let variants: Vec<Ident> =
        exceptions.iter().map(|&id| variants.take(prelude::plain(&cx.names.place(id).ident.to_string()))).collect();
    let types: Vec<TokenStream> = exceptions.iter().map(|&id| scope.path(id)).collect();
    let docs = exceptions.iter().map(|&id| format!(" The exception `{}`.", cx.model[id].scoped_name));
    let all: Vec<String> = exceptions.iter().map(|&id| format!("`{}`", cx.model[id].scoped_name)).collect();
    let doc = format!(" The errors of operations that raise {}.", all.join(", "));
    let is_local = exceptions.iter().any(|&id| cx.is_local(id));
    // The macro implements it, and `Clone`, for encoded exceptions.
    let is_equal = exceptions.iter().all(|&id| cx.traits.of_definition(cx.model, id).has_partial_eq());
    let partial_eq = is_equal.then(|| quote! { , PartialEq });
    let derive = is_local.then(|| quote! { #[derive(Clone #partial_eq)] });
    let contents = quote! { #name #(, #variants(#types))* };
    let implementation = match is_local {
        true => quote! { #rt::local_errors! { #contents } },
        false => quote! { #rt::errors! { #contents } },
    };
    quote! {
        #[doc = #doc]
        #derive
        pub enum #name {
            #( #[doc = #docs] #variants(#types), )*
            #[doc = " A system exception: the request failed in transit, or in an ORB."]
            System(#rt::SystemException),
        }
        #implementation
    }
}
