//! Ties: servants that delegate their operations to several objects.
//!
//! An interface with several bases is often served by objects that already serve the bases. Its tie is one
//! servant composed of them, each of which serves the operations of its base, and of one more for the
//! operations that the interface adds.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::method::{self, Method};
use super::types::Scope;
use super::{scope, words};
use crate::model::{DefId, Definition, Interface};

/// One of the objects of a tie.
struct Part {
    /// The base that it serves; `None` for the object that serves the interface's own operations.
    base: Option<DefId>,
    parameter: Ident,
    field: Ident,
    bound: TokenStream,
}

/// The tie of an interface with bases; `None` without bases.
pub(super) fn tie(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    if body.bases.is_empty() || body.forward_only {
        return TokenStream::new();
    }
    let cx = scope.cx;
    let names = cx.names.interface(definition.id);
    let own = method::own(cx, definition.id);
    let delegate = &names.delegate;
    let parts = parts(scope, definition, body, !own.is_empty());
    let declared = own_trait(scope, definition, delegate, &own);
    let tie = &names.tie;
    let (parameters, fields): (Vec<&Ident>, Vec<&Ident>) =
        parts.iter().map(|part| (&part.parameter, &part.field)).unzip();
    let docs = parts.iter().map(|part| match part.base {
        Some(base) => format!(" Serves the operations of `{}`.", cx.model[base].scoped_name),
        None => format!(" Serves the operations declared in `{}` itself.", definition.scoped_name),
    });
    let line =
        format!(" A servant of `{}` composed of several objects, each of which serves a part.", definition.scoped_name);
    let all = body.all_bases.iter().copied().chain([definition.id]);
    let implemented = all.map(|interface| implementation(scope, definition, &parts, interface));
    quote! {
        #declared
        #[doc = #line]
        #[derive(Clone, Debug)]
        pub struct #tie< #( #parameters ),* > { #( #[doc = #docs] pub #fields: #parameters ),* }
        #( #implemented )*
    }
}

fn parts(scope: Scope<'_, '_>, definition: &Definition, body: &Interface, has_own: bool) -> Vec<Part> {
    let cx = scope.cx;
    let mut fields = scope::Scope::default();
    let part = |(nth, &base): (usize, &DefId)| Part {
        base: Some(base),
        parameter: format_ident!("{}{nth}", cx.implementation),
        field: fields.take(&words::snake(&cx.model[base].name)),
        bound: scope.beside(base, &cx.names.interface(base).servant),
    };
    let mut parts: Vec<Part> = body.bases.iter().enumerate().map(part).collect();
    if has_own {
        let delegate = &cx.names.interface(definition.id).delegate;
        let (parameter, field) = (cx.implementation.clone(), fields.take("own"));
        parts.push(Part { base: None, parameter, field, bound: quote! { #delegate } });
    }
    parts
}

/// The trait of the interface's own operations, without those of its bases.
fn own_trait(
    scope: Scope<'_, '_>,
    definition: &Definition,
    delegate: &Ident,
    own: &[Method<'_>],
) -> Option<TokenStream> {
    if own.is_empty() {
        return None;
    }
    let line = format!(" The operations declared in `{}` itself, without those of its bases.", definition.scoped_name);
    let methods = own.iter().map(|method| {
        let (doc, signature) = (method.docs(), method.signature(scope, &method.ident));
        quote! { #doc #signature; }
    });
    Some(quote! { #[doc = #line] pub trait #delegate: Send + Sync { #( #methods )* } })
}

/// The servant trait of the interface or of one of its bases, implemented by the part that serves it.
fn implementation(scope: Scope<'_, '_>, definition: &Definition, parts: &[Part], interface: DefId) -> TokenStream {
    let cx = scope.cx;
    let bases_of = |id: DefId| cx.model[id].as_interface().map_or(&[][..], |body| &body.all_bases);
    // A base common to several bases is served by the first of them.
    let serves = |part: &&Part| match part.base {
        Some(base) => base == interface || bases_of(base).contains(&interface),
        None => interface == definition.id,
    };
    let Some(part) = parts.iter().find(serves) else {
        // The interface adds nothing: its own trait is empty.
        let (servant, generics) = (scope.beside(interface, &cx.names.interface(interface).servant), generics(parts));
        let tie = &cx.names.interface(definition.id).tie;
        let parameters = parts.iter().map(|part| &part.parameter);
        return quote! { impl< #generics > #servant for #tie< #( #parameters ),* > {} };
    };
    let servant = scope.beside(interface, &cx.names.interface(interface).servant);
    let by = match part.base {
        Some(_) => servant.clone(),
        None => part.bound.clone(),
    };
    let (field, generics) = (&part.field, generics(parts));
    let tie = &cx.names.interface(definition.id).tie;
    let parameters = parts.iter().map(|part| &part.parameter);
    let methods = method::own(cx, interface);
    let methods = methods.iter().map(|method| {
        let (ident, signature) = (&method.ident, method.signature(scope, &method.ident));
        let arguments = method.argument_names();
        quote! { #signature { #by::#ident(&self.#field, #( #arguments ),*) } }
    });
    quote! { impl< #generics > #servant for #tie< #( #parameters ),* > { #( #methods )* } }
}

fn generics(parts: &[Part]) -> TokenStream {
    let bounds = parts.iter().map(|Part { parameter, bound, .. }| quote! { #parameter: #bound });
    quote! { #( #bounds ),* }
}
