//! Values whose encoding has one layout, and the tight loops over sequences of them.
//!
//! CDR aligns primitives, not structs: a struct that starts at a multiple of its largest alignment always looks the same,
//! one that starts elsewhere does not. The first elements of a sequence are therefore coded by field until the position
//! is right, and the rest by straight-line code over slices of constant length.

use crate::{CdrError, Decode, Decoder, Encode, Encoder};

/// A type whose encoding from a start aligned to [`FixedSize::ALIGN`] always has the same layout.
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

    /// Writes the value into exactly [`FixedSize::SIZE`] octets, padding as zeros. `SWAP`: against this machine's byte order.
    fn put<const SWAP: bool>(&self, out: &mut [u8]);

    /// Reads the value from exactly [`FixedSize::SIZE`] octets, ignoring padding.
    ///
    /// # Errors
    /// What a member's type refuses, such as [`CdrError::BadBoolean`] or [`CdrError::BadEnum`].
    fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, CdrError>;
}

/// From one aligned element to the next.
pub(crate) const fn stride<T: FixedSize>() -> usize {
    T::SIZE.next_multiple_of(T::ALIGN)
}

/// True if the element after an aligned one is aligned too.
pub(crate) const fn is_uniform<T: FixedSize>() -> bool {
    T::SIZE.next_multiple_of(T::FIRST_ALIGN).is_multiple_of(T::ALIGN)
}

/// Writes the elements, without a length, as [`Encode::encode_slice`] of a fixed type does.
///
/// # Errors
/// Those of the elements' [`Encode`].
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

/// Reads `len` elements, as [`Decode::decode_vec`] of a fixed type does.
///
/// # Errors
/// [`CdrError::Truncated`], or what an element's type refuses.
pub fn decode_fixed_vec<T: FixedSize + Decode>(input: &mut Decoder<'_>, len: usize) -> Result<Vec<T>, CdrError> {
    let mut items = Vec::with_capacity(len.min(input.remaining() / T::MIN_OCTETS.max(1)));
    let by_field = T::HAS_CHARS && input.wire().char_set.converts_chars();
    while items.len() < len {
        let gap = input.gap(T::FIRST_ALIGN);
        if !by_field && is_uniform::<T>() && gap == input.gap(T::ALIGN) {
            // Across a joint of fragments the layout may change: there, elements are read by field.
            let fitting = (input.unbroken_len().saturating_sub(gap) + stride::<T>() - T::SIZE) / stride::<T>();
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
    // The first pass only looks for what cannot be read, and vanishes for types in which every octet means something. The
    // second cannot fail, so that it is a loop of known length without a way out.
    for octets in body.chunks_exact(stride::<T>()) {
        T::get::<SWAP>(&octets[..T::SIZE])?;
    }
    items.extend(
        body.chunks_exact(stride::<T>())
            .map(|octets| T::get::<SWAP>(&octets[..T::SIZE]).expect("the same octets were read above")),
    );
    items.push(T::get::<SWAP>(tail)?);
    Ok(())
}
