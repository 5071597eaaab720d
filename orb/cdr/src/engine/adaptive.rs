//! Both engines for one type: it starts with its table, and switches to compiled code after frequent use.
//!
//! Tables are small and soon cached, so most types of a program are better served by them; the few types in
//! constant use get straight-line code. The switch is one pointer, which each use loads once.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use super::Interpreted;
use crate::{CdrError, Decoder, Encoder};

/// Uses after which a type switches to compiled code, unless [`switch_after`] sets another number.
pub const SWITCH_AFTER: u32 = 1000;

static LIMIT: AtomicU32 = AtomicU32::new(SWITCH_AFTER);

/// Sets the number of uses after which a type switches to compiled code: a use is a value or a sequence
/// encoded or decoded. It applies to types that have not switched yet; with `u32::MAX` none does.
pub fn switch_after(uses: u32) {
    LIMIT.store(uses, Ordering::Relaxed);
}

/// The compiler's code for a type: the methods of [`Encode`](crate::Encode) and [`Decode`](crate::Decode).
pub trait Compiled: Sized {
    /// See [`Encode::encode`](crate::Encode::encode).
    ///
    /// # Errors
    /// The errors of that method.
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError>;

    /// See [`Encode::encode_slice`](crate::Encode::encode_slice).
    ///
    /// # Errors
    /// The errors of that method.
    #[inline]
    fn encode_slice<'a>(items: &'a [Self], out: &mut Encoder<'a>) -> Result<(), CdrError> {
        items.iter().try_for_each(|item| item.encode(out))
    }

    /// See [`Decode::decode`](crate::Decode::decode).
    ///
    /// # Errors
    /// The errors of that method.
    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError>;

    /// See [`Decode::decode_vec`](crate::Decode::decode_vec).
    ///
    /// # Errors
    /// The errors of that method.
    #[inline]
    fn decode_vec(input: &mut Decoder<'_>, len: usize) -> Result<Vec<Self>, CdrError> {
        let mut items = Vec::with_capacity(len.min(input.remaining()));
        for _ in 0..len {
            items.push(Self::decode(input)?);
        }
        Ok(items)
    }
}

/// A type with both engines, and the switch between them.
pub trait Adaptive: Interpreted + Compiled {
    /// Returns the switch of this type, the same one at each call.
    fn switch() -> &'static Switch<Self>;
}

type EncodeFn<T> = for<'a> fn(&'a T, &mut Encoder<'a>) -> Result<(), CdrError>;
type EncodeSliceFn<T> = for<'a> fn(&'a [T], &mut Encoder<'a>) -> Result<(), CdrError>;
type DecodeFn<T> = fn(&mut Decoder<'_>) -> Result<T, CdrError>;
type DecodeVecFn<T> = fn(&mut Decoder<'_>, usize) -> Result<Vec<T>, CdrError>;

/// One engine's code for a type.
#[derive(Debug)]
pub(super) struct Codec<T> {
    encode: EncodeFn<T>,
    encode_slice: EncodeSliceFn<T>,
    decode: DecodeFn<T>,
    decode_vec: DecodeVecFn<T>,
}

/// The engine that marshals a type at present, and the count that decides when it changes.
#[derive(Debug)]
pub struct Switch<T: 'static> {
    /// Always one of the two constants of [`Codec`], which are static and immutable: a load is valid without
    /// any other synchronization.
    codec: AtomicPtr<Codec<T>>,
    /// Uses through the table.
    uses: AtomicU32,
    is_compiled: AtomicBool,
}

impl<T: Adaptive> Codec<T> {
    const COUNTING: &'static Self = &Self {
        encode: |value, out| {
            T::switch().count();
            super::encode(value, out)
        },
        encode_slice: |values, out| {
            T::switch().count();
            super::encode_slice(values, out)
        },
        decode: |input| {
            T::switch().count();
            super::decode(input)
        },
        decode_vec: |input, len| {
            T::switch().count();
            super::decode_vec(input, len)
        },
    };
    const COMPILED: &'static Self = &Self {
        encode: <T as Compiled>::encode,
        encode_slice: <T as Compiled>::encode_slice,
        decode: <T as Compiled>::decode,
        decode_vec: |input, len| {
            input.count_elements::<T>(len, T::PROGRAM.min_octets())?;
            <T as Compiled>::decode_vec(input, len)
        },
    };
}

impl<T: Adaptive> Default for Switch<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Adaptive> Switch<T> {
    /// A switch in the position of the table.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            codec: AtomicPtr::new(std::ptr::from_ref(Codec::COUNTING).cast_mut()),
            uses: AtomicU32::new(0),
            is_compiled: AtomicBool::new(false),
        }
    }

    #[inline]
    fn codec(&self) -> &'static Codec<T> {
        // SAFETY: only pointers to constants are ever stored.
        unsafe { &*self.codec.load(Ordering::Relaxed) }
    }

    #[cold]
    fn count(&self) {
        // Two threads may both count the last use; both then store the same pointer.
        if self.uses.fetch_add(1, Ordering::Relaxed) >= LIMIT.load(Ordering::Relaxed) {
            self.codec.store(std::ptr::from_ref(Codec::<T>::COMPILED).cast_mut(), Ordering::Relaxed);
            self.is_compiled.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the type has switched to compiled code.
    #[must_use]
    pub fn is_compiled(&self) -> bool {
        self.is_compiled.load(Ordering::Relaxed)
    }

    /// Encodes with the current engine.
    ///
    /// # Errors
    /// The errors of the engine.
    #[inline]
    pub fn encode<'a>(&self, value: &'a T, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        (self.codec().encode)(value, out)
    }

    /// Encodes with the current engine.
    ///
    /// # Errors
    /// The errors of the engine.
    #[inline]
    pub fn encode_slice<'a>(&self, values: &'a [T], out: &mut Encoder<'a>) -> Result<(), CdrError> {
        (self.codec().encode_slice)(values, out)
    }

    /// Decodes with the current engine.
    ///
    /// # Errors
    /// The errors of the engine.
    #[inline]
    pub fn decode(&self, input: &mut Decoder<'_>) -> Result<T, CdrError> {
        (self.codec().decode)(input)
    }

    /// Decodes with the current engine.
    ///
    /// # Errors
    /// The errors of the engine.
    #[inline]
    pub fn decode_vec(&self, input: &mut Decoder<'_>, len: usize) -> Result<Vec<T>, CdrError> {
        (self.codec().decode_vec)(input, len)
    }
}
