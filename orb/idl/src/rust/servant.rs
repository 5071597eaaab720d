//! Server side of an interface: the trait that a server implements, and the skeleton that dispatches to it.
//!
//! The table of operation names and the upcall by index are in `dispatch`, reading arguments and writing results in
//! `upcall`.

use proc_macro2::TokenStream;
use quote::quote;

use super::dispatch;
use super::interpreted::operations;
use super::method::{self, Method, Parameter};
use super::types::Scope;
use super::upcall::{self, Locals, pass, read, reply, servant_path};
use super::{collocation, docs};
use crate::model::{DefId, Definition, Interface};

/// Whether servants in an `Arc` implement the servant trait: those that direct calls use, and local objects. A local
/// interface derived from another one that does not has no such implementation either.
fn is_implemented_by_arcs(scope: Scope<'_, '_>, interface: DefId, body: &Interface) -> bool {
    collocation::is_offered(scope, body)
        || (scope.cx.is_local(interface) && body.all_bases.iter().all(|&base| scope.cx.is_local(base)))
}

/// The servant trait, and its implementations for pointers to servants.
pub(super) fn servant(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let servant = &scope.cx.names.interface(definition.id).servant;
    let implementation = &scope.cx.implementation;
    let doc = if scope.cx.is_local(definition.id) {
        docs::or(&definition.doc, || {
            format!(" The local interface `{}`: its objects are shared in an `Arc`.", definition.scoped_name)
        })
    } else {
        let line = format!(" The servant trait of `{}`, implemented by servers.", definition.scoped_name);
        quote! { #[doc = #line] }
    };
    let bases = body.bases.iter().map(|&base| servant_path(scope, base));
    let supertraits: Vec<TokenStream> =
        if body.bases.is_empty() { vec![quote! { Send }, quote! { Sync }] } else { bases.collect() };
    let methods = method::own(scope.cx, definition.id);
    let declared = methods.iter().map(|method| {
        let (doc, signature) = (method.docs(), method.signature(scope, &method.ident));
        match method.default(scope) {
            Some((uses, raise)) => quote! { #doc #signature { #uses #raise } },
            None => quote! { #doc #signature; },
        }
    });
    let forwarded = methods.iter().map(|method| {
        let (ident, signature) = (&method.ident, method.signature(scope, &method.ident));
        let arguments = method.argument_names();
        quote! { #signature { #implementation::#ident(self, #( #arguments ),*) } }
    });
    let forwarded: Vec<TokenStream> = forwarded.collect();
    // A value that supports the interface can be served, too.
    let rt = scope.rt();
    let value = scope.cx.values.is_supported(definition.id).then(|| quote! { #rt::ValueRef });
    let shared = is_implemented_by_arcs(scope, definition.id, body).then(|| quote! { ::std::sync::Arc });
    let shares = shared.into_iter().chain(value).map(|share| {
        quote! { impl<#implementation: #servant + ?Sized> #servant for #share<#implementation> { #( #forwarded )* } }
    });
    quote! {
        #doc
        pub trait #servant: #( #supertraits )+* { #( #declared )* }
        #( #shares )*
    }
}

/// The skeletons by which servants serve the interface.
pub(super) fn served(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let rt = scope.rt();
    let interface = &scope.cx.names.place(definition.id).ident;
    let names = scope.cx.names.interface(definition.id);
    let servant = &names.servant;
    let direct = collocation::is_offered(scope, body).then(|| quote! { direct });
    let asynchronous = scope.cx.asynchronous.server.then(|| {
        let (servant, skeleton) = (&names.async_servant, &names.async_skeleton);
        quote! { , #servant by #skeleton }
    });
    quote! { #rt::served! { #direct #interface, #servant #asynchronous } }
}

/// The dispatch of requests to implementations of the servant trait, and the skeleton's name.
pub(super) fn skeleton(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let rt = scope.rt();
    let interface = &scope.cx.names.place(definition.id).ident;
    let names = scope.cx.names.interface(definition.id);
    let (servant, skeleton) = (&names.servant, &names.skeleton);
    let implementation = &scope.cx.implementation;
    let doc =
        format!(" Dispatches requests for `{}` to an implementation of its servant trait.", definition.scoped_name);
    let bases = body.all_bases.iter().map(|&base| scope.cx.model[base].repository_id.as_str());
    let bases =
        (!body.all_bases.is_empty()).then(|| quote! { const BASES: &'static [&'static str] = &[#( #bases ),*]; });
    let reads = |method: &Method<'_>| {
        method.sends() && !operations::goes_by_tables(scope, method) && !upcall::reads_a_tuple(scope, method)
    };
    let methods = dispatch::to_servant(scope, definition.id, reads, |method| run(scope, method));
    let (facets, direct) = (collocation::facets(scope, definition, body), collocation::offer(scope, definition, body));
    let bound = match collocation::is_offered(scope, body) {
        true => quote! { 'static },
        false => quote! { ?Sized },
    };
    quote! {
        #[doc = #doc]
        pub type #skeleton<#implementation> = #rt::Skeleton<#interface, #implementation>;
        #facets
        impl<#implementation: #servant + #bound> #rt::Dispatch<#implementation> for #interface {
            #bases
            #direct
            #methods
        }
    }
}

/// One operation: reads the arguments, calls the servant, writes its results.
fn run(scope: Scope<'_, '_>, method: &Method<'_>) -> TokenStream {
    let (servant, renamed_servant) = dispatch::servant(method);
    if operations::goes_by_tables(scope, method) {
        let run = operations::run(scope, method, &servant);
        return match renamed_servant {
            Some(_) => quote! { { #renamed_servant #run } },
            None => run,
        };
    }
    if upcall::reads_a_tuple(scope, method) {
        let run = upcall::by_tuple(scope, method, &servant);
        return match renamed_servant {
            Some(_) => quote! { { #renamed_servant #run } },
            None => run,
        };
    }
    let rt = scope.rt();
    let (ident, servant_trait) = (&method.ident, servant_path(scope, method.owner));
    let locals = Locals::new(method);
    let Locals { call, input, error, .. } = &locals;
    let renamed = (call != "call").then(|| quote! { let mut #call = call; });
    let sent: Vec<&Parameter<'_>> = method.parameters.iter().filter(|parameter| parameter.is_sent()).collect();
    let open = method.sends().then(|| quote! { let #input = &mut #call.arguments()?; });
    let reads = sent.iter().map(|parameter| read(scope, parameter, input));
    let close = method.sends().then(|| quote! { #rt::end_arguments(#input); });
    let passed = sent.iter().map(|parameter| pass(scope, parameter));
    let context = method.context.as_ref().map(|context| &context.ident);
    let reads_context = context.map(|ident| quote! { let #ident: #rt::Context = #rt::decode(#input)?; });
    let passed = passed.chain(context.map(|ident| quote! { &#ident }));
    let upcall = quote! { #servant_trait::#ident(#servant, #( #passed ),*) };
    let answer = if method.oneway {
        quote! { #upcall?; Ok(#call.finish_oneway()) }
    } else if method.replies_what_the_servant_returns() {
        quote! { #rt::answer(#call, #upcall) }
    } else {
        let (returned, reply) = (locals.returned(method), reply(scope, method, &locals));
        if method.error.is_none() {
            match returned {
                Some(returned) => quote! { let #returned = #upcall?; #reply },
                None => quote! { #upcall?; #reply },
            }
        } else {
            let returned = returned.unwrap_or_else(|| quote! { () });
            quote! {
                match #upcall {
                    Ok(#returned) => #reply,
                    Err(#error) => #call.raise(&#error),
                }
            }
        }
    };
    quote! { { #renamed #renamed_servant #open #( #reads )* #reads_context #close #answer } }
}
