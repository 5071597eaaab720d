//! The interpretive marshaling engine: one small piece of code, driven by a compact table for each type.
//!
//! What the compiler generates for a type is then its declaration and one line, [`interpret!`](crate::interpret), instead of
//! code that is straight but long. A table ([`Program`]) has everything precomputed: offsets, sizes, alignments, and which
//! members can be moved as one block, because they lie in memory as in CDR. Sequences are coded by loops for their kind of
//! element, so that what the interpreter costs is paid once for many elements.
//!
//! This is the only module of the crate with `unsafe`. All of it rests on one promise, that of [`Interpreted`]: a table says
//! the truth about its type. Tables are made only here for types of Rust and of this crate, and by the exported macros from a
//! type's own declaration, which the compiler checks; nobody fills one by hand. Switching between the engines while a program
//! runs belongs to `adaptive`.
//!
//! The idea is that of TAO's optimised interpreter of TypeCodes.

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
/// The table is that of the type: all that its ops say is true of each value, and a place of which they all are true is a
/// value. The macros of this crate see to it.
pub unsafe trait Interpreted: Sized + 'static {
    /// The table.
    const PROGRAM: &'static Program;
}

/// Writes a value; see [`Encode::encode`](crate::Encode::encode).
///
/// # Errors
/// As there.
#[inline]
pub fn encode<'a, T: Interpreted>(value: &'a T, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    // SAFETY: the table is that of the type.
    unsafe { write::value(T::PROGRAM.ops, std::ptr::from_ref(value).cast(), out) }
}

/// Writes values one after the other; see [`Encode::encode_slice`](crate::Encode::encode_slice).
///
/// # Errors
/// As there.
#[inline]
pub fn encode_slice<'a, T: Interpreted>(values: &'a [T], out: &mut Encoder<'a>) -> Result<(), CdrError> {
    // SAFETY: the table is that of the elements' type.
    unsafe { write::slice(T::PROGRAM, values.as_ptr().cast(), values.len(), out) }
}

/// Reads a value; see [`Decode::decode`](crate::Decode::decode).
///
/// # Errors
/// As there.
#[inline]
pub fn decode<T: Interpreted>(input: &mut Decoder<'_>) -> Result<T, CdrError> {
    let mut place = MaybeUninit::<T>::uninit();
    // SAFETY: there is room for a value, and after success there is one.
    unsafe {
        read::value(T::PROGRAM.ops, place.as_mut_ptr().cast(), input)?;
        Ok(place.assume_init())
    }
}

/// Reads values one after the other; see [`Decode::decode_vec`](crate::Decode::decode_vec). The caller has checked `len`
/// against the remaining input.
///
/// # Errors
/// As there.
#[inline]
pub fn decode_vec<T: Interpreted>(input: &mut Decoder<'_>, len: usize) -> Result<Vec<T>, CdrError> {
    // A caller that has not checked shall not have memory for the asking either.
    if len > input.remaining() / T::PROGRAM.min_octets() {
        return Err(CdrError::LengthBeyondInput { len, remaining: input.remaining() });
    }
    let mut values: Vec<T> = Vec::with_capacity(len);
    // SAFETY: there is room for so many values, and after success they are there.
    unsafe {
        read::elements(T::PROGRAM, values.as_mut_ptr().cast(), len, input)?;
        values.set_len(len);
    }
    Ok(values)
}

/// Reads an array; see [`Decode::decode_array`](crate::Decode::decode_array).
///
/// # Errors
/// As there.
#[inline]
pub fn decode_array<T: Interpreted, const N: usize>(input: &mut Decoder<'_>) -> Result<[T; N], CdrError> {
    let mut place = MaybeUninit::<[T; N]>::uninit();
    // SAFETY: there is room for so many values, and after success they are there.
    unsafe {
        read::elements(T::PROGRAM, place.as_mut_ptr().cast(), N, input)?;
        Ok(place.assume_init())
    }
}

/// The table of the enum `E`, of which `values` are the representations of all enumerators, in order.
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

/// The table of an enum.
#[must_use]
pub const fn enumeration<E>(ops: &'static [Op]) -> Program {
    assert!(size_of::<E>() == 4 && align_of::<E>() == 4, "an enum is `repr(u32)`");
    assemble::program::<E>(ops, 4)
}
