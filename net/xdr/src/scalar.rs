//! Numbers, bool and void.

use crate::{Decode, Encode, XdrDecoder, XdrEncoder, XdrError};

/// Implements both traits by a pair of methods of encoder and decoder, and conversions from and to their type.
macro_rules! scalar {
    ($($type:ty, $octets:literal, $method:ident, $to:expr, $from:expr;)+) => {
        $(
            impl Encode for $type {
                const FIXED_OCTETS: Option<usize> = Some($octets);

                #[inline]
                fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
                    out.$method($to(*self));
                    Ok(())
                }

                #[inline]
                fn encode_fixed(&self, octets: &mut [u8]) -> Result<(), XdrError> {
                    octets.copy_from_slice(&$to(*self).to_be_bytes());
                    Ok(())
                }
            }

            impl Decode for $type {
                const MIN_OCTETS: usize = $octets;
                const FIXED_OCTETS: Option<usize> = Some($octets);
                const ACCEPTS_ANY: bool = true;

                #[inline]
                fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
                    input.$method().map($from)
                }
            }
        )+
    };
}

scalar! {
    i32, 4, u32, i32::cast_unsigned, u32::cast_signed;
    u32, 4, u32, std::convert::identity, std::convert::identity;
    i64, 8, u64, i64::cast_unsigned, u64::cast_signed;
    u64, 8, u64, std::convert::identity, std::convert::identity;
    f32, 4, u32, f32::to_bits, f32::from_bits;
    f64, 8, u64, f64::to_bits, f64::from_bits;
}

impl Encode for bool {
    const FIXED_OCTETS: Option<usize> = Some(4);

    #[inline]
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        out.u32(u32::from(*self));
        Ok(())
    }

    #[inline]
    fn encode_fixed(&self, octets: &mut [u8]) -> Result<(), XdrError> {
        u32::from(*self).encode_fixed(octets)
    }
}

impl Decode for bool {
    const MIN_OCTETS: usize = 4;
    const FIXED_OCTETS: Option<usize> = Some(4);

    #[inline]
    fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
        match input.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(XdrError::Bool(other)),
        }
    }
}

/// Void, without any octet (RFC 4506, 4.16).
impl Encode for () {
    const FIXED_OCTETS: Option<usize> = Some(0);

    #[inline]
    fn encode(&self, _: &mut XdrEncoder) -> Result<(), XdrError> {
        Ok(())
    }
}

/// Void, without any octet (RFC 4506, 4.16).
impl Decode for () {
    const MIN_OCTETS: usize = 0;
    const FIXED_OCTETS: Option<usize> = Some(0);

    #[inline]
    fn decode(_: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
        Ok(())
    }
}

/// A floating-point number of 128 bits, as its octets: sign, 15 bits of exponent, 112 bits of fraction (4.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quadruple(pub [u8; 16]);

impl Encode for Quadruple {
    const FIXED_OCTETS: Option<usize> = Some(16);

    #[inline]
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        out.fixed_opaque(&self.0);
        Ok(())
    }

    #[inline]
    fn encode_fixed(&self, octets: &mut [u8]) -> Result<(), XdrError> {
        octets.copy_from_slice(&self.0);
        Ok(())
    }
}

impl Decode for Quadruple {
    const MIN_OCTETS: usize = 16;
    const FIXED_OCTETS: Option<usize> = Some(16);
    const ACCEPTS_ANY: bool = true;

    #[inline]
    fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
        Ok(Self(input.fixed_opaque(16)?.try_into().expect("they are 16 octets")))
    }
}
