//! Writing of XDR values as octets.

use crate::{Settings, XdrError, padding};

/// A value that can be sent as XDR.
pub trait Encode {
    /// The octets of each value, if all values have the same number. A variable-length array of them is written at
    /// once then, by [`encode_fixed`](Self::encode_fixed).
    const FIXED_OCTETS: Option<usize> = None;

    /// Writes the value.
    ///
    /// # Errors
    /// [`XdrError`] if the value has no encoding: a length above its maximum, a discriminant of another arm, or
    /// nesting that a decoder refuses. The output has a part of the value then.
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError>;

    /// Writes a value of [`FIXED_OCTETS`](Self::FIXED_OCTETS) octets into exactly as many.
    ///
    /// # Errors
    /// As for [`encode`](Self::encode).
    ///
    /// # Panics
    /// Another number of octets than that of the value.
    #[inline]
    fn encode_fixed(&self, octets: &mut [u8]) -> Result<(), XdrError> {
        let mut out = XdrEncoder::appending(Vec::with_capacity(octets.len()));
        self.encode(&mut out)?;
        octets.copy_from_slice(&out.octets);
        Ok(())
    }
}

/// The octets of a struct whose fields have these numbers of octets; `None` if a field has no fixed number.
#[doc(hidden)]
#[must_use]
pub const fn sum_fixed_octets(fields: &[Option<usize>]) -> Option<usize> {
    let (mut sum, mut at) = (0, 0);
    while at < fields.len() {
        match fields[at] {
            Some(octets) => sum += octets,
            None => return None,
        }
        at += 1;
    }
    Some(sum)
}

/// Encodes a value into octets of its own.
///
/// # Errors
/// [`XdrError`], as for [`Encode::encode`].
pub fn encode<T: Encode + ?Sized>(value: &T) -> Result<Vec<u8>, XdrError> {
    let mut out = XdrEncoder::new();
    value.encode(&mut out)?;
    Ok(out.into_octets())
}

/// Writes values one after another to octets that grow.
#[derive(Clone, Debug, Default)]
pub struct XdrEncoder {
    octets: Vec<u8>,
    depth: usize,
}

impl XdrEncoder {
    /// An encoder without octets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An encoder that appends to these octets, whose number should be a multiple of four.
    #[must_use]
    pub fn appending(octets: Vec<u8>) -> Self {
        Self { octets, depth: 0 }
    }

    /// The octets of the values so far, a multiple of four.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Ends encoding, and hands over the octets without a copy.
    #[must_use]
    pub fn into_octets(self) -> Vec<u8> {
        self.octets
    }

    /// Writes an unsigned int (4.2).
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.octets.extend_from_slice(&value.to_be_bytes());
    }

    /// Writes an unsigned hyper (4.5).
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.octets.extend_from_slice(&value.to_be_bytes());
    }

    /// Writes a length, which may be at most `max`.
    ///
    /// # Errors
    /// [`XdrError::TooLong`].
    #[inline]
    pub fn len(&mut self, len: usize, max: u32) -> Result<(), XdrError> {
        match u32::try_from(len) {
            Ok(encoded) if encoded <= max => {
                self.u32(encoded);
                Ok(())
            }
            _ => Err(XdrError::TooLong { len, max }),
        }
    }

    /// Appends values of so many octets each, which are not zero.
    #[inline]
    pub(crate) fn fixed<T: Encode>(&mut self, values: &[T], octets: usize) -> Result<(), XdrError> {
        let start = self.octets.len();
        self.octets.resize(start + values.len() * octets, 0);
        let places = self.octets[start..].chunks_exact_mut(octets);
        for (place, value) in places.zip(values) {
            value.encode_fixed(place)?;
        }
        Ok(())
    }

    /// Writes octets of a fixed number, with residual zeros (4.9).
    pub fn fixed_opaque(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
        self.octets.extend_from_slice(&[0; 3][..padding(octets.len())]);
    }

    /// Writes octets of a variable number, at most `max` (4.10).
    ///
    /// # Errors
    /// [`XdrError::TooLong`].
    pub fn opaque(&mut self, octets: &[u8], max: u32) -> Result<(), XdrError> {
        self.len(octets.len(), max)?;
        self.fixed_opaque(octets);
        Ok(())
    }

    /// Writes a value that may contain values of its own type, one level deeper.
    ///
    /// # Errors
    /// [`XdrError::TooDeep`] below the default of [`Settings::depth`]; errors of the function.
    pub fn nested(&mut self, write: impl FnOnce(&mut Self) -> Result<(), XdrError>) -> Result<(), XdrError> {
        if self.depth >= Settings::DEFAULT.depth {
            return Err(XdrError::TooDeep(Settings::DEFAULT.depth));
        }
        self.depth += 1;
        let done = write(self);
        self.depth -= 1;
        done
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    const FIXED_OCTETS: Option<usize> = T::FIXED_OCTETS;

    #[inline]
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        (**self).encode(out)
    }

    #[inline]
    fn encode_fixed(&self, octets: &mut [u8]) -> Result<(), XdrError> {
        (**self).encode_fixed(octets)
    }
}
