//! Operations and attributes as methods: the common part of the reference, the servant trait and the
//! skeleton. A `context` clause becomes the last parameter; `arguments` encodes it, and `servant` decodes it.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::scope;
use super::types::{self, Scope};
use super::{docs, lints, names};
use crate::model::{DefId, DefinitionKind, ParameterMode, Type};

/// Maximum number of arguments and of results in a tuple: the runtime has tuples up to this size.
pub(super) const MAX_TUPLE: usize = 8;

/// A method with all data needed to write it. An attribute is one or two of them.
pub(super) struct Method<'m> {
    /// The interface that declares it.
    pub(super) owner: DefId,
    /// Its name in the servant trait, and in references unless another inherited method came first.
    pub(super) ident: Ident,
    /// The operation's name in messages.
    pub(super) operation: String,
    pub(super) oneway: bool,
    pub(super) doc: &'m [String],
    pub(super) parameters: Vec<Parameter<'m>>,
    pub(super) result: Option<&'m Type>,
    /// The parameter for the request's context, with the names that are sent.
    pub(super) context: Option<Context<'m>>,
    pub(super) raises: &'m [DefId],
    /// The alias of its error enum in the owner's module, if it raises anything.
    pub(super) error: Option<Ident>,
    /// Gives names to locals that no parameter has.
    pub(super) locals: scope::Scope,
}

/// The `context` clause of an operation.
pub(super) struct Context<'m> {
    pub(super) ident: Ident,
    pub(super) names: &'m [String],
}

pub(super) struct Parameter<'m> {
    pub(super) ident: Ident,
    pub(super) mode: ParameterMode,
    pub(super) ty: &'m Type,
}

impl Parameter<'_> {
    /// Whether the client sends it.
    pub(super) fn is_sent(&self) -> bool {
        self.mode != ParameterMode::Out
    }

    /// Whether the server sends it back.
    pub(super) fn is_returned(&self) -> bool {
        self.mode != ParameterMode::In
    }
}

/// The methods that an interface declares itself.
pub(super) fn own<'m>(cx: &types::Context<'m>, interface: DefId) -> Vec<Method<'m>> {
    cx.model.contents(interface).iter().flat_map(|&id| methods(cx, interface, id)).collect()
}

/// The methods of an interface's objects, inherited ones first; each once.
pub(super) fn flattened<'m>(cx: &types::Context<'m>, interface: DefId) -> Vec<Method<'m>> {
    let bases = cx.model[interface].as_interface().map_or(&[][..], |body| &body.all_bases);
    bases.iter().chain([&interface]).flat_map(|&owner| own(cx, owner)).collect()
}

/// A method of a reference with its Rust names.
pub(super) struct NamedMethod<'m> {
    pub(super) ident: Ident,
    /// The name of the asynchronous form.
    pub(super) asynchronous: Ident,
    pub(super) method: Method<'m>,
}

/// The methods of an interface's objects, inherited ones first, with the names that they have in its reference; and
/// all names taken by them.
pub(super) fn named<'m>(cx: &types::Context<'m>, interface: DefId) -> (Vec<NamedMethod<'m>>, scope::Scope) {
    // Unrelated bases may have methods with the same Rust name.
    let mut method_names = scope::Scope::default();
    let flattened = flattened(cx, interface);
    let synchronous: Vec<_> =
        flattened.into_iter().map(|method| (method_names.take_ident(&method.ident), method)).collect();
    if cx.asynchronous.client {
        method_names.take("narrow_async");
    }
    let named = synchronous.into_iter().map(|(ident, method)| {
        let form = format!("{}_async", scope::plain(&ident).trim_end_matches('_'));
        let asynchronous = if cx.asynchronous.client { method_names.take(&form) } else { ident.clone() };
        NamedMethod { ident, asynchronous, method }
    });
    (named.collect(), method_names)
}

fn methods<'m>(cx: &types::Context<'m>, owner: DefId, id: DefId) -> Vec<Method<'m>> {
    let definition = &cx.model[id];
    if !super::contents::is_method(definition) {
        return Vec::new();
    }
    let names = cx.names.method(id);
    let blank = |ident: &Ident, operation: String| Method {
        owner,
        ident: ident.clone(),
        operation,
        oneway: false,
        doc: &definition.doc,
        parameters: Vec::new(),
        result: None,
        context: None,
        raises: &[],
        error: None,
        locals: scope::Scope::default(),
    };
    match &definition.kind {
        DefinitionKind::Operation(body) => {
            let (idents, mut locals) = names::parameters(&body.parameters);
            let context =
                (!body.context.is_empty()).then(|| Context { ident: locals.take("context"), names: &body.context });
            let parameters = idents.into_iter().zip(&body.parameters);
            vec![Method {
                oneway: body.oneway,
                parameters: parameters
                    .map(|(ident, parameter)| Parameter { ident, mode: parameter.mode, ty: &parameter.ty })
                    .collect(),
                result: body.result.as_ref(),
                context,
                raises: &body.raises,
                error: names.error.clone(),
                locals,
                ..blank(&names.call, definition.name.clone())
            }]
        }
        DefinitionKind::Attribute(body) => {
            let getter = Method {
                result: Some(&body.ty),
                raises: &body.get_raises,
                error: names.error.clone(),
                ..blank(&names.call, format!("_get_{}", definition.name))
            };
            let setter = names.setter.as_ref().map(|ident| {
                let mut locals = scope::Scope::default();
                let value = Parameter { ident: locals.take("value"), mode: ParameterMode::In, ty: &body.ty };
                Method {
                    parameters: vec![value],
                    raises: &body.set_raises,
                    error: names.setter_error.clone(),
                    locals,
                    ..blank(ident, format!("_set_{}", definition.name))
                }
            });
            [getter].into_iter().chain(setter).collect()
        }
        other => unreachable!("{} is no method", other.keyword()),
    }
}

impl<'m> Method<'m> {
    /// A name for a local variable.
    pub(super) fn local(&self, name: &str) -> Ident {
        self.locals.clone().take(name)
    }

    /// Whether a request has a body.
    pub(super) fn sends(&self) -> bool {
        self.context.is_some() || self.parameters.iter().any(Parameter::is_sent)
    }

    /// The names of the parameters of the Rust method.
    pub(super) fn argument_names(&self) -> impl Iterator<Item = &Ident> {
        let sent = self.parameters.iter().filter(|parameter| parameter.is_sent()).map(|parameter| &parameter.ident);
        sent.chain(self.context.iter().map(|context| &context.ident))
    }

    /// The parameters returned by the server besides the result, in order.
    pub(super) fn outs(&self) -> impl Iterator<Item = &Parameter<'m>> {
        self.parameters.iter().filter(|parameter| parameter.mode == ParameterMode::Out)
    }

    /// Whether the reply consists of the servant's result, which is one value or a tuple.
    pub(super) fn replies_what_the_servant_returns(&self) -> bool {
        let returned = self.parameters.iter().filter(|parameter| parameter.is_returned()).count();
        returned == self.outs().count() && returned + usize::from(self.result.is_some()) <= MAX_TUPLE
    }

    pub(super) fn docs(&self) -> TokenStream {
        docs::attributes(self.doc)
    }

    /// `deposit(&self, amount: i64) -> Result<i64, account::DepositError>`, under this name.
    pub(super) fn signature(&self, scope: Scope<'_, 'm>, ident: &Ident) -> TokenStream {
        self.allow_lints(scope.cx);
        let parameters = self.parameters_as(scope, |owned| quote! { &mut #owned });
        let (result, error) = (self.result(scope), self.error(scope));
        quote! { fn #ident(&self, #( #parameters ),*) -> Result<#result, #error> }
    }

    /// The caller's arguments, with `inout` parameters in the form that `inout` makes of their types.
    pub(super) fn parameters_as(
        &self,
        scope: Scope<'_, 'm>,
        inout: impl Fn(TokenStream) -> TokenStream,
    ) -> Vec<TokenStream> {
        let parameters = self.parameters.iter().filter(|parameter| parameter.mode != ParameterMode::Out);
        let parameters = parameters.map(|Parameter { ident, mode, ty }| {
            let ty = match mode {
                ParameterMode::InOut => inout(scope.owned(ty)),
                _ => scope.argument(ty),
            };
            quote! { #ident: #ty }
        });
        let context = self.context.iter().map(|Context { ident, .. }| {
            let rt = scope.rt();
            quote! { #ident: &#rt::Context }
        });
        parameters.chain(context).collect()
    }

    /// The type of the result: the return value and the `out` values; a tuple unless there is exactly one.
    pub(super) fn result(&self, scope: Scope<'_, 'm>) -> TokenStream {
        let outs = self.outs().map(|parameter| parameter.ty);
        let parts: Vec<TokenStream> = self.result.into_iter().chain(outs).map(|ty| scope.owned(ty)).collect();
        tuple(&parts)
    }

    /// The type of the error.
    pub(super) fn error(&self, scope: Scope<'_, 'm>) -> TokenStream {
        let rt = scope.rt();
        match &self.error {
            Some(error) => scope.within(self.owner, error),
            None => quote! { #rt::SystemException },
        }
    }

    /// The default of the method in a servant trait: an expression that raises NO_IMPLEMENT, and a statement
    /// that uses the arguments. `None` without the option.
    pub(super) fn default(&self, scope: Scope<'_, 'm>) -> Option<(TokenStream, TokenStream)> {
        let (rt, operation) = (scope.rt(), &self.operation);
        let raise = match self.error {
            Some(_) => quote! { Err(From::from(#rt::not_implemented(#operation))) },
            None => quote! { Err(#rt::not_implemented(#operation)) },
        };
        let arguments = self.argument_names();
        scope.cx.servant_defaults.then(|| (quote! { #( let _ = #arguments; )* }, raise))
    }

    fn allow_lints(&self, cx: &types::Context<'_>) {
        if self.argument_names().count() > 6 {
            cx.allow("clippy::too_many_arguments");
        }
        let results: Vec<&Type> = self.result.into_iter().chain(self.outs().map(|out| out.ty)).collect();
        let around = if results.len() > 1 { 2 + results.len() as u32 / 2 } else { 1 };
        results.iter().for_each(|ty| lints::allow_complex(cx, ty, around));
        lints::allow_large_errors(cx, self.raises);
        allow_name(cx, &self.ident);
    }
}

/// Allows the lints against methods whose names have a meaning to clippy.
pub(super) fn allow_name(cx: &types::Context<'_>, method: &Ident) {
    let name = method.to_string();
    if name.starts_with("from_") || name.starts_with("into_") || name.starts_with("to_") {
        cx.allow("clippy::wrong_self_convention");
    }
    match name.as_str() {
        "new" => cx.allow("clippy::new_ret_no_self"),
        "len" => cx.allow("clippy::len_without_is_empty"),
        _ if LIKE_TRAIT_METHODS.contains(&name.as_str()) => cx.allow("clippy::should_implement_trait"),
        _ => {}
    }
}

/// Methods of standard traits that take `&self`; clippy prefers an implementation of the trait.
const LIKE_TRAIT_METHODS: &[&str] =
    &["as_mut", "as_ref", "borrow", "borrow_mut", "clone", "cmp", "deref", "eq", "hash", "index"];

/// `()`, the only part, or a tuple.
pub(super) fn tuple<T: quote::ToTokens>(parts: &[T]) -> TokenStream {
    match parts {
        [only] => quote! { #only },
        parts => quote! { ( #( #parts ),* ) },
    }
}

/// The form in which a call returns its results.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ReceivedResults {
    /// Several results are a tuple, a single one is the value itself.
    Values,
    /// All results are a tuple, a single one too.
    Tuple,
}

/// The code after the call: the results as the method returns them, and assignments to `inout` parameters. `None` if
/// the method returns what the call does.
pub(super) fn store(method: &Method<'_>, form: ReceivedResults) -> Option<TokenStream> {
    let mut locals = method.locals.clone();
    let mut received: Vec<Ident> = method.result.iter().map(|_| locals.take("result")).collect();
    let mut returned = received.clone();
    let mut stores = Vec::new();
    for parameter in method.parameters.iter().filter(|parameter| parameter.is_returned()) {
        let ident = &parameter.ident;
        if parameter.mode == ParameterMode::Out {
            received.push(ident.clone());
            returned.push(ident.clone());
        } else {
            let value = locals.take(&format!("new_{}", scope::plain(ident)));
            stores.push(quote! { *#ident = #value; });
            received.push(value);
        }
    }
    let is_wrapped = form == ReceivedResults::Tuple && received.len() == 1;
    if stores.is_empty() && !is_wrapped {
        return None;
    }
    let received = if is_wrapped {
        quote! { (#( #received, )*) }
    } else {
        tuple(&received)
    };
    let returned = (!returned.is_empty()).then(|| tuple(&returned));
    Some(quote! { .map(|#received| { #( #stores )* #returned }) })
}
