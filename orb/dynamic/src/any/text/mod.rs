//! The text form of values for people: similar to JSON, with IDL's names, interpreted by the type.
//!
//! | type | text |
//! | --- | --- |
//! | numbers, `boolean`, `fixed` | `-12`, `0xff`, `1.5e3`, `true` |
//! | texts, characters | `"caf\u00e9\n"` |
//! | enums | the enumerator's name |
//! | structs, exceptions, values | `{name: …, other: …}`, all members in any order; `{name: …, ..}` gives all others
//! their defaults; `null` for a value |
//! | boxed values | the content, or `null` |
//! | values of derived types | `{_type: "IDL:Derived:1.0", name: …}`; of boxes `{_type: …, _value: …}` |
//! | repeated values | `{_id: 1, name: …}`, and `{_ref: 1}` for the same value later or inside it; of boxes
//! `{_id: 1, _value: …}` |
//! | unions | `{member: …}`; `{_d: …, member: …}` if the discriminator is not the member's first label; `{_d:
//! …}` without a member |
//! | sequences, arrays | `[…, …]` |
//! | references | a URL such as `corbaloc:…` or `IOR:…`, or `null` |
//! | abstract interfaces | a reference, or a value with its `_type`, or `null` |
//! | `any` | its type and its value: `long 3`, `sequence<long> [1, 2]`, `Bank::Entry {…}`. A `boolean`, `string`,
//! `long`, `long long` or `double` may be written alone; `null` |
//! | type codes | `"Bank::Entry"`, `"sequence<long>"` |
//!
//! JSON is a part of the text form: [`DynAny::from_text`](super::DynAny::from_text) parses both. `docs/json.md`
//! specifies the JSON form, which [`DynAny::to_json`](super::DynAny::to_json) prints. It differs from the
//! text where JSON has no words, and where a text needs the IDL: an `any` has its whole type.
//!
//! Printed text can be parsed again by a context with the types that it names. Names with a leading underscore
//! cannot be members: IDL removes it.
//!
//! `tree` parses the syntax, and `read` interprets it by the type; `print` prints both forms.

mod base64;
mod context;
mod number;
mod print;
mod quote;
mod read;
mod scan;
mod strict;
mod tree;
mod type_form;

pub use context::TextContext;
pub(crate) use quote::quoted_json;
pub use scan::TextError;
