//! The two traits of every IDL type's Rust form, and their implementations for composed types.

use std::borrow::Cow;

use crate::{CdrError, Decoder, Encoder};

/// A value that can be sent in CDR. Types of generated code implement it.
pub trait Encode {
    /// Encodes the value. Long slices of primitives are lent for `'a`, not copied.
    ///
    /// # Errors
    /// A value that cannot be encoded, such as a string with NUL inside.
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError>;

    /// Encodes elements one after the other, without a length: an array, or a sequence after its length.
    ///
    /// # Errors
    /// As [`Encode::encode`].
    #[inline]
    fn encode_slice<'a>(items: &'a [Self], out: &mut Encoder<'a>) -> Result<(), CdrError>
    where
        Self: Sized,
    {
        items.iter().try_for_each(|item| item.encode(out))
    }
}

/// A value that can be decoded from CDR.
pub trait Decode: Sized + Clone {
    /// Octets of the smallest encoding, at least 1; the check of sequence lengths uses it.
    const MIN_OCTETS: usize;

    /// Decodes one value.
    ///
    /// # Errors
    /// Octets that are not a valid encoding.
    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError>;

    /// Decodes `len` values one after the other. The caller has checked `len` against the remaining input.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    #[inline]
    fn decode_vec(input: &mut Decoder<'_>, len: usize) -> Result<Vec<Self>, CdrError> {
        input.count_elements::<Self>(len, Self::MIN_OCTETS)?;
        let mut items = Vec::with_capacity(len.min(input.remaining() / Self::MIN_OCTETS.max(1)));
        for _ in 0..len {
            items.push(Self::decode(input)?);
        }
        Ok(items)
    }

    /// Decodes the elements of an array one after the other.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    #[inline]
    fn decode_array<const N: usize>(input: &mut Decoder<'_>) -> Result<[Self; N], CdrError> {
        let mut items = [const { None }; N];
        for item in &mut items {
            *item = Some(Self::decode(input)?);
        }
        Ok(items.map(|item| item.expect("every element was decoded above")))
    }

    /// Decodes a value directly after one of the same type in a multidimensional array: in messages with
    /// [joints](crate::Joint), numbers in such an array are one block, which is aligned once.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    #[inline]
    fn decode_next(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Self::decode(input)
    }

    /// Decodes a sequence, lending its elements from the input if order, alignment and type permit.
    ///
    /// # Errors
    /// As [`Decode::decode`], and a length beyond the input.
    #[inline]
    fn lend<'m>(input: &mut Decoder<'m>) -> Result<Cow<'m, [Self]>, CdrError> {
        Vec::decode(input).map(Cow::Owned)
    }
}

impl<T: Encode> Encode for [T] {
    #[inline]
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.len(self.len())?;
        T::encode_slice(self, out)
    }
}

impl<T: Encode> Encode for Vec<T> {
    #[inline]
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.as_slice().encode(out)
    }
}

impl<T: Decode> Decode for Vec<T> {
    const MIN_OCTETS: usize = 4;

    #[inline]
    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let len = input.sequence_len(T::MIN_OCTETS)?;
        input.nested(|input| T::decode_vec(input, len))
    }
}

impl<T: Encode, const N: usize> Encode for [T; N] {
    #[inline]
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        T::encode_slice(self, out)
    }
}

impl<T: Decode, const N: usize> Decode for [T; N] {
    const MIN_OCTETS: usize = if N == 0 { 1 } else { T::MIN_OCTETS * N };

    #[inline]
    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        T::decode_array(input)
    }

    #[inline]
    fn decode_array<const M: usize>(input: &mut Decoder<'_>) -> Result<[Self; M], CdrError> {
        let joined = input.has_joints();
        let mut items = [const { None }; M];
        for (nth, item) in items.iter_mut().enumerate() {
            *item = Some(if joined && nth > 0 { Self::decode_next(input)? } else { Self::decode(input)? });
        }
        Ok(items.map(|item| item.expect("every element was decoded above")))
    }

    fn decode_next(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let mut items = [const { None }; N];
        for item in &mut items {
            *item = Some(T::decode_next(input)?);
        }
        Ok(items.map(|item| item.expect("every element was decoded above")))
    }
}

impl Encode for str {
    #[inline]
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.str(self)
    }
}

impl Encode for String {
    #[inline]
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.str(self)
    }
}

impl Decode for String {
    // A length; the octets of an empty string with its NUL would be five, but four are accepted too.
    const MIN_OCTETS: usize = 4;

    #[inline]
    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        input.str().map(Cow::into_owned)
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    #[inline]
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        (**self).encode(out)
    }
}

impl Encode for () {
    #[inline]
    fn encode<'a>(&'a self, _out: &mut Encoder<'a>) -> Result<(), CdrError> {
        Ok(())
    }
}
