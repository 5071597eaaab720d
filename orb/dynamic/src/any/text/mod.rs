//! The text form of values for people: similar to JSON, with IDL's names, interpreted by the type.
//!
//! | type | text |
//! | --- | --- |
//! | numbers, `boolean`, `fixed` | `-12`, `0xff`, `1.5e3`, `true` |
//! | texts, characters | `"caf\u00e9\n"` |
//! | enums | the enumerator's name |
//! | structs, exceptions, values | `{name: …, other: …}`, all members in any order; `null` for a value |
//! | boxed values | the content, or `null` |
//! | values of derived types | `{_type: "IDL:Derived:1.0", name: …}`; of boxes `{_type: …, _value: …}` |
//! | repeated values | `{_id: 1, name: …}`, and `{_ref: 1}` for the same value later or inside it; of boxes
//! `{_id: 1, _value: …}` |
//! | unions | `{member: …}`; `{_d: …, member: …}` if the discriminator is not the member's first label; `{_d:
//! …}` without a member |
//! | sequences, arrays | `[…, …]` |
//! | references | a URL such as `corbaloc:…` or `IOR:…`, or `null` |
//! | abstract interfaces | a reference, or a value with its `_type`, or `null` |
//! | `any` | a `boolean`, `string`, `long`, `long long` or `double`, according to its form; `null` |
//!
//! Printed text can be parsed again, except for `any`s of other types, and type codes. Names with a leading
//! underscore cannot be members: IDL removes it.

mod print;
mod read;
mod scan;

pub use scan::TextError;
