//! Primitives: by value, in blocks, and lent.
//!
//! In this machine's byte order a slice of primitives already is its encoding: it is lent or copied whole,
//! and lent from the input if it is aligned there. Otherwise its octets are swapped element by element.
//!
//! The types `Char` and `LongDouble` are in `scalar`.

use std::borrow::Cow;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::{CdrError, Decode, Decoder, Encode, Encoder, FixedSize, LongDouble};

macro_rules! number {
    ($type:ident) => {
        impl Encode for $type {
            #[inline]
            fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
                out.$type(*self);
                Ok(())
            }

            #[inline]
            fn encode_slice<'a>(items: &'a [Self], out: &mut Encoder<'a>) -> Result<(), CdrError> {
                encode_block(items, out)
            }
        }

        impl Decode for $type {
            const MIN_OCTETS: usize = size_of::<Self>();

            #[inline]
            fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
                input.$type()
            }

            #[inline]
            fn decode_vec(input: &mut Decoder<'_>, len: usize) -> Result<Vec<Self>, CdrError> {
                decode_block(input, len)
            }

            #[inline]
            fn decode_array<const N: usize>(input: &mut Decoder<'_>) -> Result<[Self; N], CdrError> {
                let octets = block(input, N, size_of::<Self>())?;
                let (chunks, _) = octets.as_chunks();
                Ok(std::array::from_fn(|i| {
                    if input.wire().order.is_swapped() {
                        Swap::from_swapped(chunks[i])
                    } else {
                        Self::from_ne_bytes(chunks[i])
                    }
                }))
            }

            fn decode_next(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
                let octets = *input.take(size_of::<Self>())?.as_array().expect("the slice has that length");
                Ok(if input.wire().order.is_swapped() {
                    Swap::from_swapped(octets)
                } else {
                    Self::from_ne_bytes(octets)
                })
            }

            #[inline]
            fn lend<'m>(input: &mut Decoder<'m>) -> Result<Cow<'m, [Self]>, CdrError> {
                lend_block(input)
            }
        }

        impl FixedSize for $type {
            const FIRST_ALIGN: usize = size_of::<Self>();
            const ALIGN: usize = size_of::<Self>();
            const SIZE: usize = size_of::<Self>();

            #[inline]
            fn put<const SWAP: bool>(&self, out: &mut [u8]) {
                let octets = if SWAP { self.to_swapped() } else { self.to_ne_bytes() };
                out.copy_from_slice(&octets);
            }

            #[inline]
            fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, CdrError> {
                let octets = *input.as_array().expect("SIZE octets");
                Ok(if SWAP { Swap::from_swapped(octets) } else { Self::from_ne_bytes(octets) })
            }
        }

        impl Swap<{ size_of::<$type>() }> for $type {
            #[inline]
            fn to_swapped(self) -> [u8; size_of::<$type>()] {
                let mut octets = self.to_ne_bytes();
                octets.reverse();
                octets
            }

            #[inline]
            fn from_swapped(mut octets: [u8; size_of::<$type>()]) -> Self {
                octets.reverse();
                Self::from_ne_bytes(octets)
            }

            #[inline]
            fn from_native(octets: [u8; size_of::<$type>()]) -> Self {
                Self::from_ne_bytes(octets)
            }
        }
    };
}

/// The octets of a number in the opposite of this machine's order.
trait Swap<const N: usize>: Copy {
    fn to_swapped(self) -> [u8; N];
    fn from_swapped(octets: [u8; N]) -> Self;
    fn from_native(octets: [u8; N]) -> Self;
}

number!(i16);
number!(u16);
number!(i32);
number!(u32);
number!(i64);
number!(u64);
number!(f32);
number!(f64);

/// The octets of `len` elements of `size` octets, aligned to their size. Without elements there is no gap.
#[inline]
fn block<'m>(input: &mut Decoder<'m>, len: usize, size: usize) -> Result<&'m [u8], CdrError> {
    if len == 0 {
        return Ok(&[]);
    }
    input.align(size)?;
    input.take(len.checked_mul(size).ok_or(CdrError::TooLong { len })?)
}

fn encode_block<'a, T, const N: usize>(items: &'a [T], out: &mut Encoder<'a>) -> Result<(), CdrError>
where
    T: Swap<N> + IntoBytes + Immutable,
{
    if items.is_empty() {
        return Ok(());
    }
    out.align(N);
    if out.wire().order.is_swapped() {
        let (chunks, _) = out.room(items.len() * N).as_chunks_mut::<N>();
        for (item, chunk) in items.iter().zip(chunks) {
            *chunk = item.to_swapped();
        }
    } else if N <= 4 {
        out.lend_divisible(items.as_bytes());
    } else {
        out.lend(items.as_bytes());
    }
    Ok(())
}

fn decode_block<T, const N: usize>(input: &mut Decoder<'_>, len: usize) -> Result<Vec<T>, CdrError>
where
    T: Swap<N> + FromBytes + IntoBytes + Immutable + KnownLayout,
{
    let octets = block(input, len, N)?;
    if input.wire().order.is_swapped() {
        let (chunks, _) = octets.as_chunks::<N>();
        return Ok(chunks.iter().map(|chunk| T::from_swapped(*chunk)).collect());
    }
    if let Ok(items) = <[T]>::ref_from_bytes(octets) {
        return Ok(items.to_vec());
    }
    // Misaligned in memory: copied as octets, which need no alignment.
    let (chunks, _) = octets.as_chunks::<N>();
    Ok(chunks.iter().map(|chunk| T::from_native(*chunk)).collect())
}

fn lend_block<'m, T, const N: usize>(input: &mut Decoder<'m>) -> Result<Cow<'m, [T]>, CdrError>
where
    T: Decode + Swap<N> + FromBytes + Immutable + KnownLayout,
{
    let len = input.sequence_len(N)?;
    if !input.wire().order.is_swapped() {
        let mut ahead = input.clone();
        let octets = block(&mut ahead, len, N)?;
        if let Ok(items) = <[T]>::ref_from_bytes(octets) {
            *input = ahead;
            return Ok(Cow::Borrowed(items));
        }
    }
    T::decode_vec(input, len).map(Cow::Owned)
}

/// Types of one octet: neither order nor alignment.
macro_rules! octet {
    ($type:ty, $encode:ident, $from:expr, $into:expr) => {
        impl Encode for $type {
            #[inline]
            fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
                out.u8($into(*self));
                Ok(())
            }

            #[inline]
            fn encode_slice<'a>(items: &'a [Self], out: &mut Encoder<'a>) -> Result<(), CdrError> {
                out.lend_divisible(items.as_bytes());
                Ok(())
            }
        }

        impl Decode for $type {
            const MIN_OCTETS: usize = 1;

            #[inline]
            fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
                input.u8().and_then($from)
            }

            #[inline]
            fn decode_vec(input: &mut Decoder<'_>, len: usize) -> Result<Vec<Self>, CdrError> {
                $encode(input.take(len)?).map(<[Self]>::to_vec)
            }

            #[inline]
            fn lend<'m>(input: &mut Decoder<'m>) -> Result<Cow<'m, [Self]>, CdrError> {
                $encode(input.octet_sequence()?).map(Cow::Borrowed)
            }
        }

        impl FixedSize for $type {
            const FIRST_ALIGN: usize = 1;
            const ALIGN: usize = 1;
            const SIZE: usize = 1;

            #[inline]
            fn put<const SWAP: bool>(&self, out: &mut [u8]) {
                out.copy_from_slice(&[$into(*self)]);
            }

            #[inline]
            fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, CdrError> {
                $from(input[0])
            }
        }
    };
}

octet!(u8, octets, Ok, u8::from);
octet!(bool, booleans, boolean, u8::from);

#[inline]
fn octets(octets: &[u8]) -> Result<&[u8], CdrError> {
    Ok(octets)
}

#[inline]
fn boolean(octet: u8) -> Result<bool, CdrError> {
    match octet {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(CdrError::BadBoolean(other)),
    }
}

fn booleans(octets: &[u8]) -> Result<&[bool], CdrError> {
    <[bool]>::try_ref_from_bytes(octets)
        .map_err(|_| CdrError::BadBoolean(octets.iter().copied().find(|octet| *octet > 1).unwrap_or_default()))
}

impl Encode for LongDouble {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        let mut octets = self.to_bits().to_ne_bytes();
        if out.wire().order.is_swapped() {
            octets.reverse();
        }
        out.align(8);
        out.octets(&octets);
        Ok(())
    }
}

impl Decode for LongDouble {
    const MIN_OCTETS: usize = 16;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let mut octets = input.long_double()?;
        if input.wire().order.is_swapped() {
            octets.reverse();
        }
        Ok(Self::from_bits(u128::from_ne_bytes(octets)))
    }
}
