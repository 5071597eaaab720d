//! The implied IDL of the Messaging specification (CORBA 3.3 Part 1, clause 17): `sendc_` and `sendp_` operations, reply handlers
//! and pollers.
//!
//! Handlers are local: traits that the program implements and the ORB calls. Pollers are plain objects and
//! not values, since they stay inside the process. One-way operations have neither.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::asynchronous::{everything, invocation};
use super::method::{self, Method, NamedMethod, tuple};
use super::scope;
use super::types::{self, HandlerNames, Scope};
use crate::model::{DefId, Definition, Interface, Type};

/// The operations of a reference; `method_names` has the names of the others.
pub(super) fn senders(
    scope: Scope<'_, '_>,
    id: DefId,
    methods: &[NamedMethod<'_>],
    method_names: &mut scope::Scope,
) -> TokenStream {
    let forms = methods.iter().filter(|named| !named.method.oneway).map(|NamedMethod { ident, method, .. }| {
        let stem = stem(ident, method);
        let callback = callback(scope, method, &method_names.take(&unique(method_names, "sendc_", &stem)));
        let polling = polling(scope, id, method, &method_names.take(&unique(method_names, "sendp_", &stem)));
        quote! { #callback #polling }
    });
    forms.collect()
}

/// The operation's name in implied IDL; for an attribute with `get_` or `set_`.
fn stem(synchronous: &Ident, method: &Method<'_>) -> String {
    let name = scope::plain(synchronous);
    // The setter's Rust name has `set_` already.
    if method.operation.starts_with("_get_") { format!("get_{name}") } else { name }
}

/// If the interface already has an operation of that name, `ami_` is inserted (17.6.1).
fn unique(method_names: &scope::Scope, prefix: &str, stem: &str) -> String {
    let mut name = format!("{prefix}{stem}");
    let mut between = String::new();
    while method_names.has(&name) {
        between.push_str("ami_");
        name = format!("{prefix}{between}{stem}");
    }
    name
}

fn callback(scope: Scope<'_, '_>, method: &Method<'_>, ident: &Ident) -> TokenStream {
    let rt = scope.rt();
    let (handler, parameters) = (path(scope, method.owner, ImpliedType::Handler), parameters(scope, method));
    // `self` and the handler are two more.
    if parameters.len() > 5 {
        scope.cx.allow("clippy::too_many_arguments");
    }
    let mut locals = method.locals.clone();
    let (ami_handler, reply) = (locals.take("ami_handler"), locals.take("reply"));
    let invoked = invocation(scope, method);
    let (result, error) = (everything(scope, method), method.error(scope));
    let received = Received::new(scope, method);
    let (pattern, names) = (received.pattern(), received.names());
    let (success, failure) = handler_names(scope, method);
    let doc = format!(" Invokes `{}`, and passes its outcome to the handler.", method.operation);
    quote! {
        #[doc = #doc]
        #[inline]
        pub fn #ident(
            &self,
            #ami_handler: Option<#rt::Arc<dyn #handler>>,
            #( #parameters ),*
        ) -> Result<(), #rt::SystemException> {
            let #reply: #rt::AsyncReply<#result, #error> = { #invoked };
            #rt::send_to_handler(self, #reply, #ami_handler, |handler, outcome| match outcome {
                Ok(#pattern) => #handler::#success(handler, #( #names ),*),
                Err(error) => #handler::#failure(handler, #rt::ExceptionHolder::new(error)),
            })
        }
    }
}

fn polling(scope: Scope<'_, '_>, id: DefId, method: &Method<'_>, ident: &Ident) -> TokenStream {
    let rt = scope.rt();
    let (poller, parameters) = (path(scope, id, ImpliedType::Poller), parameters(scope, method));
    let reply = method.local("reply");
    let (operation, invoked) = (&method.operation, invocation(scope, method));
    let (result, error) = (everything(scope, method), method.error(scope));
    let doc = format!(" Invokes `{operation}`; its outcome is collected with the poller.");
    quote! {
        #[doc = #doc]
        #[inline]
        pub fn #ident(&self, #( #parameters ),*) -> #poller {
            let #reply: #rt::AsyncReply<#result, #error> = { #invoked };
            #poller(#rt::Poller::new(self, #operation, #reply))
        }
    }
}

/// The parameters of the caller: `inout` arguments are only read.
fn parameters(scope: Scope<'_, '_>, method: &Method<'_>) -> Vec<TokenStream> {
    method.parameters_as(scope, |owned| quote! { &#owned })
}

/// The reply handler and the poller.
pub(super) fn beside(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let (handler, poller) = (handler(scope, definition, body), poller(scope, definition));
    quote! { #handler #poller }
}

fn handler(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let rt = scope.rt();
    let ident = &scope.cx.names.interface(definition.id).ami_handler;
    let doc =
        format!(" The reply handler of requests to a `{}` (`AMI_{}Handler`).", definition.scoped_name, definition.name);
    let bases: Vec<TokenStream> = if body.bases.is_empty() {
        vec![quote! { #rt::ReplyHandler }]
    } else {
        body.bases.iter().map(|&base| path(scope, base, ImpliedType::Handler)).collect()
    };
    let methods = method::own(scope.cx, definition.id);
    let declared = methods.iter().filter(|method| !method.oneway).map(|method| {
        let (success, failure) = handler_names(scope, method);
        let received = Received::new(scope, method);
        let (names, types, error) = (received.names(), &received.types, method.error(scope));
        if names.len() > 6 {
            scope.cx.allow("clippy::too_many_arguments");
        }
        let docs = [format!(" `{}` has succeeded.", method.operation), format!(" `{}` has failed.", method.operation)];
        let [succeeded, failed] = docs;
        quote! {
            #[doc = #succeeded]
            fn #success(&self, #( #names: #types ),*);
            #[doc = #failed]
            fn #failure(&self, excep_holder: #rt::ExceptionHolder<#error>);
        }
    });
    quote! {
        #[doc = #doc]
        pub trait #ident: #( #bases )+* { #( #declared )* }
    }
}

fn poller(scope: Scope<'_, '_>, definition: &Definition) -> TokenStream {
    let rt = scope.rt();
    let ident = &scope.cx.names.interface(definition.id).ami_poller;
    let doc = format!(" The poller of a request to a `{}` (`AMI_{}Poller`).", definition.scoped_name, definition.name);
    let mut getter_names = scope::Scope::default();
    let methods = method::flattened(scope.cx, definition.id);
    let getters = methods.iter().filter(|method| !method.oneway).map(|method| {
        let name = getter_names.take(&stem(&method.ident, method));
        let (result, error) = (everything(scope, method), method.error(scope));
        let operation = &method.operation;
        let doc = format!(" The outcome of `{operation}`; waits at most `timeout` milliseconds for it.");
        quote! {
            #[doc = #doc]
            #[inline]
            pub fn #name(&self, timeout: u32) -> Result<#result, #error> {
                self.0.take(#operation, timeout)
            }
        }
    });
    let getters: TokenStream = getters.collect();
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug)]
        pub struct #ident(#rt::Poller);
        impl ::std::ops::Deref for #ident {
            type Target = #rt::Poller;
            fn deref(&self) -> &#rt::Poller {
                &self.0
            }
        }
        impl #ident { #getters }
    }
}

/// The arguments of a handler: the return value, then `inout` and `out` values.
struct Received {
    names: Vec<Ident>,
    types: Vec<TokenStream>,
}

impl Received {
    fn new(scope: Scope<'_, '_>, method: &Method<'_>) -> Self {
        let mut locals = method.locals.clone();
        let result = method.result.map(|ty| (locals.take("ami_return_val"), ty));
        let returned = method.parameters.iter().filter(|parameter| parameter.is_returned());
        let returned = returned.map(|parameter| (parameter.ident.clone(), parameter.ty));
        let all: Vec<(Ident, &Type)> = result.into_iter().chain(returned).collect();
        let types = all.iter().map(|(_, ty)| scope.owned(ty)).collect();
        Self { names: all.into_iter().map(|(name, _)| name).collect(), types }
    }

    fn names(&self) -> &[Ident] {
        &self.names
    }

    fn pattern(&self) -> TokenStream {
        tuple(&self.names)
    }
}

/// The methods for success and for failure.
fn handler_names(scope: Scope<'_, '_>, method: &Method<'_>) -> (Ident, Ident) {
    let cx = scope.cx;
    let mut names_by_interface = cx.handlers.borrow_mut();
    let names = names_by_interface.entry(method.owner).or_insert_with(|| all_handler_names(cx, method.owner));
    names.get(&method.operation).cloned().expect("its owner declares each method")
}

/// The names for all operations of an interface. If it has an operation with a failure method's name, `_ami`
/// is inserted before `_excep` (17.8.2).
fn all_handler_names(cx: &types::Context<'_>, interface: DefId) -> HandlerNames {
    let own = method::own(cx, interface);
    let mut handler_names = scope::Scope::default();
    let successes: Vec<Ident> = own.iter().map(|own| handler_names.take(&stem(&own.ident, own))).collect();
    let names = own.into_iter().zip(successes).map(|(own, success)| {
        // The name with the inserted word is unique among the others.
        let plain = scope::plain(&success);
        let plain = plain.trim_end_matches('_');
        let mut failure = format!("{plain}_excep");
        let mut before = String::new();
        while handler_names.has(&failure) {
            before.push_str("_ami");
            failure = format!("{plain}{before}_excep");
        }
        (own.operation, (success, handler_names.take(&failure)))
    });
    names.collect()
}

#[derive(Clone, Copy)]
enum ImpliedType {
    Handler,
    Poller,
}

fn path(scope: Scope<'_, '_>, interface: DefId, implied_type: ImpliedType) -> TokenStream {
    let names = scope.cx.names.interface(interface);
    let ident = match implied_type {
        ImpliedType::Handler => &names.ami_handler,
        ImpliedType::Poller => &names.ami_poller,
    };
    scope.beside(interface, ident)
}
