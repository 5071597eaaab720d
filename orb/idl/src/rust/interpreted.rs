//! The macro line in place of marshaling code, for types with a table.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::engines::Engine;
use super::names;
use super::types::Scope;
use crate::model::{DefId, Definition, DefinitionKind, Struct, Type};

pub(super) mod operations;

/// The engine of a definition.
pub(super) fn engine(scope: Scope<'_, '_>, id: DefId) -> Engine {
    if scope.cx.padding.is_padded(id) {
        return Engine::Compiled;
    }
    scope.cx.engines.of(&scope.cx.model[id].scoped_name)
}

/// Whether the runtime has a table for the type: for its own and Rust's, and for those that are not compiled.
fn has_table(scope: Scope<'_, '_>, ty: &Type) -> bool {
    match scope.cx.model.resolve(ty) {
        Type::Sequence { element, .. } | Type::Array { element, .. } => has_table(scope, element),
        Type::Named(id) => match &scope.cx.model[*id].kind {
            DefinitionKind::Enum(_) | DefinitionKind::Struct(_) => engine(scope, *id) != Engine::Compiled,
            DefinitionKind::Interface(body) => !body.is_abstract,
            _ => false,
        },
        Type::ValueBase | Type::AbstractBase => false,
        _ => true,
    }
}

/// Keeps members in CDR's order, so that the engine can move them in blocks.
pub(super) fn representation(engine: Engine) -> Option<TokenStream> {
    (engine != Engine::Compiled).then(|| quote! { #[repr(C)] })
}

/// The line that creates a struct's table and its codec.
pub(super) fn structure(scope: Scope<'_, '_>, definition: &Definition, body: &Struct) -> TokenStream {
    let rt = scope.rt();
    let ident = &scope.cx.names.place(definition.id).ident;
    let fields = names::fields(&body.members);
    let types = body.members.iter().map(|member| scope.owned(&member.ty));
    let adaptive = (engine(scope, definition.id) == Engine::Adaptive).then(|| quote! { adaptive });
    quote! { #rt::interpret! { #adaptive struct #ident { #( #fields: #types ),* } } }
}

/// The line that creates an enum's table and its codec.
pub(super) fn enumeration(scope: Scope<'_, '_>, ident: &Ident, variants: &[&Ident]) -> TokenStream {
    let rt = scope.rt();
    quote! { #rt::interpret! { enum #ident { #( #variants ),* } } }
}
