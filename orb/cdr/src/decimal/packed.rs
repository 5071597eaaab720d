//! Packed decimals: two digits per octet, the sign in the last half octet (CORBA 3.3 Part 2, 9.3.2.8).
//!
//! `fixed<d,s>` has d digits, after a zero if d is even, and no point: its position comes from the type. The
//! sign is 0xC, or 0xD below zero. Some ORBs encode zero with 0xD; it is decoded as zero and encoded with
//! 0xC. The octets have neither byte order nor alignment.

use super::{Decimal, FixedError, MAX_FIXED_DIGITS};
use crate::{CdrError, Decoder, Encoder};

const PLUS: u8 = 0xc;
const MINUS: u8 = 0xd;

/// Octets of a number with this many digits and its sign.
pub(super) const fn octets(digits: u16) -> usize {
    digits as usize / 2 + 1
}

/// Fills `out` with the number: digits from the right, preceded by zeros.
pub(super) fn put(unscaled: i128, out: &mut [u8]) {
    let mut half = if unscaled < 0 { MINUS } else { PLUS };
    let mut rest = unscaled.unsigned_abs();
    let mut next = || {
        let digit = (rest % 10) as u8;
        rest /= 10;
        digit
    };
    for octet in out.iter_mut().rev() {
        *octet = next() << 4 | half;
        half = next();
    }
}

/// Decodes a number written by [`put`] with this many digits. A zero may have either sign.
pub(super) fn get(octets: &[u8], digits: u16) -> Result<i128, CdrError> {
    let (last, others) = octets.split_last().ok_or(CdrError::BadFixed("it is empty"))?;
    let halves = others.iter().flat_map(|octet| [octet >> 4, octet & 0xf]).chain([last >> 4]);
    let mut unscaled = 0_i128;
    for (at, half) in halves.enumerate() {
        if half > 9 {
            return Err(CdrError::BadFixed("a half octet is not a digit"));
        }
        if at == 0 && digits.is_multiple_of(2) && half != 0 {
            return Err(CdrError::BadFixed("it has too many digits"));
        }
        unscaled = unscaled * 10 + i128::from(half);
    }
    match last & 0xf {
        PLUS => Ok(unscaled),
        MINUS => Ok(-unscaled),
        _ => Err(CdrError::BadFixed("the last half octet is not a sign")),
    }
}

impl Decimal {
    /// Encodes the number as a `fixed<digits, scale>` whose type is known only at run time.
    ///
    /// # Errors
    /// [`CdrError::FixedOverflow`] if the type has too few digits before or after the point, or is invalid.
    pub fn encode_as(self, digits: u16, scale: u16, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        let overflow = |_: FixedError| CdrError::FixedOverflow { digits, scale };
        check(digits, scale)?;
        let unscaled = self.unscaled_as(digits, scale).map_err(overflow)?;
        put(unscaled, out.room(octets(digits)));
        Ok(())
    }

    /// Decodes a `fixed<digits, scale>` whose type is known only at run time.
    ///
    /// # Errors
    /// [`CdrError::BadFixed`]; [`CdrError::Truncated`]; [`CdrError::FixedOverflow`] if the type is invalid.
    pub fn decode_as(digits: u16, scale: u16, input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        check(digits, scale)?;
        let unscaled = get(input.take(octets(digits))?, digits)?;
        Ok(Self::new(unscaled, scale).expect("as many digits as the type has"))
    }
}

/// Rejects an invalid `fixed` type.
fn check(digits: u16, scale: u16) -> Result<(), CdrError> {
    if digits == 0 || digits > MAX_FIXED_DIGITS || scale > digits {
        return Err(CdrError::FixedOverflow { digits, scale });
    }
    Ok(())
}
