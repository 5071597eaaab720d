//! Arrays, and maximum lengths.

use std::ops::Deref;

use crate::{Decode, Encode, UNIT, XdrDecoder, XdrEncoder, XdrError};

/// A value with a length in front, which may have a maximum: opaque data, strings, arrays, lists.
pub trait Counted: Sized {
    /// The number of elements; of octets for opaque data and strings.
    fn count(&self) -> usize;

    /// Writes a value of at most `max` elements.
    ///
    /// # Errors
    /// [`XdrError::TooLong`]; errors of the elements.
    fn encode_counted(&self, out: &mut XdrEncoder, max: u32) -> Result<(), XdrError>;

    /// Reads a value of at most `max` elements.
    ///
    /// # Errors
    /// [`XdrError::TooLong`]; errors of the elements.
    fn decode_counted(input: &mut XdrDecoder<'_>, max: u32) -> Result<Self, XdrError>;
}

/// A value of at most `MAX` elements: `opaque x<MAX>`, `string x<MAX>`, `T x<MAX>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bounded<T, const MAX: u32>(T);

impl<T: Counted, const MAX: u32> Bounded<T, MAX> {
    /// Checks that the value has at most `MAX` elements.
    ///
    /// # Errors
    /// [`XdrError::TooLong`].
    pub fn new(value: T) -> Result<Self, XdrError> {
        let len = value.count();
        if u32::try_from(len).is_ok_and(|len| len <= MAX) {
            Ok(Self(value))
        } else {
            Err(XdrError::TooLong { len, max: MAX })
        }
    }

    /// The value without its maximum.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T, const MAX: u32> Deref for Bounded<T, MAX> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Counted, const MAX: u32> Encode for Bounded<T, MAX> {
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        self.0.encode_counted(out, MAX)
    }
}

impl<T: Counted, const MAX: u32> Decode for Bounded<T, MAX> {
    const MIN_OCTETS: usize = UNIT;

    fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
        T::decode_counted(input, MAX).map(Self)
    }
}

/// A fixed-length array `T x[N]` (RFC 4506, 4.12).
impl<T: Encode, const N: usize> Encode for [T; N] {
    const FIXED_OCTETS: Option<usize> = repeated(T::FIXED_OCTETS, N);

    #[inline]
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        self.iter().try_for_each(|element| element.encode(out))
    }

    #[inline]
    fn encode_fixed(&self, octets: &mut [u8]) -> Result<(), XdrError> {
        let places = octets.chunks_exact_mut(T::FIXED_OCTETS.unwrap_or(0).max(1));
        places.zip(self).try_for_each(|(place, element)| element.encode_fixed(place))
    }
}

/// The octets of so many elements.
const fn repeated(octets: Option<usize>, elements: usize) -> Option<usize> {
    match octets {
        Some(octets) => Some(octets.saturating_mul(elements)),
        None => None,
    }
}

/// A fixed-length array `T x[N]` (RFC 4506, 4.12).
impl<T: Decode, const N: usize> Decode for [T; N] {
    const MIN_OCTETS: usize = N.saturating_mul(T::MIN_OCTETS);
    const FIXED_OCTETS: Option<usize> = repeated(T::FIXED_OCTETS, N);
    const ACCEPTS_ANY: bool = T::ACCEPTS_ANY;

    #[inline]
    fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
        let mut elements = [const { None }; N];
        for element in &mut elements {
            *element = Some(T::decode(input)?);
        }
        Ok(elements.map(|element| element.expect("each was decoded")))
    }
}

/// A variable-length array `T x<>` (RFC 4506, 4.13).
impl<T: Encode> Encode for [T] {
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        encode_slice(self, out, u32::MAX)
    }
}

fn encode_slice<T: Encode>(elements: &[T], out: &mut XdrEncoder, max: u32) -> Result<(), XdrError> {
    out.len(elements.len(), max)?;
    out.nested(|out| match T::FIXED_OCTETS {
        Some(octets) if octets > 0 => out.fixed(elements, octets),
        _ => elements.iter().try_for_each(|element| element.encode(out)),
    })
}

/// A variable-length array `T x<>` (RFC 4506, 4.13).
impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        self.as_slice().encode(out)
    }
}

/// `T x<>` (4.13). An array of elements without octets, such as void, does not compile: its length could be
/// any.
///
/// ```compile_fail
/// let values: Vec<()> = spandrel_xdr::decode(&[255; 4]).unwrap();
/// ```
impl<T: Decode> Decode for Vec<T> {
    const MIN_OCTETS: usize = UNIT;

    fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
        decode_vec(input, u32::MAX)
    }
}

impl<T: Encode + Decode> Counted for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn encode_counted(&self, out: &mut XdrEncoder, max: u32) -> Result<(), XdrError> {
        encode_slice(self, out, max)
    }

    fn decode_counted(input: &mut XdrDecoder<'_>, max: u32) -> Result<Self, XdrError> {
        decode_vec(input, max)
    }
}

fn decode_vec<T: Decode>(input: &mut XdrDecoder<'_>, max: u32) -> Result<Vec<T>, XdrError> {
    const { assert!(T::MIN_OCTETS > 0, "an element of a variable-length array has at least one octet") };
    let len = input.len(T::MIN_OCTETS, max)?;
    input.charge(len.saturating_mul(size_of::<T>()))?;
    input.nested(|input| {
        let mut elements = Vec::with_capacity(len);
        match T::FIXED_OCTETS {
            // The octets of all elements are there: no element looks for its own again. Where none can fail, the room
            // in the array is not looked at again either.
            Some(octets) if T::ACCEPTS_ANY => {
                let any = |mut element| T::decode(&mut element).expect("any octets are a value");
                elements.extend(input.fixed(len, octets)?.map(any));
            }
            Some(octets) => {
                for mut element in input.fixed(len, octets)? {
                    elements.push(T::decode(&mut element)?);
                }
            }
            None => {
                for _ in 0..len {
                    elements.push(T::decode(input)?);
                }
            }
        }
        Ok(elements)
    })
}
