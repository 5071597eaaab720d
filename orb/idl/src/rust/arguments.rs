//! The encoding of arguments and the decoding of results in a stub.
//!
//! The Rust types of parameters and results are chosen in `types` (`Passing`) and put together in `method`.

use proc_macro2::TokenStream;
use quote::quote;

use super::method::{Context, Method, Parameter};
use super::steps::sequence;
use super::types::{Passing, Scope};
use crate::model::ParameterMode;

/// Texts that are sent as wide characters are marked as such, and live as long as the call.
pub(super) fn wide(scope: Scope<'_, '_>, method: &Method<'_>) -> TokenStream {
    let rt = scope.rt();
    let lent = |parameter: &&Parameter<'_>| {
        parameter.mode == ParameterMode::In && scope.cx.passing(parameter.ty) == Passing::WideText
    };
    let texts = method.parameters.iter().filter(lent).map(|parameter| &parameter.ident);
    quote! { #( let #texts = #rt::Wide(#texts); )* }
}

/// The closure that encodes the arguments. The ORB may call it again, after a location forward. `shares`:
/// `inout` parameters are shared references.
pub(super) fn encode(scope: Scope<'_, '_>, method: &Method<'_>, shares: bool) -> TokenStream {
    let rt = scope.rt();
    let out = method.local(if method.sends() { "out" } else { "_out" });
    let arguments = method.parameters.iter().filter(|parameter| parameter.is_sent()).map(|parameter| {
        let Parameter { ident, mode, ty } = parameter;
        let value = match (mode, scope.cx.passing(ty)) {
            (ParameterMode::InOut, _) if shares => quote! { #ident },
            (ParameterMode::InOut, _) => quote! { &*#ident },
            (_, Passing::Value | Passing::Reference | Passing::WideText) => quote! { &#ident },
            (_, Passing::Text | Passing::Slice | Passing::Borrowed) => quote! { #ident },
        };
        quote! { #rt::Encode::encode(#value, #out) }
    });
    let context = method.context.iter().map(|Context { ident, names }| {
        quote! { #ident.encode_named(&[ #( #names ),* ], #out) }
    });
    let sent: Vec<TokenStream> = arguments.chain(context).collect();
    let steps = sequence(&sent, TokenStream::clone);
    match sent.len() {
        0 | 1 => quote! { |#out| #steps },
        _ => quote! { |#out| { #steps } },
    }
}

/// The closure that decodes the results, in their order on the wire.
pub(super) fn decode(scope: Scope<'_, '_>, method: &Method<'_>) -> TokenStream {
    let rt = scope.rt();
    let results = usize::from(method.result.is_some());
    match results + method.parameters.iter().filter(|parameter| parameter.is_returned()).count() {
        0 => quote! { |_input| Ok(()) },
        1 => quote! { #rt::Decode::decode },
        count => {
            let input = method.local("input");
            let reads = (0..count).map(|_| quote! { #rt::Decode::decode(#input)? });
            quote! { |#input| Ok(( #( #reads ),* )) }
        }
    }
}
