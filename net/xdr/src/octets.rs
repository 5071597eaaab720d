//! Opaque data and strings.

use std::fmt;

use crate::{Counted, Decode, Encode, UNIT, XdrDecoder, XdrEncoder, XdrError, padding};

/// `N` octets: `opaque x[N]` (4.9).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FixedOpaque<const N: usize>(pub [u8; N]);

impl<const N: usize> Encode for FixedOpaque<N> {
    const FIXED_OCTETS: Option<usize> = Some(N + padding(N));

    #[inline]
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        out.fixed_opaque(&self.0);
        Ok(())
    }

    #[inline]
    fn encode_fixed(&self, octets: &mut [u8]) -> Result<(), XdrError> {
        let (opaque, residual) = octets.split_at_mut(N);
        opaque.copy_from_slice(&self.0);
        residual.copy_from_slice(&[0; UNIT][..padding(N)]);
        Ok(())
    }
}

impl<const N: usize> Decode for FixedOpaque<N> {
    const MIN_OCTETS: usize = N + padding(N);
    const FIXED_OCTETS: Option<usize> = Some(N + padding(N));
    const ACCEPTS_ANY: bool = padding(N) == 0;

    #[inline]
    fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
        Ok(Self(input.fixed_opaque(N)?.try_into().expect("they are N octets")))
    }
}

impl<const N: usize> fmt::Debug for FixedOpaque<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FixedOpaque({:02x?})", self.0)
    }
}

/// Octets of a variable number: `opaque x<>` (4.10).
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Opaque(pub Vec<u8>);

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opaque({:02x?})", self.0)
    }
}

impl Counted for Opaque {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn encode_counted(&self, out: &mut XdrEncoder, max: u32) -> Result<(), XdrError> {
        out.opaque(&self.0, max)
    }

    fn decode_counted(input: &mut XdrDecoder<'_>, max: u32) -> Result<Self, XdrError> {
        let octets = input.opaque(max)?;
        input.charge(octets.len())?;
        Ok(Self(octets.to_vec()))
    }
}

/// The length is that in octets.
impl Counted for String {
    fn count(&self) -> usize {
        self.len()
    }

    fn encode_counted(&self, out: &mut XdrEncoder, max: u32) -> Result<(), XdrError> {
        out.opaque(self.as_bytes(), max)
    }

    fn decode_counted(input: &mut XdrDecoder<'_>, max: u32) -> Result<Self, XdrError> {
        let text = input.str(max)?;
        input.charge(text.len())?;
        Ok(text.to_owned())
    }
}

/// Implements the traits without a maximum.
macro_rules! unbounded {
    ($($type:ty),+) => {
        $(
            impl Encode for $type {
                fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
                    self.encode_counted(out, u32::MAX)
                }
            }

            impl Decode for $type {
                const MIN_OCTETS: usize = UNIT;

                fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
                    Self::decode_counted(input, u32::MAX)
                }
            }
        )+
    };
}

unbounded!(Opaque, String);

impl Encode for str {
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        out.opaque(self.as_bytes(), u32::MAX)
    }
}
