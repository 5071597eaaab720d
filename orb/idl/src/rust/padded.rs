//! Additional code of structs with explicit padding: fields for gaps, derives, and a check of member offsets.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::layout::Shape;
use super::padding::{Kind, size_and_alignment, struct_shape};
use super::types::Scope;
use crate::model::DefId;

/// The additional derives of such a struct or enum.
pub(super) fn derives(scope: Scope<'_, '_>, id: DefId) -> Option<TokenStream> {
    let kind = scope.cx.padding.has(id)?;
    let rt = scope.rt();
    let path = quote! { #rt::zerocopy };
    // The derives do not use the local name `rt`.
    let runtime = &scope.cx.runtime;
    let text = quote! { #runtime::zerocopy }.to_string().replace(' ', "");
    let layout = (kind == Kind::Struct).then(|| quote! { #[repr(C)] });
    Some(quote! {
        #[derive(#path::Immutable, #path::IntoBytes, #path::KnownLayout, #path::TryFromBytes)]
        #[zerocopy(crate = #text)]
        #layout
    })
}

/// `encode_slice` and `lend` of such a struct.
pub(super) fn forwards(scope: Scope<'_, '_>) -> (TokenStream, TokenStream) {
    let rt = scope.rt();
    let encode_slice = quote! {
        #[inline]
        fn encode_slice<'a>(items: &'a [Self], out: &mut #rt::Encoder<'a>) -> Result<(), #rt::CdrError> {
            #rt::encode_padded_slice(items, out)
        }
    };
    let lend = quote! {
        #[inline]
        fn lend<'m>(input: &mut #rt::Decoder<'m>) -> Result<#rt::Cow<'m, [Self]>, #rt::CdrError> {
            #rt::lend_padded(input)
        }
    };
    (encode_slice, lend)
}

/// A compile-time check that each member is at its CDR offset.
pub(super) fn check(scope: Scope<'_, '_>, id: DefId) -> Option<TokenStream> {
    let cx = scope.cx;
    if !cx.padding.is_padded(id) {
        return None;
    }
    let Some(Shape::Struct(_, members)) = struct_shape(cx.model, id) else { return None };
    let ident = &cx.names.place(id).ident;
    let mut end = 0usize;
    let checks = members.iter().map(|(field, member)| {
        let (size, align) = size_and_alignment(member);
        let offset = end.next_multiple_of(align);
        end = offset + size;
        let offset = Literal::usize_unsuffixed(offset);
        quote! { assert!(::std::mem::offset_of!(#ident, #field) == #offset); }
    });
    Some(quote! { const _: () = { #( #checks )* }; })
}

/// `pad_3: Pad::ZERO`, for each gap in the construction of a struct.
pub(super) fn zeros(scope: Scope<'_, '_>, id: DefId, members: &[Ident]) -> Vec<TokenStream> {
    let rt = scope.rt();
    let fields = scope.cx.padding.fields(id, members);
    fields.iter().map(|(_, field, _)| quote! { #field: #rt::Pad::ZERO }).collect()
}

/// The declarations of a struct's fields, including gaps.
pub(super) fn declare(
    scope: Scope<'_, '_>,
    id: DefId,
    members: &[Ident],
    declared: Vec<TokenStream>,
) -> Vec<TokenStream> {
    let rt = scope.rt();
    let mut gaps = scope.cx.padding.fields(id, members).into_iter().peekable();
    let mut fields = Vec::new();
    let gap = |ident: Ident, octets: usize| {
        let (octets, doc) =
            (Literal::usize_unsuffixed(octets), " Zeros: padding between members, in memory and in messages.");
        quote! { #[doc = #doc] pub #ident: #rt::Pad<#octets> }
    };
    for (nth, member) in declared.into_iter().enumerate() {
        if let Some((_, ident, octets)) = gaps.next_if(|(before, ..)| *before == nth) {
            fields.push(gap(ident, octets));
        }
        fields.push(member);
    }
    fields.extend(gaps.map(|(_, ident, octets)| gap(ident, octets)));
    fields
}
