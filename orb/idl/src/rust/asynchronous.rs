//! Asynchronous forms of an interface: methods of the reference that return futures.

pub(super) mod servant;
#[cfg(test)]
mod tests;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::arguments::{decode, encode, wide};
use super::method::{Method, tuple};
use super::scope;
use super::types::Scope;
use crate::model::{ParameterMode, Type};

/// The asynchronous form of each method of a reference; `taken` has the names of the others.
pub(super) fn methods(scope: Scope<'_, '_>, methods: &[(Ident, Method<'_>)], taken: &mut scope::Scope) -> TokenStream {
    let rt = scope.rt();
    let narrow = taken.take("narrow_async");
    let forms = methods.iter().map(|(synchronous, method)| {
        let ident = taken.take(&format!("{}_async", scope::plain(synchronous).trim_end_matches('_')));
        form(scope, method, synchronous, &ident)
    });
    let forms: TokenStream = forms.collect();
    quote! {
        #[doc = " As `narrow`, without waiting: the request is sent before this returns."]
        #[inline]
        pub fn #narrow(
            object: &#rt::ObjectRef,
        ) -> impl ::std::future::Future<Output = Result<Self, #rt::SystemException>> + Send + 'static + use<> {
            object.narrow_async()
        }
        #forms
    }
}

fn form(scope: Scope<'_, '_>, method: &Method<'_>, synchronous: &Ident, ident: &Ident) -> TokenStream {
    let rt = scope.rt();
    let parameters = method.parameters_as(scope, |owned| quote! { &#owned });
    let (result, error) = (everything(scope, method), method.error(scope));
    let doc = docs(method, synchronous);
    let body = invocation(scope, method);
    quote! {
        #doc
        #[inline]
        pub fn #ident(&self, #( #parameters ),*) -> #rt::AsyncReply<#result, #error> { #body }
    }
}

/// Sends the request: an `AsyncReply`. Arguments have the names of the parameters, `inout` ones being shared
/// references.
pub(super) fn invocation(scope: Scope<'_, '_>, method: &Method<'_>) -> TokenStream {
    let operation = &method.operation;
    let (wide, encode) = (wide(scope, method), encode(scope, method, true));
    if method.oneway {
        return quote! { #wide self.0.send_oneway_async(#operation, #encode) };
    }
    let decode = decode(scope, method);
    quote! { #wide self.0.invoke_async(#operation, #encode, #decode) }
}

fn docs(method: &Method<'_>, synchronous: &Ident) -> TokenStream {
    let line = format!(
        " As `{}`, without waiting: the arguments are marshaled before this returns.",
        scope::plain(synchronous)
    );
    let has_inouts = method.parameters.iter().any(|parameter| parameter.mode == ParameterMode::InOut);
    let more = has_inouts
        .then(|| quote! { #[doc = " `inout` values are returned with the results, in the order of declaration."] });
    quote! { #[doc = #line] #more }
}

/// All results: the return value, then `inout` and `out` parameters in the order of declaration, as on the
/// wire.
pub(super) fn everything(scope: Scope<'_, '_>, method: &Method<'_>) -> TokenStream {
    let returned = method.parameters.iter().filter(|parameter| parameter.is_returned()).map(|parameter| parameter.ty);
    let types: Vec<&Type> = method.result.into_iter().chain(returned).collect();
    let around = if types.len() > 1 { 3 + types.len() as u32 / 2 } else { 2 };
    types.iter().for_each(|ty| super::lints::allow_complex(scope.cx, ty, around));
    let types: Vec<TokenStream> = types.into_iter().map(|ty| scope.owned(ty)).collect();
    tuple(&types)
}
