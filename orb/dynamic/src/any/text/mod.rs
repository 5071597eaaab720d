//! Values as people type and read them: much as in JSON, with IDL's names, and the type deciding what is meant.
//!
//! | type | text |
//! | --- | --- |
//! | numbers, `boolean`, `fixed` | `-12`, `0xff`, `1.5e3`, `true` |
//! | texts, characters | `"caf\u00e9\n"` |
//! | enums | the enumerator's name |
//! | structs, exceptions, values | `{name: …, other: …}`, all members in any order; `null` for a value |
//! | boxed values | what is in the box, or `null` |
//! | values of derived types | `{_type: "IDL:Derived:1.0", name: …}`; of boxes `{_type: …, _value: …}` |
//! | values that are met again | `{_id: 1, name: …}`, and `{_ref: 1}` for the same value further on or within; of boxes `{_id: 1, _value: …}` |
//! | unions | `{member: …}`; `{_d: …, member: …}` where the discriminator is not the member's first label; `{_d: …}` without a member |
//! | sequences, arrays | `[…, …]` |
//! | references | a URL such as `corbaloc:…` or `IOR:…`, or `null` |
//! | abstract interfaces | a reference, or a value with its `_type`, or `null` |
//! | `any` | a `boolean`, `string`, `long`, `long long` or `double`, as it looks; `null` |
//!
//! What is written here is what is read, but for `any`s of other types, and type codes. Names with an underscore before them are no
//! member's: IDL drops it.

mod print;
mod read;
mod scan;

pub use read::TextError;
