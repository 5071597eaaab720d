//! The encoding of arguments and the decoding of results in a stub.
//!
//! The Rust types of parameters and results are chosen in `types` (`Passing`) and put together in `method`.

use proc_macro2::TokenStream;
use quote::quote;

use super::method::{Context, MAX_TUPLE, Method, Parameter};
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

/// The values that a request sends.
pub(super) enum Arguments {
    /// A tuple; results are decoded as one, too.
    Tuple(TokenStream),
    /// A closure that encodes them: there are more than tuples hold, or a context among them. The ORB may call it
    /// again, after a location forward.
    Closure(TokenStream),
}

/// The arguments of a request. `shares`: `inout` parameters are shared references.
pub(super) fn arguments(scope: Scope<'_, '_>, method: &Method<'_>, shares: bool) -> Arguments {
    let rt = scope.rt();
    let sent: Vec<&Parameter<'_>> = method.parameters.iter().filter(|parameter| parameter.is_sent()).collect();
    if method.context.is_none() && sent.len() <= MAX_TUPLE && results(method) <= MAX_TUPLE {
        let values = sent.iter().map(|Parameter { ident, mode, .. }| match mode {
            ParameterMode::InOut if !shares => quote! { &*#ident },
            _ => quote! { #ident },
        });
        return Arguments::Tuple(quote! { ( #( #values, )* ) });
    }
    let out = method.local(if method.sends() { "out" } else { "_out" });
    let arguments = sent.iter().map(|Parameter { ident, mode, ty }| {
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
    Arguments::Closure(match sent.len() {
        0 | 1 => quote! { |#out| #steps },
        _ => quote! { |#out| { #steps } },
    })
}

/// The number of results on the wire.
fn results(method: &Method<'_>) -> usize {
    let returned = method.parameters.iter().filter(|parameter| parameter.is_returned());
    method.result.iter().count() + returned.count()
}

/// The closure that decodes the results, in their order on the wire.
pub(super) fn decode(scope: Scope<'_, '_>, method: &Method<'_>) -> TokenStream {
    let rt = scope.rt();
    match results(method) {
        0 => quote! { |_input| Ok(()) },
        1 => quote! { #rt::Decode::decode },
        count => {
            let input = method.local("input");
            let reads = (0..count).map(|_| quote! { #rt::Decode::decode(#input)? });
            quote! { |#input| Ok(( #( #reads ),* )) }
        }
    }
}
