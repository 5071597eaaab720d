//! Dispatch of a skeleton's operations: a table of their names with a perfect hash function, and an upcall by
//! index.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use spandrel_demux::perfect::Tables;

use super::method::Method;
use super::names;
use super::types::Scope;

/// The skeleton's part of the servant interface that runs operations. `run` writes the code that handles
/// `call` for one method.
pub(super) fn operations<'m>(
    scope: Scope<'_, '_>,
    mut methods: Vec<Method<'m>>,
    is_mutable: bool,
    run: impl Fn(&Method<'m>) -> TokenStream,
) -> TokenStream {
    let rt = scope.rt();
    if methods.is_empty() {
        return quote! {
            fn dispatch(&self, _operation: &str, call: #rt::ServerCall<'_>) -> Result<#rt::Replied, #rt::SystemException> {
                call.implicit(self)
            }
        };
    }
    methods.sort_by(|one, other| one.operation.cmp(&other.operation));
    let table = table(scope, &methods);
    let (operation, mutable) = (names::own("operation"), is_mutable.then(|| quote! { mut }));
    let indexes = (0..).map(Literal::usize_unsuffixed);
    let arms = indexes.zip(&methods).map(|(index, method)| {
        let body = run(method);
        quote! { #index => #body, }
    });
    quote! {
        fn operations(&self) -> &'static #rt::Operations {
            #table
        }
        fn upcall(&self, #operation: usize, #mutable call: #rt::ServerCall<'_>) -> Result<#rt::Replied, #rt::SystemException> {
            match #operation {
                #( #arms )*
                _ => call.implicit(self),
            }
        }
    }
}

/// The static table of these methods' names.
fn table(scope: Scope<'_, '_>, methods: &[Method<'_>]) -> TokenStream {
    let rt = scope.rt();
    let names: Vec<&str> = methods.iter().map(|method| method.operation.as_str()).collect();
    // Without a hash function the table is searched; no known set of names lacks one.
    let Tables { seed, displacements, places } =
        Tables::of(&names).unwrap_or(Tables { seed: 0, displacements: Vec::new(), places: Vec::new() });
    let seed = Literal::u32_unsuffixed(seed);
    let displacements = displacements.into_iter().map(Literal::u16_unsuffixed);
    let places = places.into_iter().map(Literal::u32_unsuffixed);
    quote! {
        static OPERATIONS: #rt::Operations =
            #rt::Operations::new(&[ #( #names ),* ], #seed, &[ #( #displacements ),* ], &[ #( #places ),* ]);
        &OPERATIONS
    }
}
