//! The interpretive marshaling engine: one small piece of code, driven by a compact table for each type.
//!
//! The compiler's output for a type is then its declaration and one line, [`interpret!`](crate::interpret),
//! instead of long straight-line code. A table ([`Program`]) has everything precomputed: offsets, sizes,
//! alignments, and the members that can be moved as one block, because memory and CDR agree. Sequences are
//! coded by loops for their kind of element, so that the cost of interpretation is shared by many elements.
//!
//! This is the only module of the crate with `unsafe`. All of it rests on one promise, that of
//! [`Interpreted`]: a table describes its type correctly. Tables for Rust's types and this crate's are built
//! here, others by the exported macros from a type's own declaration, which the compiler checks; no table is
//! filled by hand. The switch between the engines at run time belongs to `adaptive`.
//!
//! The design follows TAO's optimised interpreter of TypeCodes.
//!
//! Tables are described in `program` and made in `assemble`; the loops that interpret them are in `write` and
//! `read`.

mod adaptive;
mod assemble;
mod bulk;
mod erased;
mod leaves;
mod macros;
mod program;
mod read;
#[cfg(test)]
mod tests;
mod types;
mod write;

use std::mem::MaybeUninit;

pub use adaptive::{Adaptive, Compiled, SWITCH_AFTER, Switch, switch_after};
pub use assemble::{Field, Ops, assemble, most_ops, structure};
pub use erased::{Arguments, Filled, Held, Place, Received, Results, Returned, Upcall, Value, receive, upcall};
pub use program::{EnumTable, Op, Program};
pub use types::{CodesItself, Table, opaque_program};

use crate::{CdrError, Decoder, Encoder};

/// A type that has a table.
///
/// # Safety
/// The table is that of the type: its ops describe each value, and memory that matches all of them is a
/// value. The macros of this crate guarantee that.
pub unsafe trait Interpreted: Sized + 'static {
    /// The table by which the engine encodes and decodes values of this type.
    const PROGRAM: &'static Program;
}

/// Writes a value by the table of its type; see [`Encode::encode`](crate::Encode::encode).
///
/// # Errors
/// The errors of that method.
#[inline]
pub fn encode<'a, T: Interpreted>(value: &'a T, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    // SAFETY: the table is that of the type.
    unsafe { write::value(T::PROGRAM.ops, std::ptr::from_ref(value).cast(), out) }
}

/// Writes values one after the other by the table of their type; see
/// [`Encode::encode_slice`](crate::Encode::encode_slice).
///
/// # Errors
/// The errors of that method.
#[inline]
pub fn encode_slice<'a, T: Interpreted>(values: &'a [T], out: &mut Encoder<'a>) -> Result<(), CdrError> {
    // SAFETY: the table is that of the elements' type.
    unsafe { write::slice(T::PROGRAM, values.as_ptr().cast(), values.len(), out) }
}

/// Reads a value by the table of its type; see [`Decode::decode`](crate::Decode::decode).
///
/// # Errors
/// The errors of that method.
#[inline]
pub fn decode<T: Interpreted>(input: &mut Decoder<'_>) -> Result<T, CdrError> {
    let mut storage = MaybeUninit::<T>::uninit();
    // SAFETY: the place has room for a value, and holds one after success.
    unsafe {
        read::value(T::PROGRAM.ops, storage.as_mut_ptr().cast(), input)?;
        Ok(storage.assume_init())
    }
}

/// Decodes values one after the other; see [`Decode::decode_vec`](crate::Decode::decode_vec). The caller has
/// checked `len` against the remaining input.
///
/// # Errors
/// The errors of that method.
#[inline]
pub fn decode_vec<T: Interpreted>(input: &mut Decoder<'_>, len: usize) -> Result<Vec<T>, CdrError> {
    // Protects against a caller that has not checked: the length alone must not reserve memory.
    if len > input.remaining() / T::PROGRAM.min_octets() {
        return Err(CdrError::LengthBeyondInput { len, remaining: input.remaining() });
    }
    input.count_elements::<T>(len, T::PROGRAM.min_octets())?;
    let mut values: Vec<T> = Vec::with_capacity(len);
    // SAFETY: the vector has room for `len` values, and holds them after success.
    unsafe {
        read::elements(T::PROGRAM, values.as_mut_ptr().cast(), len, input)?;
        values.set_len(len);
    }
    Ok(values)
}

/// Reads an array by the table of its elements' type; see
/// [`Decode::decode_array`](crate::Decode::decode_array).
///
/// # Errors
/// The errors of that method.
#[inline]
pub fn decode_array<T: Interpreted, const N: usize>(input: &mut Decoder<'_>) -> Result<[T; N], CdrError> {
    let mut storage = MaybeUninit::<[T; N]>::uninit();
    // SAFETY: the array has room for its values, and holds them after success.
    unsafe {
        read::elements(T::PROGRAM, storage.as_mut_ptr().cast(), N, input)?;
        Ok(storage.assume_init())
    }
}

/// The table of the enum `E`; `values` are the representations of all enumerators, in order.
///
/// # Panics
/// If they do not count from zero.
#[must_use]
pub const fn enum_table(name: &'static str, values: &[u32]) -> EnumTable {
    let mut nth = 0;
    while nth < values.len() {
        assert!(values[nth] as usize == nth, "enumerators count from zero");
        nth += 1;
    }
    EnumTable { name, count: values.len() as u32 }
}

/// The table of an enum whose enumerators `ops` describe.
#[must_use]
pub const fn enumeration<E>(ops: &'static [Op]) -> Program {
    assert!(size_of::<E>() == 4 && align_of::<E>() == 4, "an enum is `repr(u32)`");
    assemble::program::<E>(ops, 4)
}
