//! XDR, the external data representation (RFC 4506).
//!
//! | RFC 4506 | type |
//! | --- | --- |
//! | int, unsigned int, hyper, unsigned hyper (4.1, 4.2, 4.5) | `i32`, `u32`, `i64`, `u64` |
//! | enum (4.3) | [`xdr_enum!`] |
//! | bool (4.4) | `bool` |
//! | float, double, quadruple (4.6 to 4.8) | `f32`, `f64`, [`Quadruple`] |
//! | `opaque x[N]`, `opaque x<>`, `opaque x<M>` (4.9, 4.10) | [`FixedOpaque<N>`], [`Opaque`], [`Bounded<Opaque, M>`](Bounded) |
//! | `string x<>`, `string x<M>` (4.11) | `String`, [`Bounded<String, M>`](Bounded) |
//! | `T x[N]`, `T x<>`, `T x<M>` (4.12, 4.13) | `[T; N]`, `Vec<T>`, [`Bounded<Vec<T>, M>`](Bounded) |
//! | struct (4.14) | [`xdr_struct!`] |
//! | union (4.15) | [`xdr_union!`] |
//! | void (4.16) | `()` |
//! | optional data `T *x` (4.19) | `Option<T>`, `Option<Box<T>>`; a linked list is a [`List<T>`] |
//!
//! ```
//! use spandrel_xdr::{Bounded, Opaque, decode, encode, xdr_enum, xdr_struct, xdr_union};
//!
//! xdr_enum! {
//!     /// The kinds of files.
//!     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
//!     pub enum FileKind { Text = 0, Data = 1, Exec = 2 }
//! }
//! xdr_union! {
//!     /// A kind of file, with what belongs to it.
//!     #[derive(Clone, Debug, PartialEq, Eq)]
//!     pub union FileType: FileKind {
//!         Text = FileKind::Text,
//!         Data(creator: Bounded<String, 255>) = FileKind::Data,
//!         Exec(interpreter: Bounded<String, 255>) = FileKind::Exec,
//!     }
//! }
//! xdr_struct! {
//!     /// The file of RFC 4506, section 7.
//!     #[derive(Clone, Debug, PartialEq, Eq)]
//!     pub struct File {
//!         pub filename: Bounded<String, 255>,
//!         pub kind: FileType,
//!         pub owner: Bounded<String, 32>,
//!         pub data: Bounded<Opaque, 65535>,
//!     }
//! }
//!
//! let file = File {
//!     filename: Bounded::new("sillyprog".to_owned())?,
//!     kind: FileType::Exec(Bounded::new("lisp".to_owned())?),
//!     owner: Bounded::new("john".to_owned())?,
//!     data: Bounded::new(Opaque(b"(quit)".to_vec()))?,
//! };
//! let octets = encode(&file)?;
//! assert_eq!(octets.len(), 48);
//! assert_eq!(decode::<File>(&octets)?, file);
//! # Ok::<(), spandrel_xdr::XdrError>(())
//! ```
//!
//! # Arrays
//!
//! Arrays of numbers, enums and structs of them have a fixed number of octets for each element
//! ([`Decode::FIXED_OCTETS`]). The bounds of such an array are checked once, not for each field.
//!
//! # Octets from elsewhere
//!
//! - A length is compared with the maximum of its type and with the remaining octets before anything is
//!   allocated.
//! - Values nest up to [`Settings::depth`].
//! - Memory for decoded values is charged before it is allocated, up to [`Settings::memory_factor`] octets for
//!   each octet of input, and [`SMALLEST_MEMORY`] for a short one.
//! - Residual octets must be zero, as section 3 of the RFC demands; [`Padding::Any`] accepts others, as Sun's
//!   implementation does. Written ones are zero.
//! - A bool is 0 or 1, and an enum one of its constants: RFC 4506, 4.3, makes others an error.
//! - A `String` is UTF-8, which includes the ASCII of section 4.11. Strings in other code sets are [`Opaque`],
//!   which has the same encoding.
//!
//! Record marking and calls (RFC 5531) belong to other crates.
#![forbid(unsafe_code)]

mod array;
mod decoder;
mod encoder;
mod error;
mod macros;
mod octets;
mod optional;
mod scalar;
#[cfg(test)]
mod tests;

pub use array::{Bounded, Counted};
pub use decoder::{Decode, Padding, SMALLEST_MEMORY, Settings, XdrDecoder, decode};
#[doc(hidden)]
pub use encoder::sum_fixed_octets;
pub use encoder::{Encode, XdrEncoder, encode};
pub use error::XdrError;
#[doc(hidden)]
pub use macros::assert_distinct;
pub use octets::{FixedOpaque, Opaque};
pub use optional::List;
pub use scalar::Quadruple;

/// The octets of which all encodings are multiples (RFC 4506, section 3).
pub const UNIT: usize = 4;

/// The number of zero octets behind that many.
const fn padding(len: usize) -> usize {
    len.wrapping_neg() % UNIT
}
