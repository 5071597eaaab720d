//! Asynchronous servants: a trait whose methods return futures, and a skeleton that runs them.
//!
//! The future of a request owns its message and a reference to the servant, so that borrowed data stays
//! valid.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::super::dispatch;
use super::super::method::{self, Method, Parameter};
use super::super::types::Scope;
use super::super::upcall::{Locals, OBJECT_ID, pass, read, reply};
use crate::model::{DefId, Definition, Interface};

/// The trait and the skeleton.
pub(in super::super) fn both(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let (servant, skeleton) = (servant(scope, definition, body), skeleton(scope, definition, body));
    quote! { #servant #skeleton }
}

fn servant(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let ident = &scope.cx.names.interface(definition.id).async_servant;
    let doc = format!(" The asynchronous servant of `{}`: implemented by a server.", definition.scoped_name);
    let bases = body.bases.iter().map(|&base| path(scope, base));
    let supertraits: Vec<TokenStream> = if body.bases.is_empty() {
        vec![quote! { Send }, quote! { Sync }, quote! { 'static }]
    } else {
        bases.collect()
    };
    let methods = method::own(scope.cx, definition.id);
    let declared = methods.iter().map(|method| {
        let (doc, ident) = (method.docs(), &method.ident);
        let parameters = method.parameters_as(scope, |owned| quote! { &mut #owned });
        let (result, error) = (method.result(scope), method.error(scope));
        let body = match method.default(scope) {
            Some((uses, raise)) => quote! { { #uses ::std::future::ready::<Result<#result, #error>>(#raise) } },
            None => quote! { ; },
        };
        quote! {
            #doc
            fn #ident(
                &self,
                #( #parameters ),*
            ) -> impl ::std::future::Future<Output = Result<#result, #error>> + Send #body
        }
    });
    quote! {
        #[doc = #doc]
        pub trait #ident: #( #supertraits )+* { #( #declared )* }
    }
}

fn skeleton(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let rt = scope.rt();
    let names = scope.cx.names.interface(definition.id);
    let (servant, skeleton) = (&names.async_servant, &names.async_skeleton);
    let implementation = &scope.cx.implementation;
    let doc = format!(
        " Dispatches requests for `{}` to an implementation of its asynchronous servant trait.",
        definition.scoped_name
    );
    let repository_id = &definition.repository_id;
    let bases = body.all_bases.iter().map(|&base| scope.cx.model[base].repository_id.as_str());
    let ids = std::iter::once(repository_id.as_str()).chain(bases).chain([OBJECT_ID]);
    let dispatch = dispatch::by_methods(scope, definition.id, |method| run(scope, method));
    quote! {
        #[doc = #doc]
        #[derive(Debug)]
        pub struct #skeleton<#implementation>(pub #rt::Arc<#implementation>);
        impl<#implementation> #skeleton<#implementation> {
            #[doc = " Wraps a servant, to be activated in an object adapter."]
            pub fn new(servant: #implementation) -> Self {
                Self(#rt::Arc::new(servant))
            }
        }
        impl<#implementation: #servant> #rt::Servant for #skeleton<#implementation> {
            fn repository_id(&self) -> &'static str {
                #repository_id
            }
            fn is_a(&self, repository_id: &str) -> bool {
                matches!(repository_id, #( #ids )|*)
            }
            fn is_asynchronous(&self) -> bool {
                true
            }
            #dispatch
        }
    }
}

fn path(scope: Scope<'_, '_>, interface: DefId) -> TokenStream {
    scope.beside(interface, &scope.cx.names.interface(interface).async_servant)
}

/// One operation: a future that decodes the arguments, awaits the servant, and encodes its results.
fn run(scope: Scope<'_, '_>, method: &Method<'_>) -> TokenStream {
    let rt = scope.rt();
    let (ident, servant_trait) = (&method.ident, path(scope, method.owner));
    let locals = Locals::new(method);
    let Locals { call, input, error, .. } = &locals;
    let [deferred, servant, answered] = more_locals(method);
    let sent: Vec<&Parameter<'_>> = method.parameters.iter().filter(|parameter| parameter.is_sent()).collect();
    let open = method.sends().then(|| quote! { let #input = &mut #deferred.arguments()?; });
    let reads = sent.iter().map(|parameter| read(scope, parameter, input));
    let context = method.context.as_ref().map(|context| &context.ident);
    let reads_context = context.map(|ident| quote! { let #ident = <#rt::Context as #rt::Decode>::decode(#input)?; });
    let close = method.sends().then(|| quote! { #rt::end_arguments(#input); });
    let passed = sent.iter().map(|parameter| pass(scope, parameter));
    let passed = passed.chain(context.map(|ident| quote! { &#ident }));
    let upcall = quote! { #servant_trait::#ident(&*#servant, #( #passed ),*).await };
    let answer = if method.oneway {
        quote! { #upcall?; #deferred.answer(|#call| Ok(#call.finish_oneway())) }
    } else {
        let (returned, reply) = (locals.returned(method), reply(scope, method, &locals));
        let reply = quote! { #deferred.answer(|#call| #reply) };
        let returned = returned.unwrap_or_else(|| quote! { () });
        quote! {
            match #upcall {
                Ok(#returned) => #reply,
                Err(#error) => #deferred.answer(|#call| #call.raise(&#error)),
            }
        }
    };
    quote! {
        {
            let #servant = ::std::clone::Clone::clone(&self.0);
            call.spawn(move |#deferred| async move {
                let #answered = async { #open #( #reads )* #reads_context #close #answer }.await;
                #deferred.end(#answered);
            })
        }
    }
}

/// Locals in addition to those of synchronous skeletons.
fn more_locals(method: &Method<'_>) -> [Ident; 3] {
    let mut names = method.locals.clone();
    for name in ["call", "input", "out", "result", "error"] {
        names.take(name);
    }
    ["deferred", "servant", "answered"].map(|name| names.take(name))
}
