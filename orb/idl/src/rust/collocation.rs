//! Direct collocation: stubs that call the servant's method if the object is in the same ORB.
//!
//! A skeleton offers itself as each of the servant traits that it implements; a stub requests the one that
//! declares its operation. One-way operations, operations with contexts, and those with values, which a
//! request copies, still go by request.

use proc_macro2::TokenStream;
use quote::quote;

use super::method::Method;
use super::types::Scope;
use super::upcall::servant_path;
use super::{Collocation, Sides};
use crate::model::{DefId, Definition, Interface};

/// The direct call that a stub tries first.
pub(super) fn attempt(scope: Scope<'_, '_>, method: &Method<'_>) -> Option<TokenStream> {
    if !is_wanted(scope) || !is_direct(scope, method) {
        return None;
    }
    let rt = scope.rt();
    let (operation, ident, trait_path) = (&method.operation, &method.ident, servant_path(scope, method.owner));
    let (servant, outcome) = (method.local("servant"), method.local("outcome"));
    let arguments = method.argument_names();
    Some(quote! {
        if let Some(#outcome) = #rt::direct::<dyn #trait_path, _, _>(self, #operation, |#servant| {
            #trait_path::#ident(#servant, #( #arguments ),*)
        }) {
            return #outcome;
        }
    })
}

/// The traits as which a skeleton can be called.
pub(super) fn facets(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> Option<TokenStream> {
    if !is_offered(scope, body) {
        return None;
    }
    let rt = scope.rt();
    let names = scope.cx.names.interface(definition.id);
    let (own, skeleton, implementation) = (&names.servant, &names.skeleton, &scope.cx.implementation);
    let facets = traits(scope, definition, body).map(|facet| {
        quote! {
            impl<#implementation: #own + 'static> #rt::Facet<dyn #facet> for #skeleton<#implementation> {
                #[inline]
                fn facet(&self) -> &(dyn #facet + 'static) {
                    &self.0
                }
            }
        }
    });
    Some(facets.collect())
}

/// The method with which it offers itself.
pub(super) fn offer(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> Option<TokenStream> {
    if !is_offered(scope, body) {
        return None;
    }
    let rt = scope.rt();
    let (skeleton, implementation) = (&scope.cx.names.interface(definition.id).skeleton, &scope.cx.implementation);
    let mut facets = traits(scope, definition, body);
    let own = facets.next();
    let bases = facets.map(|base| quote! { .or_else(|skeleton| #rt::offer::<dyn #base, _>(skeleton, place)) });
    Some(quote! {
        fn direct(skeleton: #rt::Arc<#skeleton<#implementation>>, place: &mut dyn ::std::any::Any) {
            let _ = #rt::offer::<dyn #own, _>(skeleton, place) #( #bases )*;
        }
    })
}

/// The servant traits of an interface and its bases, its own first.
fn traits<'s>(
    scope: Scope<'s, '_>,
    definition: &Definition,
    body: &'s Interface,
) -> impl Iterator<Item = TokenStream> + use<'s> {
    let ids: Vec<DefId> = std::iter::once(definition.id).chain(body.all_bases.iter().copied()).collect();
    ids.into_iter().map(move |id| servant_path(scope, id))
}

/// Whether skeletons of an interface offer themselves for direct calls: unless it has a base of another crate, whose trait
/// cannot be implemented for skeletons, a type of the runtime.
pub(super) fn is_offered(scope: Scope<'_, '_>, body: &Interface) -> bool {
    is_wanted(scope) && body.all_bases.iter().all(|&base| scope.cx.externals.is_own(base))
}

/// Whether stubs have direct calls.
pub(super) fn is_wanted(scope: Scope<'_, '_>) -> bool {
    scope.cx.collocation == Collocation::Direct && scope.cx.sides == Sides::Both
}

/// Whether a call has the same effect with and without marshaling.
fn is_direct(scope: Scope<'_, '_>, method: &Method<'_>) -> bool {
    let (model, values) = (scope.cx.model, &scope.cx.values);
    let mut types = method.parameters.iter().map(|parameter| parameter.ty).chain(method.result);
    !method.oneway
        && method.context.is_none()
        && !types.any(|ty| values.holds_values(model, ty))
        && !method.raises.iter().any(|&exception| values.holds(exception))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Collocation, Options, generate};
    use crate::{FrontEndOptions, MemoryFiles, compile_with};

    const IDL: &str = r"
    valuetype Memo { public string text; };
    exception Refused { Memo why; };
    interface Base { void ping(); };
    interface Desk : Base {
      long add(in long a, inout long servant);
      void keep(in Memo memo);
      void refuse() raises (Refused);
      void say() context (`place`);
      oneway void note();
      readonly attribute string name;
    };
    ";

    fn rust(options: &Options) -> String {
        let files = MemoryFiles::new().with("desk.idl", IDL.replace('`', "\""));
        let model =
            compile_with(&FrontEndOptions::default(), &files, Path::new("desk.idl")).expect("the IDL is correct");
        // At the top level nothing is imported, and long lines are broken.
        let rust = generate(&model, options).replace("::spandrel::generated", "rt");
        rust.split_whitespace().collect::<Vec<_>>().join(" ").replace("< ", "<").replace(", >", ">")
    }

    #[test]
    fn stubs_try_direct_calls_that_need_no_marshaling() {
        let rust = rust(&Options::new().collocation(Collocation::Direct));
        let tried: Vec<&str> = rust.split("rt::direct::<").skip(1).filter_map(|rest| rest.split('"').nth(1)).collect();
        assert_eq!(tried, ["ping", "add", "_get_name"]);
        let offers = "rt::offer::<dyn DeskServant, _>(skeleton, place)";
        assert!(rust.contains(offers) && rust.contains("rt::Facet<dyn BaseServant> for DeskSkeleton<S>"), "{rust}");
    }

    #[test]
    fn without_the_option_no_direct_calls_are_generated() {
        let rust = rust(&Options::new());
        assert!(!rust.contains("direct") && !rust.contains("Facet"), "{rust}");
    }
}
