//! Stubs and skeletons of operations whose values all have tables: a list of values and a call.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::has_table;
use crate::model::{ParameterMode, Type};
use crate::rust::engines::Engine;
use crate::rust::method::{Method, Parameter, ReceivedResults, store, tuple};
use crate::rust::types::{Passing, Scope};
use crate::rust::{arguments, upcall};

/// Clippy may consider the types of more values complex, in the closure that takes them.
const SIMPLE_VALUES: usize = 4;

/// Maximum number of values: the runtime has tuples up to this size.
const MOST_VALUES: usize = 8;

/// Whether the operation uses tables: its interface was chosen for it, and all received values have one.
pub(in crate::rust) fn goes_by_tables(scope: Scope<'_, '_>, method: &Method<'_>) -> bool {
    let owner = &scope.cx.model[method.owner].scoped_name;
    let sent = method.parameters.iter().filter(|parameter| parameter.is_sent());
    let results = method.result.iter().count() + method.parameters.iter().filter(|one| one.is_returned()).count();
    let lent = |parameter: &&Parameter<'_>| {
        parameter.mode == ParameterMode::In && matches!(scope.cx.passing(parameter.ty), Passing::Text | Passing::Slice)
    };
    scope.cx.engines.of(owner) == Engine::Interpretive
        && method.context.is_none()
        && sent.clone().count() <= MOST_VALUES
        && results <= MOST_VALUES
        && sent.filter(|parameter| !lent(parameter)).all(|parameter| has_table(scope, parameter.ty))
        && method.outs().all(|out| has_table(scope, out.ty))
        && method.result.is_none_or(|ty| has_table(scope, ty))
}

/// The body of a stub.
pub(in crate::rust) fn stub(scope: Scope<'_, '_>, method: &Method<'_>) -> TokenStream {
    let rt = scope.rt();
    let operation = &method.operation;
    let wide = arguments::wide(scope, method);
    let sent = method.parameters.iter().filter(|parameter| parameter.is_sent());
    let values = sent.map(|parameter| value(scope, parameter));
    if method.oneway {
        return quote! { #wide #rt::interpreted::send_oneway(self, #operation, &[ #( #values ),* ]) };
    }
    let store = store(method, ReceivedResults::Tuple);
    quote! { #wide #rt::interpreted::call(self, #operation, &[ #( #values ),* ]) #store }
}

/// An argument as it is sent.
fn value(scope: Scope<'_, '_>, Parameter { ident, mode, ty }: &Parameter<'_>) -> TokenStream {
    let rt = scope.rt();
    match (mode, scope.cx.passing(ty)) {
        (ParameterMode::InOut, _) => quote! { #rt::Value::of(&*#ident) },
        (_, Passing::Value) => quote! { #rt::Value::of(&#ident) },
        (_, Passing::Borrowed) => quote! { #rt::Value::of(#ident) },
        (_, Passing::Text) => quote! { #rt::Value::text(#ident) },
        (_, Passing::Slice) if has_table(scope, ty) => quote! { #rt::Value::sequence(#ident) },
        (_, Passing::Slice | Passing::Reference | Passing::WideText) => quote! { #rt::Value::coded(&#ident) },
    }
}

/// The code of a skeleton. Arguments stay in place: the servant gets references.
pub(in crate::rust) fn run(scope: Scope<'_, '_>, method: &Method<'_>, servant: &TokenStream) -> TokenStream {
    let rt = scope.rt();
    let (ident, servant_trait) = (&method.ident, upcall::servant_path(scope, method.owner));
    let sent: Vec<&Parameter<'_>> = method.parameters.iter().filter(|parameter| parameter.is_sent()).collect();
    let names = sent.iter().map(|parameter| &parameter.ident);
    let types = sent.iter().map(|parameter| received(scope, parameter));
    let passed = sent.iter().map(|parameter| pass(scope, parameter));
    if sent.len() > SIMPLE_VALUES {
        scope.cx.allow("clippy::type_complexity");
    }
    let upcall = quote! {
        |( #( #names, )* ): &mut ( #( #types, )* )| #servant_trait::#ident(#servant, #( #passed ),*)
    };
    if method.oneway {
        return quote! { #rt::interpreted::serve_oneway(&call, #upcall) };
    }
    if sent.iter().all(|parameter| parameter.mode == ParameterMode::In) {
        return quote! { #rt::interpreted::serve(&call, #upcall) };
    }
    let results = results(scope, method, &sent);
    quote! { #rt::interpreted::serve_inout(&call, #upcall, #results) }
}

/// The closure that lists the results, in their order on the wire.
fn results(scope: Scope<'_, '_>, method: &Method<'_>, sent: &[&Parameter<'_>]) -> TokenStream {
    let rt = scope.rt();
    let result: Vec<Ident> = method.result.iter().map(|_| method.local("result")).collect();
    let outs: Vec<&Ident> = result.iter().chain(method.outs().map(|out| &out.ident)).collect();
    let arguments = sent.iter().map(|Parameter { ident, mode, .. }| match mode {
        ParameterMode::InOut => quote! { #ident },
        _ => quote! { _ },
    });
    let returned = method.parameters.iter().filter(|parameter| parameter.is_returned());
    let replied = result.iter().chain(returned.map(|parameter| &parameter.ident));
    let outs = if outs.is_empty() {
        quote! { () }
    } else {
        tuple(&outs)
    };
    quote! { |#outs, ( #( #arguments, )* )| [ #( #rt::Value::of(#replied) ),* ] }
}

/// The expression of a servant's argument, from a reference to it.
fn pass(scope: Scope<'_, '_>, Parameter { ident, mode, ty }: &Parameter<'_>) -> TokenStream {
    match (mode, scope.cx.passing(ty)) {
        (ParameterMode::In, Passing::Value) => quote! { *#ident },
        (ParameterMode::In, Passing::Reference) => quote! { #ident.as_ref() },
        _ => quote! { #ident },
    }
}

/// Whether a sequence is one of primitives.
fn is_number(scope: Scope<'_, '_>, sequence: &Type) -> bool {
    let model = scope.cx.model;
    matches!(model.resolve(sequence), Type::Sequence { element, .. } if matches!(model.resolve(element), Type::Primitive(_)))
}

/// The type of a parameter as the skeleton receives it.
fn received(scope: Scope<'_, '_>, Parameter { mode, ty, .. }: &Parameter<'_>) -> TokenStream {
    let rt = scope.rt();
    match (mode, scope.cx.passing(ty)) {
        (ParameterMode::In, Passing::Text) => quote! { #rt::Cow<'_, str> },
        // Only numbers, and structs in wire layout, are lent from a message.
        (ParameterMode::In, Passing::Slice) if !has_table(scope, ty) || is_number(scope, ty) => {
            let element = scope.element(ty);
            quote! { #rt::Cow<'_, [#element]> }
        }
        _ => scope.owned(ty),
    }
}
