//! Client side of an interface: a typed object reference whose methods invoke.
//!
//! The reference of an interface with bases wraps that of the first base and reaches the methods of that by `Deref`;
//! it has the methods of its other bases itself.
//!
//! `narrow` itself is in `object` of `spandrel-orb`.

use std::collections::HashMap;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::arguments::{Arguments, arguments, decode, wide};
use super::interpreted::operations;
use super::method::{self, Method, NamedMethod, ReceivedResults, store};
use super::types::Scope;
use super::{Sides, ami, asynchronous, collocation, docs, typed};
use crate::model::{DefId, Definition, Interface};

/// The reference type of an interface.
pub(super) fn reference(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let rt = scope.rt();
    let ident = &scope.cx.names.place(definition.id).ident;
    let doc = docs::or(&definition.doc, || format!(" A reference to a `{}`.", definition.scoped_name));
    let has_methods = matches!(scope.cx.sides, Sides::Both | Sides::Client);
    let methods = has_methods.then(|| methods(scope, definition, body)).flatten();
    let (repository_id, name) = (&definition.repository_id, &definition.name);
    let kind = typed::reference_kind(body);
    let bases: Vec<TokenStream> = body.all_bases.iter().map(|&base| scope.path(base)).collect();
    let inner = body.bases.first().map_or_else(|| quote! { #rt::ObjectRef }, |&base| scope.path(base));
    let methods = methods.map(|methods| quote! { impl #ident { #methods } });
    quote! {
        #doc
        pub struct #ident(#inner);
        #rt::reference! { #kind #ident(#inner), #repository_id, #name #(, #bases)* }
        #methods
    }
}

/// The methods that a reference has from the one that it wraps, by owner and operation, with their names there.
fn reached(scope: Scope<'_, '_>, body: &Interface) -> HashMap<(DefId, String), (Ident, Ident)> {
    match body.bases.first() {
        Some(&base) => {
            let (methods, _) = method::named(scope.cx, base);
            let names = methods.into_iter().map(|NamedMethod { ident, asynchronous, method }| {
                ((method.owner, method.operation), (ident, asynchronous))
            });
            names.collect()
        }
        None => HashMap::new(),
    }
}

fn methods(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> Option<TokenStream> {
    let (all, mut method_names) = method::named(scope.cx, definition.id);
    let reached = reached(scope, body);
    let name_in_base = |method: &Method<'_>| reached.get(&(method.owner, method.operation.clone()));
    let own = all.iter().filter(|one| name_in_base(&one.method).is_none_or(|(ident, _)| *ident != one.ident));
    let methods: TokenStream = own
        .map(|NamedMethod { ident, method, .. }| {
            let (doc, signature) = (method.docs(), method.signature(scope, ident));
            let (attempt, body) = (collocation::attempt(scope, method), invocation(scope, method));
            quote! { #doc pub #signature { #attempt #body } }
        })
        .collect();
    let own = all.iter().filter(|one| name_in_base(&one.method).is_none_or(|(_, ident)| *ident != one.asynchronous));
    let asynchronous: Option<TokenStream> =
        scope.cx.asynchronous.client.then(|| own.map(|named| asynchronous::form(scope, named)).collect());
    let ami = scope.cx.asynchronous.ami.then(|| ami::senders(scope, definition.id, &all, &mut method_names));
    let methods = quote! { #methods #asynchronous #ami };
    (!methods.is_empty()).then_some(methods)
}

fn invocation(scope: Scope<'_, '_>, method: &Method<'_>) -> TokenStream {
    if operations::goes_by_tables(scope, method) {
        return operations::stub(scope, method);
    }
    let (rt, operation) = (scope.rt(), &method.operation);
    let (wide, arguments) = (wide(scope, method), arguments(scope, method, false));
    let store = store(method, ReceivedResults::Values);
    match arguments {
        Arguments::Tuple(arguments) if method.oneway => {
            quote! { #wide #rt::call_oneway(self, #operation, &#arguments) }
        }
        Arguments::Tuple(arguments) => {
            quote! { #wide #rt::call(self, #operation, &#arguments) #store }
        }
        Arguments::Closure(encode) if method.oneway => {
            quote! { #wide self.as_object().send_oneway(#operation, #encode) }
        }
        Arguments::Closure(encode) => {
            let decode = decode(scope, method);
            quote! { #wide self.as_object().invoke(#operation, #encode, #decode) #store }
        }
    }
}
