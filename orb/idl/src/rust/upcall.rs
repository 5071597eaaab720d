//! The code of a skeleton that reads arguments, passes them to a servant, and writes its results.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::method::{MAX_TUPLE, Method, Parameter, tuple};
use super::steps::sequence;
use super::types::{Passing, Scope};
use crate::model::{DefId, ParameterMode};

/// The repository id supported by every object (CORBA 3.3 Part 1, 8.3.4).
pub(super) const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";

/// Local variables of one match arm, with names that differ from the parameters'.
pub(super) struct Locals {
    pub(super) call: Ident,
    pub(super) input: Ident,
    out: Ident,
    result: Ident,
    pub(super) error: Ident,
}

impl Locals {
    pub(super) fn new(method: &Method<'_>) -> Self {
        let mut scope = method.locals.clone();
        let mut take = |name| scope.take(name);
        Self {
            call: take("call"),
            input: take("input"),
            out: take("out"),
            result: take("result"),
            error: take("error"),
        }
    }

    /// The pattern for the servant's results; `None` without results.
    pub(super) fn returned(&self, method: &Method<'_>) -> Option<TokenStream> {
        let result = method.result.map(|_| &self.result);
        let parts: Vec<&Ident> = result.into_iter().chain(method.outs().map(|out| &out.ident)).collect();
        (!parts.is_empty()).then(|| tuple(&parts))
    }
}

/// Whether the arguments are read as a tuple, whose types follow from the servant's method: there are neither `inout`
/// parameters, which the reply contains, nor a context, nor arguments that are converted.
pub(super) fn reads_a_tuple(scope: Scope<'_, '_>, method: &Method<'_>) -> bool {
    let is_read = |parameter: &Parameter<'_>| {
        let passing = scope.cx.passing(parameter.ty);
        let is_owned = passing == Passing::Slice && scope.cx.values.holds_values(scope.cx.model, parameter.ty);
        parameter.mode == ParameterMode::In && passing != Passing::WideText && !is_owned
    };
    let sent: Vec<&Parameter<'_>> = method.parameters.iter().filter(|parameter| parameter.is_sent()).collect();
    (1..=MAX_TUPLE).contains(&sent.len())
        && sent.into_iter().all(is_read)
        && method.context.is_none()
        && (method.oneway || method.replies_what_the_servant_returns())
}

/// The code of an operation that [reads a tuple](reads_a_tuple).
pub(super) fn by_tuple(scope: Scope<'_, '_>, method: &Method<'_>, servant: &TokenStream) -> TokenStream {
    let rt = scope.rt();
    let (ident, servant_trait) = (&method.ident, servant_path(scope, method.owner));
    let sent: Vec<&Parameter<'_>> = method.parameters.iter().filter(|parameter| parameter.is_sent()).collect();
    let names = sent.iter().map(|parameter| &parameter.ident);
    let passed = sent.iter().map(|Parameter { ident, ty, .. }| match scope.cx.passing(ty) {
        Passing::Value => quote! { *#ident },
        Passing::Text => quote! { #rt::text(#ident) },
        Passing::Slice => quote! { #rt::slice(#ident) },
        Passing::Reference => quote! { #rt::Option::as_ref(#ident) },
        Passing::Borrowed | Passing::WideText => quote! { #ident },
    });
    let upcall = quote! { |( #( #names, )* )| #servant_trait::#ident(#servant, #( #passed ),*) };
    if method.oneway {
        quote! { #rt::serve_oneway(call, #upcall) }
    } else {
        quote! { #rt::serve(call, #upcall) }
    }
}

/// Reads an argument from `input`, the mutable reference of a decoder.
pub(super) fn read(scope: Scope<'_, '_>, parameter: &Parameter<'_>, input: &Ident) -> TokenStream {
    let rt = scope.rt();
    let Parameter { ident, mode, ty } = parameter;
    let owned = scope.owned(ty);
    match (mode, scope.cx.passing(ty)) {
        (ParameterMode::InOut, _) => quote! { let mut #ident: #owned = #rt::decode(#input)?; },
        (_, Passing::Text) => quote! { let #ident = #input.str()?; },
        // Values are not lent; in a future the compiler could not prove that a lent value is `Send`.
        (_, Passing::Slice) if !scope.cx.values.holds_values(scope.cx.model, ty) => {
            let element = scope.element(ty);
            quote! { let #ident = <#element as #rt::Decode>::lend(#input)?; }
        }
        _ => quote! { let #ident: #owned = #rt::decode(#input)?; },
    }
}

pub(super) fn pass(scope: Scope<'_, '_>, Parameter { ident, mode, ty }: &Parameter<'_>) -> TokenStream {
    match (mode, scope.cx.passing(ty)) {
        (ParameterMode::InOut, _) => quote! { &mut #ident },
        (_, Passing::Value) => quote! { #ident },
        (_, Passing::Reference) => quote! { #ident.as_ref() },
        (_, Passing::Text | Passing::WideText | Passing::Slice | Passing::Borrowed) => quote! { &#ident },
    }
}

/// The return value, then `inout` and `out` parameters in the order of their declaration (CORBA 3.3 Part 2, 9.4.3).
pub(super) fn reply(scope: Scope<'_, '_>, method: &Method<'_>, locals: &Locals) -> TokenStream {
    let rt = scope.rt();
    let Locals { call, out, result, .. } = locals;
    let result = method.result.map(|_| result);
    let parameters = method.parameters.iter().filter(|parameter| parameter.is_returned());
    let values: Vec<&Ident> = result.into_iter().chain(parameters.map(|parameter| &parameter.ident)).collect();
    let steps = sequence(&values, |value| quote! { #rt::Encode::encode(&#value, #out) });
    match values.len() {
        0 => quote! { #call.reply(|_out| Ok(())) },
        1 => quote! { #call.reply(|#out| #steps) },
        _ => quote! { #call.reply(|#out| { #steps }) },
    }
}

pub(super) fn servant_path(scope: Scope<'_, '_>, interface: DefId) -> TokenStream {
    scope.beside(interface, &scope.cx.names.interface(interface).servant)
}
