//! The Rust back end: from a checked [`Model`] to one Rust source file.
//!
//! [`generate`] first decides all names and modules (`names`, `plan`). Then it writes each definition
//! separately: types and constants, the client's reference (`reference`), the server's trait and skeleton
//! (`servant`). `output` runs this on several threads and joins the results. Generated code names one module
//! of the runtime and nothing else, adds nothing to a call beyond the needs of the runtime, and is formatted
//! as by `rustfmt`.
//!
//! It reads and writes no files; `spandrel-build` and the command line do.

mod ami;
mod arguments;
mod asynchronous;
mod attributes;
mod bad_option;
mod collocation;
mod consts;
mod contents;
mod derives;
mod docs;
mod engines;
mod enums;
mod errors;
mod external;
mod fixed;
mod interpreted;
mod labels;
mod layout;
mod lints;
mod local;
mod lookup;
mod method;
mod names;
mod options;
mod output;
mod padded;
mod padding;
mod plan;
mod prelude;
mod propagate;
mod reference;
mod scope;
mod servant;
mod sizes;
mod spacing;
mod split;
mod steps;
mod structs;
mod supported;
mod tie;
mod typed;
mod types;
mod unions;
mod upcall;
mod value_boxes;
mod value_links;
mod values;
mod words;

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::{Definition, DefinitionKind, Interface, Model};
pub use bad_option::BadOption;
pub use engines::Engine;
pub use options::{Collocation, Options, Sides};
pub use split::SourceFile;
use types::Scope;

/// Generates the Rust for a model: the definitions of the main file and of all files that it includes, so
/// that the result is complete.
///
/// Modules keep their names in Rust case; top-level definitions of the IDL are at the top level of the file.
/// The file can be included in any module, and several files in one module if they define different things.
#[must_use]
pub fn generate(model: &Model, options: &Options) -> String {
    output::file(model, options)
}

/// Generates the Rust for a model as [`generate`] does, into `stem`.rs and a file for each IDL module, in the
/// folder `stem`.
#[must_use]
pub fn generate_files(model: &Model, options: &Options, stem: &str) -> Vec<SourceFile> {
    output::files(model, options, stem)
}

/// Writes a definition; its nested definitions are left out if they have a Rust module.
fn definition(scope: Scope<'_, '_>, definition: &Definition) -> TokenStream {
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
    if cx.is_local(definition.id) {
        let (object, typed) = (servant::servant(scope, definition, body), typed::interface(scope, definition, body));
        return quote! { #object #typed };
    }
    let reference = reference::reference(scope, definition, body);
    // A forward declaration cannot be served.
    let is_served = !body.forward_only && cx.sides != Sides::Client;
    let server = is_served.then(|| {
        let skeleton = servant::skeleton(scope, definition, body);
        let tie = cx.ties.then(|| tie::tie(scope, definition, body));
        let asynchronous = cx.asynchronous.server.then(|| asynchronous::servant::both(scope, definition, body));
        quote! { #skeleton #tie #asynchronous }
    });
    // Values and local objects implement it on both sides.
    let is_implemented =
        body.is_abstract || cx.values.is_supported(definition.id) || cx.local_bases.contains(&definition.id);
    let servant =
        (is_served || (is_implemented && !body.forward_only)).then(|| servant::servant(scope, definition, body));
    let value = (body.is_abstract && !body.forward_only).then(|| values::kind(scope, definition.id));
    let has_ami = cx.asynchronous.ami && !body.forward_only && cx.sides != Sides::Server;
    let ami = has_ami.then(|| ami::beside(scope, definition, body));
    quote! { #reference #servant #server #value #ami }
}

/// The errors of the operations and initializers of an interface or value type, for its module.
fn own_errors(scope: Scope<'_, '_>, definition: &Definition) -> TokenStream {
    if scope.cx.left_out.contains(&definition.id) {
        return TokenStream::new();
    }
    match &definition.kind {
        DefinitionKind::ValueType(body) => values::own_errors(scope, definition, body),
        _ => {
            let methods = method::own(scope.cx, definition.id).into_iter();
            methods.filter_map(|method| errors::error(scope, &method)).collect()
        }
    }
}

#[cfg(test)]
mod tests;
