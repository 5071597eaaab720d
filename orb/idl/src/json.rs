//! The model as JSON, for tools in other languages: [`to_string`], or `spandrel idl --dump json`.
//!
//! # Schema
//!
//! One object. Keys are only ever added, to this object or to nested ones, while [`FORMAT`] stays the same.
//!
//! | key | |
//! | --- | --- |
//! | `format` | [`FORMAT`] |
//! | `files` | the files that were read, the main file first: `path`, and for an included one `included_from` (a place) |
//! | `definitions` | the top-level definitions, in source order |
//! | `warnings` | the compiler's warnings: `message`, and if known `at` (a place) |
//!
//! A **place** is `file` (a position in `files`, from 0), `line` and `column` (both from 1, the column in characters).
//!
//! Each **definition** has `kind`, `name`, `scoped_name` (`Bank::Account`, without a leading `::`),
//! `repository_id`, `at` (a place) and `in_main_file`. Unless empty, it has `doc` (the comment before it,
//! line by line) and `annotations`: `name`, and `parameters` with `name`, which may be null, and either
//! `value` or, for a name that is not a constant, `word`. Further keys depend on its kind:
//!
//! | `kind` | adds |
//! | --- | --- |
//! | `module` | `contents` (definitions) |
//! | `interface` | `bases`, `all_bases`, `abstract`, `local`, `forward_only`, `contents` |
//! | `operation` | `oneway`, `result` (a type, null for `void`), `parameters` (`mode`: `in`, `out` or `inout`, `name`, `type`, unless empty `annotations`), `raises`, `context` |
//! | `attribute` | `readonly`, `type`, `get_raises`, `set_raises` |
//! | `struct`, `exception` | `members` (`name`, `type`, unless empty `doc` and `annotations`), `contents` |
//! | `union` | `discriminator` (a type), `branches` (`labels`, each a value or null for `default`; `name`, `type`, `doc`, `annotations`), `unlisted` (the least discriminator that selects no branch, or null), `contents` |
//! | `enum` | `contents`, its enumerators |
//! | `enumerator` | `ordinal` |
//! | `typedef` | `type` |
//! | `const` | `type`, `value` |
//! | `valuetype` | `custom`, `abstract`, `truncatable`, `forward_only`, `bases`, `all_bases`, `supports`, `members` (as a struct's, and `public`), `factories` (`name`, `parameters`, `raises`, `doc`), `contents` |
//! | `valuebox` | `type` |
//! | `native` | nothing |
//! | another keyword, such as `component` | `contents`: it is parsed, and no code is generated for it |
//!
//! References to definitions, as in `bases` and `raises`, are scoped names.
//!
//! A **type** is an object whose `kind` is the IDL keyword of a basic type (`long`, `unsigned long long`, `any`, `Object`,
//! `TypeCode`, `ValueBase`, `AbstractBase`, …), or one of `string` and `wstring` (`bound`, null if there is none), `sequence` (`element`, `bound`),
//! `array` (`element`, `dimensions`), `fixed` (`digits`, `scale`) and `named` (`name`; `definition`, the kind of what is named).
//!
//! A **value** is an object with `kind` and `value`: `integer`, `float` and `boolean` as JSON has them (an integer may need 64 bits), `char`, `wchar`,
//! `string` and `wstring` as strings, `fixed` as a string of decimal digits, and `enumerator` by its scoped name.

use serde::Serialize;

use crate::model::Model;

mod lines;
mod view;

use lines::Lines;
use view::{Context, Node, Place};

/// The version of the schema: it changes when a key is removed or changes its meaning.
pub const FORMAT: u32 = 1;

/// The model as a JSON text, indented, with a newline at its end.
pub fn to_string(model: &Model) -> String {
    let lines = Lines::new(model.sources());
    let cx = Context { model, lines: &lines };
    let files = model.sources().files().iter();
    let files = files.map(|file| File {
        path: file.path.to_string_lossy().into_owned(),
        included_from: file.included_from.map(|span| cx.place(span)),
    });
    let warnings = model.warnings().iter().map(|warning| Warning {
        message: &warning.message,
        at: warning.primary.as_ref().map(|label| cx.place(label.span)),
    });
    let document = Document {
        format: FORMAT,
        files: files.collect(),
        definitions: cx.nodes(model.roots()),
        warnings: warnings.collect(),
    };
    let text = serde_json::to_string_pretty(&document).expect("keys are strings and floats are finite");
    text + "\n"
}

#[derive(Serialize)]
struct Document<'m> {
    format: u32,
    files: Vec<File>,
    definitions: Vec<Node<'m>>,
    warnings: Vec<Warning<'m>>,
}

#[derive(Serialize)]
struct File {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    included_from: Option<Place>,
}

#[derive(Serialize)]
struct Warning<'m> {
    message: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Place>,
}
