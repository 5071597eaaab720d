//! Steps one after the other, of which each may fail: how encoders, arguments and results are written.

use proc_macro2::TokenStream;
use quote::quote;

/// One fallible step for each thing; the last one's result is that of the whole.
pub(super) fn sequence<T>(things: &[T], step: impl Fn(&T) -> TokenStream) -> TokenStream {
    let Some((last, others)) = things.split_last() else { return quote! { Ok(()) } };
    let (others, last) = (others.iter().map(&step), step(last));
    quote! { #( #others?; )* #last }
}
