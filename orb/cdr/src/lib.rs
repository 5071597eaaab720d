//! Common Data Representation: how IDL values become octets and back.
//!
//! An [`Encoder`] writes values into a scratch block and *lends* long sequences of primitives from where they lie; a
//! [`Decoder`] reads them, lending what it can from the received octets. [`Encode`], [`Decode`] and [`FixedSize`] are what
//! generated code implements. Plain object references ([`Ior`]) live here too, because they travel inside values.
//!
//! This crate opens no socket, starts no thread and reads no clock. What a message is belongs to `spandrel-giop`; what an
//! object reference can do belongs to `spandrel-orb`.
//!
//! Types are marshaled by code that is generated for them, or by one interpreter of tables: see `engine`, the only module
//! with `unsafe`.
//!
//! Source: CORBA 3.3 Part 2, clause 9.3 ("CDR Transfer Syntax").

mod any;
mod bounded;
mod char_sets;
mod characters;
mod code_set;
mod decimal;
mod decoder;
mod encoder;
#[allow(unsafe_code, reason = "tables describe memory, and only `unsafe` reads and writes it as they say")]
#[doc(hidden)]
pub mod engine;
mod error;
mod fixed_size;
mod ior;
mod osf_registry;
mod padded;
mod primitive;
mod reference;
mod scalar;
mod text;
mod type_code;
mod type_coding;
mod typed;
mod value;
mod value_type;
pub mod walk;
mod wide;
mod wire;

pub use any::{Any, ExtractError};
pub use bounded::{BoundedString, BoundedVec, OverBound};
pub use char_sets::{CharSet, UnknownCodeSet, WcharSet};
pub use code_set::CodeSet;
pub use decimal::{Decimal, Fixed, FixedError, MAX_FIXED_DIGITS};
pub use decoder::{Binder, Decoder, Joint, ValueFactory};
pub use encoder::values::{Cast, Entry};
pub use encoder::{Encoder, Hole, LEND_OCTETS};
pub use engine::{SWITCH_AFTER, switch_after};
pub use error::CdrError;
pub use fixed_size::{FixedSize, decode_fixed_vec, encode_fixed_slice};
pub use ior::{FromBound, Ior, Reference, TaggedComponent, TaggedProfile};
pub use padded::{Pad, encode_padded_slice, lend_padded};
pub use scalar::{Char, LongDouble, NotLatin1};
pub use type_code::{Defining, Label, TcKind, TypeCode, TypeCodeError, ValueModifier, Visibility};
pub use typed::Typed;
pub use value::{Decode, Encode};
pub use value_type::{
    AbstractRef, ConcreteValue, GraphBuilder, GraphError, ImplementedBy, IsA, Linked, PlainFactory, ValueBase,
    ValueRef, ValueType, custom_factory, value_factory,
};
pub use value_type::{Coming as ComingValue, Met as MetValue};
pub use wide::{BoundedWString, WString, Wide};
pub use wire::{ByteOrder, GiopVersion, Limits, Wire};
/// The derives by which types say that their memory is their encoding; see [`Pad`].
#[doc(no_inline)]
pub use zerocopy;
