//! The tables of types without a declaration.

use std::mem::MaybeUninit;

use super::{
    Interpreted,
    assemble::{number, program},
    program::{ArrayTable, Op, OpaqueTable, Program, SequenceTable},
};
use crate::{
    Any, BoundedString, BoundedVec, BoundedWString, CdrError, Char, Decode, Decoder, Encode, Encoder, Fixed, FromBound,
    LongDouble, Reference, TypeCode, WString,
};

/// The table of a type.
pub(super) fn program_of<T: Interpreted>() -> &'static Program {
    T::PROGRAM
}

macro_rules! plain {
    ($($type:ty),*) => {
        $(
            // SAFETY: the type is as wide as that in memory, any bits are a value of it, and it owns nothing.
            unsafe impl Interpreted for $type {
                const PROGRAM: &'static Program = &number::<Self>(
                    &[Op::Plain { width: size_of::<$type>() as u8, at: 0, count: 1 }],
                    size_of::<$type>() as u32,
                );
            }
        )*
    };
}

plain!(u8, i16, u16, i32, u32, i64, u64, f32, f64);

// SAFETY: it is transparent over an octet, and any octet is valid.
unsafe impl Interpreted for Char {
    const PROGRAM: &'static Program = &number::<Self>(&[Op::Char { at: 0, count: 1 }], 1);
}

// SAFETY: a boolean is one octet, which is 0 or 1.
unsafe impl Interpreted for bool {
    const PROGRAM: &'static Program = &number::<Self>(&[Op::Bool { at: 0, count: 1 }], 1);
}

// SAFETY: `Op::Text` describes exactly this type.
unsafe impl Interpreted for String {
    const PROGRAM: &'static Program = &program::<Self>(&[Op::Text { at: 0, bound: u32::MAX }], 4);
}

// SAFETY: the type is transparent over a string of at most `N` characters, which the engine checks.
unsafe impl<const N: usize> Interpreted for BoundedString<N> {
    const PROGRAM: &'static Program = &program::<Self>(&[Op::Text { at: 0, bound: bound(N) }], 4);
}

// SAFETY: the functions of the table are those of this vector.
unsafe impl<T: Interpreted> Interpreted for Vec<T> {
    const PROGRAM: &'static Program = &program::<Self>(&[Op::Sequence { at: 0, table: &sequence::<T>(u32::MAX) }], 4);
}

// SAFETY: the type is transparent over a vector of at most `N` elements, which the engine checks.
unsafe impl<T: Interpreted, const N: usize> Interpreted for BoundedVec<T, N> {
    const PROGRAM: &'static Program = &program::<Self>(&[Op::Sequence { at: 0, table: &sequence::<T>(bound(N)) }], 4);
}

/// A bound in the form of tables: no decodable sequence has more elements than `u32::MAX`.
const fn bound(bound: usize) -> u32 {
    if bound > u32::MAX as usize { u32::MAX } else { bound as u32 }
}

const fn sequence<T: Interpreted>(bound: u32) -> SequenceTable {
    SequenceTable {
        element: program_of::<T>,
        parts: parts::<T>,
        install: install::<T>,
        drop: drop_value::<Vec<T>>,
        bound,
    }
}

/// # Safety
/// A `Vec<T>` exists there.
unsafe fn parts<T>(vec: *const u8) -> (*const u8, usize) {
    // SAFETY: as above.
    let vec = unsafe { &*vec.cast::<Vec<T>>() };
    (vec.as_ptr().cast(), vec.len())
}

/// # Safety
/// The destination has room for a `Vec<T>`; `len` elements exist, in memory that the global allocator
/// reserved for exactly those.
unsafe fn install<T>(vec: *mut u8, elements: *mut u8, len: usize) {
    // SAFETY: as above.
    unsafe { vec.cast::<Vec<T>>().write(Vec::from_raw_parts(elements.cast(), len, len)) };
}

/// # Safety
/// A `T` exists there, and is not used after this.
pub(super) unsafe fn drop_value<T>(value: *mut u8) {
    // SAFETY: as above.
    unsafe { value.cast::<T>().drop_in_place() };
}

// SAFETY: elements of an array are contiguous, as those of a slice.
unsafe impl<T: Interpreted, const N: usize> Interpreted for [T; N] {
    const PROGRAM: &'static Program = &{
        let least = T::PROGRAM.least as usize * N;
        let least = if least > u32::MAX as usize { u32::MAX } else { least as u32 };
        Program { is_number: T::PROGRAM.is_number, ..program::<Self>(const { &[array::<T, N>()] }, least) }
    };
}

/// The op of an array: contiguous numbers for an array of numbers of any dimensions.
const fn array<T: Interpreted, const N: usize>() -> Op {
    assert!(N <= u32::MAX as usize, "an IDL array has a length of 32 bits");
    let n = N as u32;
    match *T::PROGRAM.ops {
        [Op::Plain { width, count, .. }] if T::PROGRAM.is_number && count.checked_mul(n).is_some() => {
            Op::Plain { width, at: 0, count: count * n }
        }
        [Op::Char { count, .. }] if T::PROGRAM.is_number && count.checked_mul(n).is_some() => {
            Op::Char { at: 0, count: count * n }
        }
        [Op::Bool { count, .. }] if T::PROGRAM.is_number && count.checked_mul(n).is_some() => {
            Op::Bool { at: 0, count: count * n }
        }
        _ => Op::Array { at: 0, table: const { &ArrayTable { element: program_of::<T>, count: N as u32 } } },
    }
}

macro_rules! opaque {
    ($(#[$why:meta] [$($generics:tt)*] $type:ty),* $(,)?) => {
        $(
            // SAFETY: the table is that of this type.
            unsafe impl<$($generics)*> Interpreted for $type {
                const PROGRAM: &'static Program = &opaque_program::<Self>();
            }
        )*
    };
}

opaque!(
    /// Sixteen octets that are aligned to eight.
    [] LongDouble,
    /// Its width depends on the wire form.
    [] char,
    /// Its width depends on the wire form.
    [] WString,
    /// Its width depends on the wire form.
    [const N: usize] BoundedWString<N>,
    /// Packed decimal digits have no leaf of their own.
    [const D: u16, const S: u16] Fixed<D, S>,
    /// A type code describes its own encoding.
    [] TypeCode,
    /// An `any` describes its own encoding.
    [] Any,
    /// References are bound to an ORB during decoding.
    [R: Reference + FromBound + 'static] Option<R>,
);

/// Selects a type's table: its own, or else an opaque one for its `Encode` and `Decode`.
#[derive(Debug)]
pub struct Table<T>(std::marker::PhantomData<T>);

impl<T: Interpreted> Table<T> {
    /// The type's own table. Takes precedence over that of the trait.
    pub const PROGRAM: &'static Program = T::PROGRAM;
}

/// Types without a table of their own.
pub trait CodesItself {
    /// A table of one opaque part: the type's own functions.
    const PROGRAM: &'static Program;
}

impl<T: Encode + Decode + 'static> CodesItself for Table<T> {
    const PROGRAM: &'static Program = &opaque_program::<T>();
}

/// The table of a type with an encoding of its own.
#[must_use]
pub const fn opaque_program<T: Encode + Decode + 'static>() -> Program {
    program::<T>(const { &[Op::Opaque { at: 0, table: &opaque_table::<T>() }] }, least::<T>())
}

const fn least<T: Decode>() -> u32 {
    if T::MIN_OCTETS > u32::MAX as usize { u32::MAX } else { T::MIN_OCTETS as u32 }
}

const fn opaque_table<T: Encode + Decode + 'static>() -> OpaqueTable {
    OpaqueTable {
        encode: encode_opaque::<T>,
        decode: decode_opaque::<T>,
        drop: if std::mem::needs_drop::<T>() { Some(drop_value::<T>) } else { None },
    }
}

/// # Safety
/// A `T` exists there, for as long as `'a`.
unsafe fn encode_opaque<'a, T: Encode + 'static>(value: *const u8, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    // SAFETY: as above.
    let value: &'a T = unsafe { &*value.cast::<T>() };
    value.encode(out)
}

/// # Safety
/// The destination has room for a `T`.
unsafe fn decode_opaque<T: Decode>(storage: *mut u8, input: &mut Decoder<'_>) -> Result<(), CdrError> {
    let value = T::decode(input)?;
    // SAFETY: as above.
    unsafe { &mut *storage.cast::<MaybeUninit<T>>() }.write(value);
    Ok(())
}
