//! Asynchronous forms of an interface: methods of the reference that return futures.

pub(super) mod servant;
#[cfg(test)]
mod tests;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::arguments::{Arguments, arguments, decode, wide};
use super::method::{Method, NamedMethod, tuple};
use super::scope;
use super::types::Scope;
use crate::model::{ParameterMode, Type};

/// The asynchronous form of a method of a reference.
pub(super) fn form(scope: Scope<'_, '_>, named: &NamedMethod<'_>) -> TokenStream {
    let rt = scope.rt();
    let NamedMethod { ident: synchronous, asynchronous: ident, method } = named;
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
    let (rt, operation) = (scope.rt(), &method.operation);
    let wide = wide(scope, method);
    match arguments(scope, method, true) {
        Arguments::Tuple(arguments) if method.oneway => {
            quote! { #wide #rt::call_oneway_async(self, #operation, &#arguments) }
        }
        Arguments::Tuple(arguments) => {
            quote! { #wide #rt::call_async(self, #operation, &#arguments) }
        }
        Arguments::Closure(encode) if method.oneway => {
            quote! { #wide self.as_object().send_oneway_async(#operation, #encode) }
        }
        Arguments::Closure(encode) => {
            let decode = decode(scope, method);
            quote! { #wide self.as_object().invoke_async(#operation, #encode, #decode) }
        }
    }
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
