//! Values whose types are known only at run time: [`DynAny`] (CORBA 3.3 Part 1, clause 16).
//!
//! A [`DynAny`] is a value of any IDL type as a tree of components. Components can be read and changed, and
//! the value can be converted back to an [`Any`](spandrel_cdr::Any). The operations of particular types are
//! in views:
//!
//! | IDL interface | obtained by |
//! | --- | --- |
//! | `DynFixed`, `DynEnum` | [`DynAny::as_fixed`], [`DynAny::as_enum`] |
//! | `DynStruct` (exceptions too), `DynUnion` | [`DynAny::as_struct`], [`DynAny::as_union`] |
//! | `DynSequence`, `DynArray` | [`DynAny::as_sequence`], [`DynAny::as_array`] |
//! | `DynValue`, `DynValueBox` | [`DynAny::as_value`], [`DynAny::as_value_box`] |
//!
//! Operations have the standard's names without `get_`. Where the standard shares references to a component,
//! Rust borrows; `destroy` is a drop.
//!
//! The encoding of values and type codes belongs to `spandrel-cdr`.

mod basic;
mod defaults;
mod discriminator;
mod dyn_any;
mod error;
mod graph;
mod leaf;
mod limits;
mod members;
mod octets;
mod sequence;
mod simple;
mod structure;
mod text;
mod union;
mod value;
mod values;

pub use dyn_any::DynAny;
pub use error::DynAnyError;
pub use sequence::{DynArray, DynSequence};
pub use simple::{DynEnum, DynFixed};
pub use structure::{DynNamePair, DynStruct, NameValuePair};
pub(crate) use text::quoted_json;
pub use text::{TextContext, TextError};
pub use union::DynUnion;
pub use value::{DynValue, DynValueBox};
