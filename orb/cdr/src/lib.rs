//! Common Data Representation: the encoding of IDL values as octets.
//!
//! An [`Encoder`] writes values into a scratch block and *lends* long sequences of primitives without a copy.
//! A [`Decoder`] reads them, and lends strings and sequences from the received octets where possible.
//! Generated code implements [`Encode`], [`Decode`] and [`FixedSize`]. Plain object references ([`Ior`]) are
//! here too, because values contain them.
//!
//! This crate opens no socket, starts no thread and reads no clock. Messages belong to `spandrel-giop`, live
//! references to `spandrel-orb`.
//!
//! Types are marshaled by generated code, or by one interpreter of tables: see `engine`, the only module with
//! `unsafe`.
//!
//! Source: CORBA 3.3 Part 2, clause 9.3 ("CDR Transfer Syntax").

mod any;
mod arguments;
mod bounded;
mod characters;
mod code_set;
mod code_set_names;
mod code_set_numbers;
mod decimal;
mod decoder;
mod encoder;
#[allow(unsafe_code, reason = "tables describe memory, and only `unsafe` reads and writes it as they say")]
#[doc(hidden)]
pub mod engine;
mod enumeration;
mod error;
mod fixed_size;
mod ior;
mod limits;
mod octet_form;
mod padded;
mod primitive;
mod reference;
mod scalar;
mod text;
mod tuples;
mod type_code;
mod type_coding;
mod typed;
mod value;
mod value_type;
pub mod walk;
mod wide;
mod wire;

pub use any::{Any, ExtractError};
#[doc(hidden)]
pub use arguments::{Argument, ArgumentList};
pub use bounded::{BoundedString, BoundedVec, OverBound};
pub use code_set::CodeSet;
pub use code_set_names::{CharSet, UnknownCodeSet, WcharSet};
pub use decimal::{Decimal, Fixed, FixedError, MAX_FIXED_DIGITS};
pub use decoder::{Binder, Decoder, Joint, MemoryGrant, ValueFactory};
pub use encoder::values::{Cast, Entry};
pub use encoder::{Encoder, LEND_OCTETS, Placeholder};
pub use engine::{SWITCH_AFTER, switch_after};
pub use enumeration::{CompiledEnumeration, Enumeration, enumerator};
pub use error::CdrError;
pub use fixed_size::{FixedSize, decode_fixed_vec, encode_fixed_slice};
pub use ior::{FromBound, Ior, Reference, ReferencePointer, TaggedComponent, TaggedProfile, TypedReference};
pub use limits::Limits;
pub use octet_form::{OctetForm, TrailingOctets, from_octets, to_octets};
pub use padded::{Pad, encode_padded_slice, lend_padded};
pub use scalar::{Char, LongDouble, NotLatin1};
#[doc(hidden)]
pub use type_code::definitions;
pub use type_code::{Defining, Label, TcKind, TypeCode, TypeCodeError, TypeDefinition, ValueModifier, Visibility};
pub use typed::Typed;
pub use value::{Decode, Encode};
pub use value_type::{
    AbstractRef, ConcreteValue, GraphBuilder, GraphError, ImplementedBy, IsA, Linked, PlainFactory, ValueBase,
    ValueRef, ValueType, custom_factory, value_factory,
};
pub use value_type::{StartedValue, ValueStart};
pub use wide::{BoundedWString, WString, Wide};
pub use wire::{ByteOrder, GiopVersion, Wire};
/// The derives that guarantee equal layouts in memory and in CDR; see [`Pad`].
#[doc(no_inline)]
pub use zerocopy;
