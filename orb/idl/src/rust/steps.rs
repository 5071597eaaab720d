//! Sequences of fallible steps: the form of encoders, arguments and results.

use proc_macro2::TokenStream;
use quote::quote;

/// One fallible step for each item; the result is that of the last step.
pub(super) fn sequence<T>(things: &[T], step: impl Fn(&T) -> TokenStream) -> TokenStream {
    let Some((last, others)) = things.split_last() else { return quote! { Ok(()) } };
    let (others, last) = (others.iter().map(&step), step(last));
    quote! { #( #others?; )* #last }
}
