//! Straight-line code for structs of fixed layout: each member at its offset in the [layout].

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::layout::{self, Layout, Placed};
use super::types::Scope;
use super::{names, padded};
use crate::model::{DefId, Definition, Model, Primitive, Type};

/// The layout of a struct, if straight-line code is worthwhile for it.
pub(super) fn layout_of_struct(scope: Scope<'_, '_>, id: DefId) -> Option<Layout<DefId>> {
    let model = scope.cx.model;
    if !scope.cx.leaf_counts.is_small(id) {
        return None;
    }
    let fields = |id: DefId| {
        let members = model[id].as_struct().map_or(&[][..], |body| &body.members);
        (id, names::fields(members))
    };
    layout::shape(model, &Type::Named(id), &fields)?.layout()
}

/// `encode_slice` and `decode_vec` for types that implement `FixedSize`.
pub(super) fn forwards(scope: Scope<'_, '_>) -> (TokenStream, TokenStream) {
    let rt = scope.rt();
    let encode_slice = quote! {
        #[inline]
        fn encode_slice<'a>(items: &'a [Self], out: &mut #rt::Encoder<'a>) -> Result<(), #rt::CdrError> {
            #rt::encode_fixed_slice(items, out)
        }
    };
    let decode_vec = quote! {
        #[inline]
        fn decode_vec(input: &mut #rt::Decoder<'_>, len: usize) -> Result<Vec<Self>, #rt::CdrError> {
            #rt::decode_fixed_vec(input, len)
        }
    };
    (encode_slice, decode_vec)
}

/// The implementation of `FixedSize` for a struct.
pub(super) fn structure(scope: Scope<'_, '_>, definition: &Definition, layout: &Layout<DefId>) -> TokenStream {
    let rt = scope.rt();
    let ident = &scope.cx.names.place(definition.id).ident;
    let numbers = [layout.first_align, layout.align, layout.size].map(Literal::usize_unsuffixed);
    let [first_align, align, size] = &numbers;
    let mut puts = Puts { rt: rt.clone(), end: 0, steps: TokenStream::new() };
    puts.put(&layout.root, &quote! { self });
    let (puts, get) = (puts.steps, get(scope, &layout.root, true));
    // Their octets depend on the code set.
    let has_chars = has_char(scope.cx.model, &Type::Named(definition.id));
    let has_chars = has_chars.then(|| quote! { const HAS_CHARS: bool = true; });
    quote! {
        impl #rt::FixedSize for #ident {
            const FIRST_ALIGN: usize = #first_align;
            const ALIGN: usize = #align;
            const SIZE: usize = #size;
            #has_chars
            #[inline]
            fn put<const SWAP: bool>(&self, out: &mut [u8]) {
                let out: &mut [u8; #size] = out.try_into().expect("SIZE octets");
                #puts
            }
            #[inline]
            fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, #rt::CdrError> {
                let input: &[u8; #size] = input.try_into().expect("SIZE octets");
                Ok(#get)
            }
        }
    }
}

/// Whether a type of fixed layout, which is a small one, contains a `char`.
fn has_char(model: &Model, ty: &Type) -> bool {
    match model.resolve(ty) {
        Type::Primitive(primitive) => *primitive == Primitive::Char,
        Type::Array { element, .. } => has_char(model, element),
        Type::Named(id) => {
            model[*id].as_struct().is_some_and(|body| body.members.iter().any(|member| has_char(model, &member.ty)))
        }
        _ => false,
    }
}

/// Encoding, leaf after leaf, with zeros in the gaps.
struct Puts {
    rt: TokenStream,
    end: usize,
    steps: TokenStream,
}

impl Puts {
    fn put(&mut self, placed: &Placed<DefId>, value: &TokenStream) {
        match placed {
            Placed::Leaf { offset, size } => {
                let Self { rt, end, .. } = self;
                let octets = range(*offset, *size);
                let padding = (*end < *offset).then(|| {
                    let gap = range(*end, *offset - *end);
                    quote! { out[#gap].fill(0); }
                });
                *end = offset + size;
                self.steps.extend(quote! { #padding #rt::FixedSize::put::<SWAP>(&#value, &mut out[#octets]); });
            }
            Placed::Array(elements) => elements.iter().enumerate().for_each(|(index, element)| {
                let index = Literal::usize_unsuffixed(index);
                self.put(element, &quote! { #value[#index] });
            }),
            Placed::Struct(_, members) => {
                members.iter().for_each(|(field, member)| self.put(member, &quote! { #value.#field }));
            }
        }
    }
}

/// The expression that decodes a value.
fn get(scope: Scope<'_, '_>, placed: &Placed<DefId>, outermost: bool) -> TokenStream {
    let rt = scope.rt();
    match placed {
        Placed::Leaf { offset, size } => {
            let octets = range(*offset, *size);
            quote! { #rt::FixedSize::get::<SWAP>(&input[#octets])? }
        }
        Placed::Array(elements) => {
            let elements = elements.iter().map(|element| get(scope, element, false));
            quote! { [ #( #elements ),* ] }
        }
        Placed::Struct(id, members) => {
            let name = if outermost {
                quote! { Self }
            } else {
                scope.path(*id)
            };
            let fields = members.iter().map(|(field, _)| field.clone()).collect::<Vec<Ident>>();
            let values = members.iter().map(|(field, member)| {
                let value = get(scope, member, false);
                quote! { #field: #value }
            });
            let values = values.chain(padded::zeros(scope, *id, &fields));
            quote! { #name { #( #values ),* } }
        }
    }
}

fn range(offset: usize, size: usize) -> TokenStream {
    let (start, end) = (Literal::usize_unsuffixed(offset), Literal::usize_unsuffixed(offset + size));
    quote! { #start..#end }
}
