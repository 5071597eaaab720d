//! IDL scalars without a Rust type: [`Char`] and [`LongDouble`].

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An IDL `char`: a character of ISO 8859-1. On the wire it is one octet of the transmission code set, which
/// may be another.
///
/// ```
/// # mod types { pub use spandrel_cdr::*; }
/// use types::{Char, NotLatin1}; // of spandrel
///
/// assert_eq!(Char::try_from('é'), Ok(Char(0xe9)));
/// assert_eq!(Char::try_from('€'), Err(NotLatin1('€')));
/// assert_eq!(char::from(Char(b'a')), 'a');
/// ```
#[derive(
    Clone, Copy, Default, Eq, FromBytes, Hash, Immutable, IntoBytes, KnownLayout, Ord, PartialEq, PartialOrd, Unaligned,
)]
#[repr(transparent)]
pub struct Char(pub u8);

/// The error for a character that ISO 8859-1 does not have.
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[error("the character {0:?} does not exist in ISO 8859-1")]
pub struct NotLatin1(pub char);
spandrel_error::debug_as_report!(NotLatin1);

impl From<u8> for Char {
    fn from(octet: u8) -> Self {
        Self(octet)
    }
}

impl From<Char> for u8 {
    fn from(value: Char) -> Self {
        value.0
    }
}

impl From<Char> for char {
    fn from(value: Char) -> Self {
        char::from(value.0)
    }
}

impl TryFrom<char> for Char {
    type Error = NotLatin1;

    fn try_from(value: char) -> Result<Self, NotLatin1> {
        u8::try_from(value).map(Self).map_err(|_| NotLatin1(value))
    }
}

impl fmt::Debug for Char {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&char::from(*self), f)
    }
}

impl fmt::Display for Char {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&char::from(*self), f)
    }
}

/// An IDL `long double`: IEEE 754 binary128, held as its bits. Rust has no arithmetic for it.
///
/// On the wire it takes 16 octets, aligned to 8 (CORBA 3.3 Part 2, table 9.1).
///
/// ```
/// # mod types { pub use spandrel_cdr::*; }
/// use types::LongDouble; // of spandrel
///
/// let half = LongDouble::from(0.5);
/// assert_eq!(half.to_f64(), 0.5);
/// assert_eq!(half.to_bits() >> 112, 0x3ffe); // its sign and exponent
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct LongDouble(u128);

/// The additional bits of a binary128's fraction over that of a binary64.
const MORE_FRACTION: u32 = 112 - 52;
/// The difference between the exponent biases of binary128 and binary64.
const MORE_BIAS: u64 = 16383 - 1023;

impl LongDouble {
    /// The value with these binary128 bits.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Returns the bits of the IEEE 754 binary128 number.
    #[must_use]
    pub const fn to_bits(self) -> u128 {
        self.0
    }

    /// The nearest `f64`, ties to even.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        let sign = u64::from(self.0 >> 127 == 1) << 63;
        let exponent = (self.0 >> 112) as u64 & 0x7fff;
        let fraction = self.0 & ((1 << 112) - 1);
        let magnitude = match exponent {
            0x7fff if fraction != 0 => f64::NAN.to_bits() & !(1 << 63),
            0x7fff => f64::INFINITY.to_bits(),
            // Binary128 subnormals are far below the smallest f64.
            0 => 0,
            _ => nearest(exponent.cast_signed() - MORE_BIAS.cast_signed(), fraction),
        };
        f64::from_bits(sign | magnitude)
    }
}

/// The bits of the f64 nearest to 1.`fraction` (112 bits) with this biased binary64 exponent, which may be
/// out of range.
fn nearest(exponent: i64, fraction: u128) -> u64 {
    if exponent >= 0x7ff {
        return f64::INFINITY.to_bits();
    }
    // A subnormal f64 shifts its leading one into the fraction.
    let deeper = u32::try_from(1 - exponent).unwrap_or(0);
    if deeper > 53 {
        return 0;
    }
    let significand = fraction | (1 << 112);
    let dropped = MORE_FRACTION + deeper;
    let significant = (significand >> dropped) as u64;
    let rest = significand & ((1 << dropped) - 1);
    let half = 1 << (dropped - 1);
    let round = u64::from(rest > half || (rest == half && significant & 1 == 1));
    // `kept` holds the leading one at bit 52 of a normal number: one less in the exponent compensates for it,
    // and a carry out of the rounding increases the exponent as it should.
    let biased = u64::try_from(exponent - 1).unwrap_or(0) << 52;
    biased + significant + round
}

impl From<f64> for LongDouble {
    fn from(value: f64) -> Self {
        let bits = value.to_bits();
        let sign = u128::from(bits >> 63) << 127;
        let exponent = (bits >> 52) & 0x7ff;
        let fraction = bits & ((1 << 52) - 1);
        let magnitude = match exponent {
            0x7ff => (0x7fff << 112) | (u128::from(fraction) << MORE_FRACTION),
            0 if fraction == 0 => 0,
            0 => {
                // Subnormal: the leading one becomes implicit.
                let shift = fraction.leading_zeros() - 11;
                let exponent = u128::from(MORE_BIAS + 1 - u64::from(shift));
                let fraction = (fraction << shift) & ((1 << 52) - 1);
                (exponent << 112) | (u128::from(fraction) << MORE_FRACTION)
            }
            _ => (u128::from(exponent + MORE_BIAS) << 112) | (u128::from(fraction) << MORE_FRACTION),
        };
        Self(sign | magnitude)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_long_double_represents_every_f64(value in any::<f64>()) {
            let back = LongDouble::from(value).to_f64();
            prop_assert!(back.to_bits() == value.to_bits() || (back.is_nan() && value.is_nan()));
        }
    }

    #[test]
    fn long_double_bits_are_those_of_binary128() {
        assert_eq!(LongDouble::from(1.0).to_bits(), 0x3fff << 112);
        assert_eq!(LongDouble::from(-2.0).to_bits(), 0xc000 << 112);
        assert_eq!(LongDouble::from_bits((0x3fff << 112) | 1).to_f64(), 1.0);
        assert_eq!(LongDouble::from_bits(0x7ffe << 112).to_f64(), f64::INFINITY);
        assert_eq!(LongDouble::from(5e-324).to_f64(), 5e-324);
    }

    #[test]
    fn a_char_is_latin1() {
        assert_eq!(Char::try_from('é'), Ok(Char(0xe9)));
        assert_eq!(Char::try_from('€'), Err(NotLatin1('€')));
        assert_eq!(char::from(Char(0xe9)), 'é');
    }
}
