//! Value types: objects that travel by value, in graphs that share and may be circular (CORBA 3.3 Part 1, clause 9; Part
//! 2, 9.3.4).
//!
//! In memory a graph is an arena: a [`ValueRef`] keeps all of it alive, and what its values hold of each other are links
//! that own nothing ([`Linked`]), so that circles end with the last reference from outside. Values do not change once they are
//! shared; to send another state, make another value. [`GraphBuilder`] makes circles, [`ValueRef::new`] everything else.
//!
//! What a value is in Rust is said by the traits in `kind`, which generated code implements; how a received one is made is
//! said by a [`ValueFactory`](crate::ValueFactory). The tables that a message with values needs sit behind one pointer of the encoder and the
//! decoder, which is empty in all other messages; they are the modules `values` of these.

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

pub use copy::{Coming, Met};

/// The lowest value tag; the octet below says what follows (9.3.4.1).
const VALUE_TAG: u32 = 0x7fff_ff00;
/// The highest.
const LAST_VALUE_TAG: u32 = 0x7fff_ffff;
/// In place of a tag, a string's length or a list's: what is meant stands elsewhere, and an offset says where.
const INDIRECTION: u32 = 0xffff_ffff;
/// In a tag: a codebase URL follows.
const HAS_CODEBASE: u32 = 1;
/// In a tag, of [`TYPE_INFORMATION`]: one repository id follows.
const SINGLE_ID: u32 = 2;
/// In a tag, of [`TYPE_INFORMATION`]: a list of repository ids follows.
const ID_LIST: u32 = 6;
/// The bits of a tag that say which repository ids follow.
const TYPE_INFORMATION: u32 = 6;
/// In a tag: the state is in chunks.
const IS_CHUNKED: u32 = 8;
