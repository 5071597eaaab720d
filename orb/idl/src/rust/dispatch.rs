//! Dispatch of a skeleton's operations: a table of their names with a perfect hash function, and an upcall by
//! index.
//!
//! The skeleton of an interface with bases runs inherited operations by the skeletons of the interfaces that declare
//! them: their code exists once for each type of servant.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use spandrel_demux::perfect::{self, Tables};

use super::collocation;
use super::method::{self, Method};
use super::names;
use super::types::Scope;
use crate::model::DefId;

/// The variable of the servant in the code that runs an operation, and a statement before the code for a parameter that is
/// called `servant`, too.
pub(super) fn servant(method: &Method<'_>) -> (TokenStream, Option<TokenStream>) {
    let servant = method.local("servant");
    let renamed = (servant != "servant").then(|| quote! { let #servant = servant; });
    (quote! { #servant }, renamed)
}

/// The dispatch of an interface to an implementation of its servant trait. `run` writes the code that handles `call` for
/// one method; `reads` is whether that code reads arguments.
pub(super) fn to_servant<'m>(
    scope: Scope<'_, 'm>,
    interface: DefId,
    reads: impl Fn(&Method<'m>) -> bool,
    run: impl Fn(&Method<'m>) -> TokenStream,
) -> TokenStream {
    let rt = scope.rt();
    let methods = sorted(scope, interface);
    if methods.is_empty() {
        return TokenStream::new();
    }
    let is_inherited = |method: &Method<'_>| method.owner != interface && dispatches_itself(scope, method.owner);
    let is_mutable = methods.iter().any(|method| !is_inherited(method) && reads(method));
    let (operation, mutable) = (names::own("operation"), is_mutable.then(|| quote! { mut }));
    let indexes = methods.iter().map(|method| if is_inherited(method) { index_in_declaring(scope, method) } else { 0 });
    let indexes: Vec<usize> = indexes.collect();
    let own = arms(&methods, |method| (!is_inherited(method)).then(|| run(method)));
    let inherited: Vec<&Method<'_>> = methods.iter().filter(|method| is_inherited(method)).collect();
    let indexes = (!inherited.is_empty()).then(|| declare_indexes(&indexes));
    let mut declaring: Vec<DefId> = inherited.iter().map(|method| method.owner).collect();
    declaring.sort_unstable();
    declaring.dedup();
    let inherited = declaring.into_iter().map(|owner| {
        let of_owner = methods.iter().enumerate().filter(|(_, method)| method.owner == owner);
        let positions = ranges(of_owner.map(|(position, _)| position));
        let declaring = scope.path(owner);
        let function = match scope.cx.externals.is_own(owner) {
            true => quote! { inherited::<#declaring, _, _> },
            false => {
                let fingerprint = fingerprint(&sorted(scope, owner));
                quote! { inherited_external::<#declaring, _, _, #fingerprint> }
            }
        };
        quote! { #( #positions )|* => #rt::#function(servant, skeleton, INDEXES[#operation], call), }
    });
    let (table, fingerprint) = (table(scope, &methods), fingerprint(&methods));
    let implementation = &scope.cx.implementation;
    quote! {
        const FINGERPRINT: u32 = #fingerprint;
        fn operations() -> &'static #rt::Operations {
            #table
        }
        fn upcall_on(
            servant: &#implementation,
            skeleton: &dyn #rt::Servant,
            #operation: usize,
            #mutable call: #rt::ServerCall<'_>
        ) -> #rt::Answered {
            #indexes
            match #operation {
                #own
                #( #inherited )*
                _ => call.implicit(skeleton),
            }
        }
    }
}

/// Whether an interface has a dispatch for the servants of interfaces derived from it. That of another file has one for
/// sized servants alone if it offers direct calls, which skeletons of the derived interfaces do not.
fn dispatches_itself(scope: Scope<'_, '_>, base: DefId) -> bool {
    scope.cx.externals.is_own(base) || !collocation::is_wanted(scope)
}

/// The table `INDEXES`: octets, if the numbers are small enough.
fn declare_indexes(indexes: &[usize]) -> TokenStream {
    let octets: Result<Vec<u8>, _> = indexes.iter().map(|&index| u8::try_from(index)).collect();
    match octets {
        Ok(octets) => {
            let octets = Literal::byte_string(&octets);
            quote! { const INDEXES: &[u8] = #octets; }
        }
        Err(_) => {
            let indexes = indexes.iter().map(|&index| Literal::usize_unsuffixed(index));
            quote! { const INDEXES: &[u16] = &[ #( #indexes ),* ]; }
        }
    }
}

/// The index of an operation in the table of the interface that declares it.
fn index_in_declaring(scope: Scope<'_, '_>, method: &Method<'_>) -> usize {
    let index = sorted(scope, method.owner).iter().position(|one| one.operation == method.operation);
    index.unwrap_or_else(|| unreachable!("the interface declares it"))
}

/// A hash of the names of a table: interfaces of other files name operations of this one by their indexes in it.
fn fingerprint(methods: &[Method<'_>]) -> Literal {
    let names: Vec<&str> = methods.iter().map(|method| method.operation.as_str()).collect();
    Literal::u32_unsuffixed(perfect::hash(0, names.join(" ").as_bytes()) as u32)
}

/// The methods of an interface's objects in the order of the table.
fn sorted<'m>(scope: Scope<'_, 'm>, interface: DefId) -> Vec<Method<'m>> {
    let mut methods = method::flattened(scope.cx, interface);
    methods.sort_by(|one, other| one.operation.cmp(&other.operation));
    methods
}

/// The methods of the servant interface for an interface without operations.
fn without_operations(scope: Scope<'_, '_>) -> TokenStream {
    let rt = scope.rt();
    quote! {
        fn dispatch(&self, _operation: &str, call: #rt::ServerCall<'_>) -> #rt::Answered {
            call.implicit(self)
        }
    }
}

/// The methods of the servant interface that run all operations, inherited ones included. `run` writes the code that
/// handles `call` for one method.
pub(super) fn by_methods<'m>(
    scope: Scope<'_, 'm>,
    interface: DefId,
    run: impl Fn(&Method<'m>) -> TokenStream,
) -> TokenStream {
    let rt = scope.rt();
    let methods = sorted(scope, interface);
    if methods.is_empty() {
        return without_operations(scope);
    }
    let table = table(scope, &methods);
    let operation = names::own("operation");
    let arms = arms(&methods, |method| Some(run(method)));
    quote! {
        fn operations(&self) -> &'static #rt::Operations {
            #table
        }
        fn upcall(&self, #operation: usize, call: #rt::ServerCall<'_>) -> #rt::Answered {
            match #operation {
                #arms
                _ => call.implicit(self),
            }
        }
    }
}

/// The arms of a match of the operation's index, for the operations that `run` writes code of.
fn arms<'m>(methods: &[Method<'m>], run: impl Fn(&Method<'m>) -> Option<TokenStream>) -> TokenStream {
    let indexes = (0..).map(Literal::usize_unsuffixed);
    let arms = indexes.zip(methods).filter_map(|(index, method)| {
        let body = run(method)?;
        Some(quote! { #index => #body, })
    });
    arms.collect()
}

/// The patterns of ascending numbers: `2..=5` of those that follow each other.
fn ranges(numbers: impl Iterator<Item = usize>) -> Vec<TokenStream> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let patterns = ranges.into_iter().map(|(first, last)| {
        let [from, to] = [first, last].map(Literal::usize_unsuffixed);
        if first == last {
            quote! { #from }
        } else {
            quote! { #from..=#to }
        }
    });
    patterns.collect()
}

/// The static table of these methods' names.
fn table(scope: Scope<'_, '_>, methods: &[Method<'_>]) -> TokenStream {
    let rt = scope.rt();
    let names: Vec<&str> = methods.iter().map(|method| method.operation.as_str()).collect();
    // Without a hash function the names are searched; no known set of names lacks one.
    let tables = Tables::of(&names).and_then(|tables| Some((tables.seed, tables.to_octets()?)));
    let (seed, octets) = tables.unwrap_or_default();
    let (seed, octets) = (Literal::u32_unsuffixed(seed), Literal::byte_string(&octets));
    quote! {
        static OPERATIONS: #rt::Operations = #rt::Operations::new(&[ #( #names ),* ], #seed, #octets);
        &OPERATIONS
    }
}
