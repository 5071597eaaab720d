//! Additional attributes of a type: derive macros chosen by the program, and those of explicit padding.

use proc_macro2::TokenStream;
use quote::quote;

use super::padded;
use super::types::Scope;
use crate::model::Definition;

/// The attributes of a struct, union, exception or enum, after its own derives.
pub(super) fn further(scope: Scope<'_, '_>, definition: &Definition) -> TokenStream {
    let chosen =
        scope.cx.derives.iter().filter(|(name, _)| name.as_ref().is_none_or(|it| *it == definition.scoped_name));
    let paths: Vec<TokenStream> = chosen.filter_map(|(_, path)| path.parse().ok()).collect();
    let derived = (!paths.is_empty()).then(|| quote! { #[derive( #( #paths ),* )] });
    let padding = padded::derives(scope, definition.id);
    quote! { #derived #padding }
}
