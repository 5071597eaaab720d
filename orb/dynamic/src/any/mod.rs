//! Values whose types are known only at run time: [`DynAny`] (CORBA 3.3 Part 1, clause 16).
//!
//! A [`DynAny`] is a value of any IDL type, taken apart: its components can be looked at and changed, and it can be put
//! together again as an [`Any`](spandrel_cdr::Any). What only values of one sort can do stands in a view of it:
//!
//! | IDL interface | obtained by |
//! | --- | --- |
//! | `DynFixed`, `DynEnum` | [`DynAny::as_fixed`], [`DynAny::as_enum`] |
//! | `DynStruct` (exceptions too), `DynUnion` | [`DynAny::as_struct`], [`DynAny::as_union`] |
//! | `DynSequence`, `DynArray` | [`DynAny::as_sequence`], [`DynAny::as_array`] |
//! | `DynValue`, `DynValueBox` | [`DynAny::as_value`], [`DynAny::as_value_box`] |
//!
//! Operations have the standard's names without `get_`. What the standard lets several references to one component share,
//! Rust borrows; `destroy` is dropping.
//!
//! How values and type codes lie in octets belongs to `spandrel-cdr`.

mod basic;
mod defaults;
mod discriminator;
mod dyn_any;
mod error;
mod graph;
mod leaf;
mod members;
mod meter;
mod octets;
mod sequence;
mod simple;
mod structure;
mod text;
mod union;
mod value;

pub use dyn_any::DynAny;
pub use error::DynAnyError;
pub use sequence::{DynArray, DynSequence};
pub use simple::{DynEnum, DynFixed};
pub use structure::{DynNamePair, DynStruct, NameValuePair};
pub use text::TextError;
pub use union::DynUnion;
pub use value::{DynValue, DynValueBox};
