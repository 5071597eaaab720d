//! Values with a fixed layout, and tight loops over sequences of them.
//!
//! CDR aligns primitives, not structs: a struct at a multiple of its largest alignment always has the same
//! layout, one at another offset does not. The first elements of a sequence are therefore coded by field up
//! to an aligned position, and the rest by straight-line code over slices of constant length.

use crate::{CdrError, Decode, Decoder, Encode, Encoder};

/// A type with the same layout at every start aligned to [`FixedSize::ALIGN`].
///
/// Implemented for primitives here and, by generated code, for enums and for structs of fixed-size members.
pub trait FixedSize: Sized {
    /// Alignment of its first primitive.
    const FIRST_ALIGN: usize;
    /// Largest alignment of any of its primitives.
    const ALIGN: usize;
    /// Octets from an aligned start to the end of its last primitive; no tail padding.
    const SIZE: usize;
    /// Whether there is a `char` in it, whose octet depends on the code set.
    const HAS_CHARS: bool = false;

    /// Encodes the value into exactly [`FixedSize::SIZE`] octets, with padding of zeros. `SWAP`: the opposite
    /// of this machine's byte order.
    fn put<const SWAP: bool>(&self, out: &mut [u8]);

    /// Decodes the value from exactly [`FixedSize::SIZE`] octets, ignoring padding.
    ///
    /// # Errors
    /// The errors of a member's type, such as [`CdrError::BadBoolean`] or [`CdrError::BadEnum`].
    fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, CdrError>;
}

/// The distance between two aligned elements.
pub(crate) const fn stride<T: FixedSize>() -> usize {
    T::SIZE.next_multiple_of(T::ALIGN)
}

/// Whether the element after an aligned one is aligned too.
pub(crate) const fn is_uniform<T: FixedSize>() -> bool {
    T::SIZE.next_multiple_of(T::FIRST_ALIGN).is_multiple_of(T::ALIGN)
}

/// Encodes the elements, without a length: [`Encode::encode_slice`] of a fixed type.
///
/// # Errors
/// The errors of the elements' [`Encode`].
pub fn encode_fixed_slice<'a, T: FixedSize + Encode>(items: &'a [T], out: &mut Encoder<'a>) -> Result<(), CdrError> {
    let by_field = T::HAS_CHARS && out.wire().char_set.converts_chars();
    let mut rest = items;
    while let Some((first, others)) = rest.split_first() {
        if !by_field && is_uniform::<T>() && (out.gap(T::ALIGN) == out.gap(T::FIRST_ALIGN)) {
            out.align(T::FIRST_ALIGN);
            if out.wire().order.is_swapped() {
                put_all::<T, true>(rest, out);
            } else {
                put_all::<T, false>(rest, out);
            }
            break;
        }
        first.encode(out)?;
        rest = others;
    }
    Ok(())
}

fn put_all<T: FixedSize, const SWAP: bool>(items: &[T], out: &mut Encoder<'_>) {
    let Some((last, others)) = items.split_last() else { return };
    let room = out.room(others.len() * stride::<T>() + T::SIZE);
    let (body, tail) = room.split_at_mut(others.len() * stride::<T>());
    for (item, octets) in others.iter().zip(body.chunks_exact_mut(stride::<T>())) {
        let (value, padding) = octets.split_at_mut(T::SIZE);
        item.put::<SWAP>(value);
        padding.fill(0);
    }
    last.put::<SWAP>(tail);
}

/// Decodes `len` elements: [`Decode::decode_vec`] of a fixed type.
///
/// # Errors
/// [`CdrError::Truncated`], or the errors of the element's type.
pub fn decode_fixed_vec<T: FixedSize + Decode>(input: &mut Decoder<'_>, len: usize) -> Result<Vec<T>, CdrError> {
    input.count_elements::<T>(len, T::MIN_OCTETS)?;
    let mut items = Vec::with_capacity(len.min(input.remaining() / T::MIN_OCTETS.max(1)));
    let by_field = T::HAS_CHARS && input.wire().char_set.converts_chars();
    while items.len() < len {
        let gap = input.gap(T::FIRST_ALIGN);
        if !by_field && is_uniform::<T>() && gap == input.gap(T::ALIGN) {
            // Across a joint of fragments the layout may change: there, elements are decoded by field.
            let fitting = (input.segment_len().saturating_sub(gap) + stride::<T>() - T::SIZE) / stride::<T>();
            if let Some(others) = fitting.min(len - items.len()).checked_sub(1) {
                input.take(gap)?;
                let body = input.take(others * stride::<T>())?;
                let tail = input.take(T::SIZE)?;
                if input.wire().order.is_swapped() {
                    get_all::<T, true>(body, tail, &mut items)?;
                } else {
                    get_all::<T, false>(body, tail, &mut items)?;
                }
                continue;
            }
        }
        items.push(T::decode(input)?);
    }
    Ok(items)
}

fn get_all<T: FixedSize, const SWAP: bool>(body: &[u8], tail: &[u8], items: &mut Vec<T>) -> Result<(), CdrError> {
    // The first pass only validates, and is optimized away for types in which every octet is valid. The
    // second cannot fail, so that it is a loop of known length without early exit.
    for octets in body.chunks_exact(stride::<T>()) {
        T::get::<SWAP>(&octets[..T::SIZE])?;
    }
    items.extend(
        body.chunks_exact(stride::<T>())
            .map(|octets| T::get::<SWAP>(&octets[..T::SIZE]).expect("the same octets were validated above")),
    );
    items.push(T::get::<SWAP>(tail)?);
    Ok(())
}
