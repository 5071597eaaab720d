//! Enumerations: on the wire an `unsigned long` that counts enumerators from zero (CORBA 3.3 Part 2, 9.3.2.6).

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::engines::Engine;
use super::interpreted;
use super::types::Scope;
use super::{attributes, docs, fixed, lints, prelude, typed};
use crate::model::{DefId, Definition, Enum};

/// An enumeration with its codec.
pub(super) fn enumeration(scope: Scope<'_, '_>, definition: &Definition, body: &Enum) -> TokenStream {
    let rt = scope.rt();
    let cx = scope.cx;
    lints::allow_variants(cx, body.enumerators.len());
    let ident = &cx.names.place(definition.id).ident;
    let name = prelude::plain(&ident.to_string()).to_owned();
    let doc = docs::attributes(&definition.doc);
    let variants: Vec<&Ident> = body.enumerators.iter().map(|&id| &cx.names.place(id).ident).collect();
    let docs = body.enumerators.iter().map(|&id| docs::attributes(&cx.model[id].doc));
    let default = default_enumerator(scope, body);
    let first = (0..variants.len()).map(|index| (index == default).then(|| quote! { #[default] }));
    let ordinals: Vec<Literal> = (0..variants.len()).map(Literal::usize_unsuffixed).collect();
    let further = attributes::further(scope, definition);
    // Compiled code of an enumerator is no shorter than its table, so an adaptive type has no switch.
    let codec = match interpreted::engine(scope, definition.id) {
        Engine::Compiled => codec(scope, ident),
        Engine::Interpretive | Engine::Adaptive => interpreted::enumeration(scope, ident, &variants),
    };
    let typed = typed::enumeration(scope, definition, body);
    quote! {
        #doc
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #further
        #[repr(u32)]
        pub enum #ident { #( #docs #first #variants = #ordinals ),* }
        impl TryFrom<u32> for #ident {
            type Error = #rt::CdrError;
            #[inline]
            fn try_from(value: u32) -> Result<Self, #rt::CdrError> {
                match value {
                    #( #ordinals => Ok(#ident::#variants), )*
                    value => Err(#rt::CdrError::BadEnum { name: #name, value }),
                }
            }
        }
        #codec
        impl #rt::FixedSize for #ident {
            const FIRST_ALIGN: usize = 4;
            const ALIGN: usize = 4;
            const SIZE: usize = 4;
            #[inline]
            fn put<const SWAP: bool>(&self, out: &mut [u8]) {
                <u32 as #rt::FixedSize>::put::<SWAP>(&(*self as u32), out);
            }
            #[inline]
            fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, #rt::CdrError> {
                <Self as TryFrom<u32>>::try_from(<u32 as #rt::FixedSize>::get::<SWAP>(input)?)
            }
        }
        #typed
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

fn codec(scope: Scope<'_, '_>, ident: &Ident) -> TokenStream {
    let rt = scope.rt();
    let (encode_slice, decode_vec) = fixed::forwards(scope);
    quote! {
        impl #rt::Encode for #ident {
            #[inline]
            fn encode<'a>(&'a self, out: &mut #rt::Encoder<'a>) -> Result<(), #rt::CdrError> {
                out.u32(*self as u32);
                Ok(())
            }
            #encode_slice
        }
        impl #rt::Decode for #ident {
            const MIN_OCTETS: usize = 4;
            #[inline]
            fn decode(input: &mut #rt::Decoder<'_>) -> Result<Self, #rt::CdrError> {
                <Self as TryFrom<u32>>::try_from(input.u32()?)
            }
            #decode_vec
        }
    }
}
