//! Structs with explicit padding: memory and CDR agree octet for octet. So sequences of them are sent without
//! a copy, and lent to servants from the received message.
//!
//! CDR aligns primitives and not structs, so the agreement holds for elements at a multiple of their largest
//! alignment. Earlier elements are coded by field, and the padding after the last element's last member is
//! not on the wire (design: "data is touched once").

use std::borrow::Cow;

use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes, Unaligned};

use crate::{
    CdrError, Decode, Decoder, Encode, Encoder, FixedSize, encode_fixed_slice,
    fixed_size::{is_uniform, stride as cdr_stride},
};

/// `N` octets of zero: a gap that a struct would otherwise have between its fields.
///
/// There is no other value, so these octets are always zero on the wire.
#[derive(
    Clone, Copy, Debug, Eq, Hash, Immutable, IntoBytes, KnownLayout, Ord, PartialEq, PartialOrd, TryFromBytes, Unaligned,
)]
#[repr(transparent)]
pub struct Pad<const N: usize>([Zero; N]);

#[derive(
    Clone, Copy, Debug, Eq, Hash, Immutable, IntoBytes, KnownLayout, Ord, PartialEq, PartialOrd, TryFromBytes, Unaligned,
)]
#[repr(u8)]
enum Zero {
    Zero = 0,
}

impl<const N: usize> Pad<N> {
    /// The only value: all octets are zero.
    pub const ZERO: Self = Self([Zero::Zero; N]);
}

impl<const N: usize> Default for Pad<N> {
    fn default() -> Self {
        Self::ZERO
    }
}

/// The distance between two elements, equal to the size of the type in memory.
const fn stride<T: FixedSize>() -> usize {
    let stride = cdr_stride::<T>();
    assert!(size_of::<T>() == stride, "memory and CDR agree: generated code fixes the offset of every field");
    assert!(is_uniform::<T>(), "CDR has no gap between elements that memory does not have");
    stride
}

/// Encodes the elements, without a length: [`Encode::encode_slice`] of a type without hidden padding.
///
/// # Errors
/// The errors of the elements' [`Encode`].
#[inline]
pub fn encode_padded_slice<'a, T>(items: &'a [T], out: &mut Encoder<'a>) -> Result<(), CdrError>
where
    T: FixedSize + Encode + IntoBytes + Immutable,
{
    if out.wire().order.is_swapped() || T::HAS_CHARS && out.wire().char_set.converts_chars() {
        return encode_fixed_slice(items, out);
    }
    let mut rest = items;
    while let Some((first, others)) = rest.split_first() {
        if out.gap(T::ALIGN) == out.gap(T::FIRST_ALIGN) {
            out.align(T::FIRST_ALIGN);
            let octets = rest.as_bytes();
            out.lend(&octets[..octets.len() - (stride::<T>() - T::SIZE)]);
            break;
        }
        first.encode(out)?;
        rest = others;
    }
    Ok(())
}

/// Decodes a sequence: [`Decode::lend`] of a type without hidden padding. It is lent if byte order and
/// alignment permit, and if the sender's padding is zero.
///
/// # Errors
/// A length beyond the input, or the errors of an element.
#[inline]
pub fn lend_padded<'m, T>(input: &mut Decoder<'m>) -> Result<Cow<'m, [T]>, CdrError>
where
    T: FixedSize + Decode + TryFromBytes + Immutable + KnownLayout,
{
    let len = input.sequence_len(T::MIN_OCTETS)?;
    if let Some(others) = len.checked_sub(1)
        && !input.wire().order.is_swapped()
        && !(T::HAS_CHARS && input.wire().char_set.converts_chars())
        && input.gap(T::ALIGN) == input.gap(T::FIRST_ALIGN)
    {
        // The padding after the last element exists in memory, but not necessarily in the message: then it
        // cannot be lent.
        let (gap, whole) = (input.gap(T::FIRST_ALIGN), len * stride::<T>());
        let octets = input.rest().get(gap..gap + whole).filter(|_| input.segment_len() >= gap + whole);
        if let Some(items) = octets.and_then(|octets| <[T]>::try_ref_from_bytes(octets).ok()) {
            input.take(gap + others * stride::<T>() + T::SIZE)?;
            return Ok(Cow::Borrowed(items));
        }
    }
    T::decode_vec(input, len).map(Cow::Owned)
}
