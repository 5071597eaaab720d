//! Code for one definition, by its kind.

use proc_macro2::TokenStream;
use quote::quote;

use super::types::Scope;
use super::{
    Sides, ami, asynchronous, consts, enums, errors, method, reference, servant, structs, tie, typed, unions,
    value_boxes, values,
};
use crate::model::{Definition, DefinitionKind, Interface};

/// Writes a definition; its nested definitions are left out if they have a Rust module.
pub(super) fn definition(scope: Scope<'_, '_>, definition: &Definition) -> TokenStream {
    if scope.cx.left_out.contains(&definition.id) {
        return TokenStream::new();
    }
    match &definition.kind {
        DefinitionKind::Interface(body) => interface(scope, definition, body),
        DefinitionKind::ValueType(body) => values::value(scope, definition, body),
        DefinitionKind::ValueBox(body) => value_boxes::value_box(scope, definition, body),
        DefinitionKind::Struct(body) => structs::structure(scope, definition, body),
        DefinitionKind::Union(body) => unions::union(scope, definition, body),
        DefinitionKind::Exception(body) => structs::exception(scope, definition, body),
        DefinitionKind::Enum(body) => enums::enumeration(scope, definition, body),
        DefinitionKind::Typedef(body) => consts::typedef(scope, definition, body),
        DefinitionKind::Native => consts::native(scope, definition),
        DefinitionKind::Const(body) => consts::constant(scope, definition, body),
        // Written with the containing interface or enum, planned as modules, or left out.
        DefinitionKind::Operation(_)
        | DefinitionKind::Attribute(_)
        | DefinitionKind::Enumerator(_)
        | DefinitionKind::Module(_)
        | DefinitionKind::Unmapped(_) => TokenStream::new(),
    }
}

fn interface(scope: Scope<'_, '_>, definition: &Definition, body: &Interface) -> TokenStream {
    let cx = scope.cx;
    let errors = errors::enums(scope, definition.id);
    if cx.is_local(definition.id) {
        let (object, typed) = (servant::servant(scope, definition, body), typed::local_interface(scope, definition));
        return quote! { #object #typed #errors };
    }
    let reference = reference::reference(scope, definition, body);
    // A forward declaration cannot be served.
    let is_served = !body.forward_only && matches!(cx.sides, Sides::Both | Sides::Server);
    let server = is_served.then(|| {
        let skeleton = servant::skeleton(scope, definition, body);
        let tie = cx.ties.then(|| tie::tie(scope, definition, body));
        let asynchronous = cx.asynchronous.server.then(|| asynchronous::servant::both(scope, definition, body));
        let served = servant::served(scope, definition, body);
        quote! { #skeleton #tie #asynchronous #served }
    });
    // Values and local objects implement it on both sides.
    let is_implemented =
        body.is_abstract || cx.values.is_supported(definition.id) || cx.local_bases.contains(&definition.id);
    let servant =
        (is_served || (is_implemented && !body.forward_only)).then(|| servant::servant(scope, definition, body));
    let value = (body.is_abstract && !body.forward_only).then(|| values::kind(scope, definition.id));
    let has_ami = cx.asynchronous.ami && !body.forward_only && matches!(cx.sides, Sides::Both | Sides::Client);
    let ami = has_ami.then(|| ami::beside(scope, definition, body));
    quote! { #reference #servant #server #value #ami #errors }
}

/// The aliases of the errors of the operations and initializers of an interface or value type, for its module.
pub(super) fn own_errors(scope: Scope<'_, '_>, definition: &Definition) -> TokenStream {
    if scope.cx.left_out.contains(&definition.id) {
        return TokenStream::new();
    }
    match &definition.kind {
        DefinitionKind::ValueType(body) => values::own_errors(scope, definition, body),
        _ => {
            let methods = method::own(scope.cx, definition.id).into_iter();
            methods.filter_map(|method| errors::alias(scope, &method)).collect()
        }
    }
}
