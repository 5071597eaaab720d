//! Server side of an interface: the trait that a server implements, and the skeleton that dispatches to it.
//!
//! The table of operation names and the upcall by index are in `dispatch`, reading arguments and writing results in
//! `upcall`.

use proc_macro2::TokenStream;
use quote::quote;

use super::dispatch::{self, Dispatch, Receiver};
use super::interpreted::operations;
use super::method::{self, Method, Parameter};
use super::types::Scope;
use super::upcall::{Locals, OBJECT_ID, pass, read, reply, servant_path};
use super::{collocation, docs};
use crate::model::{Definition, Interface};

/// The servant trait, also implemented for servants in an `Arc`.
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
    let shares = [quote! { ::std::sync::Arc }].into_iter().chain(value).map(|share| {
        quote! { impl<#implementation: #servant + ?Sized> #servant for #share<#implementation> { #( #forwarded )* } }
    });
    quote! {
        #doc
        pub trait #servant: #( #supertraits )+* { #( #declared )* }
        #( #shares )*
    }
}

/// The skeletons by which servants serve the interface.
pub(super) fn served(scope: Scope<'_, '_>, definition: &Definition) -> TokenStream {
    let rt = scope.rt();
    let interface = &scope.cx.names.place(definition.id).ident;
    let names = scope.cx.names.interface(definition.id);
    let (servant, skeleton) = (&names.servant, &names.skeleton);
    let asynchronous = scope.cx.asynchronous.server.then(|| {
        let (servant, skeleton) = (&names.async_servant, &names.async_skeleton);
        quote! { , #servant by #skeleton }
    });
    quote! { #rt::served! { #interface, #servant by #skeleton #asynchronous } }
}

/// The skeleton: it wraps a servant for an object adapter.
pub(super) fn skeleton(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let rt = scope.rt();
    let names = scope.cx.names.interface(definition.id);
    let (servant, skeleton) = (&names.servant, &names.skeleton);
    let implementation = &scope.cx.implementation;
    let doc =
        format!(" Dispatches requests for `{}` to an implementation of its servant trait.", definition.scoped_name);
    let new_doc = " Wraps a servant, to be activated in an object adapter.";
    let repository_id = &definition.repository_id;
    let bases = body.all_bases.iter().map(|&base| scope.cx.model[base].repository_id.as_str());
    let ids = std::iter::once(repository_id.as_str()).chain(bases).chain([OBJECT_ID]);
    let reads = |method: &Method<'_>| method.sends() && !operations::goes_by_tables(scope, method);
    let run = |method: &Method<'_>, receiver| run(scope, method, receiver);
    let Dispatch { function, methods } = dispatch::to_servant(scope, definition.id, reads, run);
    let function =
        function.map(|function| quote! { impl<#implementation: #servant> #skeleton<#implementation> { #function } });
    let (facets, offer) = (collocation::facets(scope, definition, body), collocation::offer(scope, definition, body));
    let bound = collocation::bound(scope);
    quote! {
        #[doc = #doc]
        pub struct #skeleton<#implementation>(pub #implementation);
        impl<#implementation> #skeleton<#implementation> {
            #[doc = #new_doc]
            pub fn new(servant: #implementation) -> Self {
                Self(servant)
            }
        }
        #facets
        #function
        impl<#implementation: #servant #bound> #rt::Servant for #skeleton<#implementation> {
            fn repository_id(&self) -> &'static str {
                #repository_id
            }
            fn is_a(&self, repository_id: &str) -> bool {
                matches!(repository_id, #( #ids )|*)
            }
            #offer
            #methods
        }
    }
}

/// One operation: reads the arguments, calls the servant, writes its results.
fn run(scope: Scope<'_, '_>, method: &Method<'_>, receiver: Receiver) -> TokenStream {
    let (servant, renamed_servant) = receiver.servant(method);
    if operations::goes_by_tables(scope, method) {
        let run = operations::run(scope, method, &servant);
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
