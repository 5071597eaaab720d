//! Value types: objects passed by value, in graphs with sharing and cycles (CORBA 3.3 Part 1, clause 9; Part
//! 2, 9.3.4).
//!
//! In memory a graph is an arena: a [`ValueRef`] keeps all of it alive, and references between its values are
//! links without ownership ([`Linked`]), so that cycles are freed with the last reference from outside.
//! Shared values are immutable; to send another state, create another value. [`GraphBuilder`] creates cycles,
//! [`ValueRef::new`] all other values.
//!
//! The traits in `kind`, which generated code implements, define a value's form in Rust; a
//! [`ValueFactory`](crate::ValueFactory) creates received values. The tables of a message with values are
//! behind one pointer of the encoder and the decoder, which is null in all other messages; they are in the
//! modules `values` of these.

mod abstract_ref;
mod builder;
mod chunk;
mod copy;
mod factory;
mod header;
mod kind;
mod read;
mod reference;
mod write;

pub use abstract_ref::AbstractRef;
pub use builder::{GraphBuilder, GraphError};
pub use factory::{PlainFactory, custom_factory, value_factory};
pub use kind::{ConcreteValue, ImplementedBy, IsA, ValueBase, ValueType};
pub use reference::{Linked, ValueRef};

pub use copy::{StartedValue, ValueStart};

/// The lowest value tag; its lowest octet describes the header (9.3.4.1).
const VALUE_TAG: u32 = 0x7fff_ff00;
/// The highest value tag.
const LAST_VALUE_TAG: u32 = 0x7fff_ffff;
/// The mark of an indirection, in place of a tag, a string's length or a list's: an offset follows.
const INDIRECTION: u32 = 0xffff_ffff;
/// Bit of a tag: a codebase URL follows.
const HAS_CODEBASE: u32 = 1;
/// [`TYPE_INFORMATION`] of a tag: one repository id follows.
const SINGLE_ID: u32 = 2;
/// [`TYPE_INFORMATION`] of a tag: a list of repository ids follows.
const ID_LIST: u32 = 6;
/// The bits of a tag for the form of the repository ids.
const TYPE_INFORMATION: u32 = 6;
/// Bit of a tag: the state is in chunks.
const IS_CHUNKED: u32 = 8;
