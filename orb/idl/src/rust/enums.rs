//! Enumerations: on the wire an `unsigned long` that counts enumerators from zero (CORBA 3.3 Part 2, 9.3.2.6).

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::engines::Engine;
use super::interpreted;
use super::types::Scope;
use super::{attributes, docs, lints};
use crate::model::{DefId, Definition, Enum};

/// An enumeration with its codec.
pub(super) fn enumeration(scope: Scope<'_, '_>, definition: &Definition, body: &Enum) -> TokenStream {
    let rt = scope.rt();
    let cx = scope.cx;
    lints::allow_variants(cx, body.enumerators.len());
    let ident = &cx.names.place(definition.id).ident;
    let doc = docs::attributes(&definition.doc);
    let variants: Vec<&Ident> = body.enumerators.iter().map(|&id| &cx.names.place(id).ident).collect();
    let docs = body.enumerators.iter().map(|&id| docs::attributes(&cx.model[id].doc));
    let default = default_enumerator(scope, body);
    let first = (0..variants.len()).map(|index| (index == default).then(|| quote! { #[default] }));
    let ordinals: Vec<Literal> = (0..variants.len()).map(Literal::usize_unsuffixed).collect();
    let further = attributes::further(scope, definition);
    let (id, idl) = (&definition.repository_id, &definition.name);
    let enumerators = body.enumerators.iter().map(|&id| &cx.model[id].name);
    let contents = quote! { #ident, #id, #idl #(, #variants = #ordinals #enumerators)* };
    // Compiled code of an enumerator is no shorter than its table, so an adaptive type has no switch.
    let codec = match interpreted::engine(scope, definition.id) {
        Engine::Compiled => quote! { #rt::enumeration! { #contents } },
        Engine::Interpretive | Engine::Adaptive => {
            let table = interpreted::enumeration(scope, ident, &variants);
            quote! { #table #rt::interpreted_enumeration! { #contents } }
        }
    };
    quote! {
        #doc
        #[derive(Clone, Copy, Debug, Default, PartialEq, Hash)]
        #further
        #[repr(u32)]
        pub enum #ident { #( #docs #first #variants = #ordinals ),* }
        #codec
    }
}

/// The first enumerator, or the one annotated as the default (IDL 4.2, 8.3.2.2).
fn default_enumerator(scope: Scope<'_, '_>, body: &Enum) -> usize {
    let is_default = |id: &DefId| {
        let annotations = &scope.cx.model[*id].annotations;
        annotations.iter().any(|annotation| annotation.name == "default_literal")
    };
    body.enumerators.iter().position(is_default).unwrap_or(0)
}
