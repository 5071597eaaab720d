//! The Rust back end: from a checked [`Model`] to one Rust source file.
//!
//! [`generate`] first decides all names and modules (`names`, `plan`). Then it writes each definition
//! separately (`definition`): types and constants, the client's reference (`reference`), the server's trait
//! and skeleton (`servant`), whose dispatch of operations by name is in `dispatch`. `output` runs this on several threads and joins the results. Generated code
//! names one module of the runtime and nothing else, adds nothing to a call beyond the needs of the runtime,
//! and is formatted as by `rustfmt`.
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
mod definition;
mod derives;
mod dispatch;
mod docs;
mod engines;
mod enums;
mod error_sets;
mod errors;
mod external;
mod external_files;
mod file_homes;
mod fixed;
mod interpreted;
mod invocations;
mod labels;
mod layout;
mod lints;
mod local;
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
mod shared;
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

use crate::model::Model;
pub use bad_option::BadOption;
pub use engines::Engine;
pub use options::{Collocation, Options, Sides};
pub use shared::{Disagreement, Input, generate_together, shares_definitions};
pub use split::SourceFile;

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

#[cfg(test)]
mod tests;
