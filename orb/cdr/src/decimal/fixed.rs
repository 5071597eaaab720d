//! `fixed<d,s>` as a Rust type: digits and scale belong to the type, so that a value is one integer.

use std::{fmt, ops::Neg, str::FromStr};

use super::{Decimal, FixedError, MAX_FIXED_DIGITS, packed, power, write_number};
use crate::{CdrError, Decode, Decoder, Encode, Encoder, FixedSize};

/// An IDL `fixed<D, S>`: a decimal number of `D` digits (1 to 31), `S` of them after the point.
///
/// ```
/// use spandrel_cdr::{Fixed, FixedError};
///
/// type Amount = Fixed<9, 2>;
/// const FEE: Amount = Amount::from_unscaled(1_50);
///
/// let price: Amount = "19.99".parse()?;
/// assert_eq!(price.checked_add(FEE).unwrap().to_string(), "21.49");
/// // Of a product, digits beyond the type's scale are discarded; rounding is explicit.
/// let rate: Fixed<5, 4> = "0.0725".parse()?;
/// assert_eq!(price.checked_mul(rate).unwrap().to_string(), "1.44");
/// assert_eq!(Amount::rounding(price.to_decimal().checked_mul(rate).unwrap())?.to_string(), "1.45");
/// # Ok::<(), FixedError>(())
/// ```
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Fixed<const D: u16, const S: u16>(i128);

impl<const D: u16, const S: u16> Fixed<D, S> {
    /// The most digits of a value, those after the point included.
    pub const DIGITS: u16 = D;
    /// Digits after the point.
    pub const SCALE: u16 = S;
    /// The number 0, a value of every `Fixed`.
    pub const ZERO: Self = Self::from_unscaled(0);
    /// The largest value: nines only.
    pub const MAX: Self = Self::from_unscaled(Self::LIMIT - 1);
    /// The most negative value: all its digits are 9.
    pub const MIN: Self = Self::from_unscaled(1 - Self::LIMIT);

    /// One more than the largest number without its point. Does not compile for invalid digits and scale.
    const LIMIT: i128 = {
        assert!(D >= 1 && D <= MAX_FIXED_DIGITS, "fixed has 1 to 31 digits");
        assert!(S <= D, "a fixed has no more digits after the point than in total");
        power(D).cast_signed()
    };

    /// The value with the digits `unscaled`, without the point: `Fixed::<5, 2>::from_unscaled(12345)` is
    /// 123.45.
    ///
    /// # Panics
    /// If `unscaled` has more than `D` digits: meant for constants, where that does not compile.
    #[must_use]
    pub const fn from_unscaled(unscaled: i128) -> Self {
        match Self::checked_from_unscaled(unscaled) {
            Some(value) => value,
            None => panic!("more digits than the fixed type has"),
        }
    }

    /// The value with the digits `unscaled`, without the point; `None` if those are more than `D`.
    #[must_use]
    pub const fn checked_from_unscaled(unscaled: i128) -> Option<Self> {
        if unscaled.unsigned_abs() < Self::LIMIT.unsigned_abs() { Some(Self(unscaled)) } else { None }
    }

    /// The digits without the point.
    #[must_use]
    pub const fn unscaled(self) -> i128 {
        self.0
    }

    /// The value without its type.
    #[must_use]
    pub fn to_decimal(self) -> Decimal {
        Decimal::new(self.0, S).expect("a fixed has at most 31 digits")
    }

    /// The value truncated to the type's digits after the point, as by assignment in C++.
    ///
    /// # Errors
    /// [`FixedError::Overflow`].
    pub fn truncating(value: impl Into<Decimal>) -> Result<Self, FixedError> {
        value.into().truncate(S).try_into()
    }

    /// The nearest value of the type, the one farther from zero if two are equally near.
    ///
    /// # Errors
    /// [`FixedError::Overflow`].
    pub fn rounding(value: impl Into<Decimal>) -> Result<Self, FixedError> {
        value.into().round(S).try_into()
    }

    /// The sum, truncated to the type; `None` if it has too many digits before the point.
    #[must_use]
    pub fn checked_add(self, other: impl Into<Decimal>) -> Option<Self> {
        Self::truncating(self.to_decimal().checked_add(other)?).ok()
    }

    /// The difference, truncated to the type; `None` if it has too many digits before the point.
    #[must_use]
    pub fn checked_sub(self, other: impl Into<Decimal>) -> Option<Self> {
        Self::truncating(self.to_decimal().checked_sub(other)?).ok()
    }

    /// The product, truncated to the type; `None` if it has too many digits before the point.
    #[must_use]
    pub fn checked_mul(self, other: impl Into<Decimal>) -> Option<Self> {
        Self::truncating(self.to_decimal().checked_mul(other)?).ok()
    }

    /// The quotient, truncated to the type; `None` for a division by zero, or too many digits before the
    /// point.
    #[must_use]
    pub fn checked_div(self, other: impl Into<Decimal>) -> Option<Self> {
        Self::truncating(self.to_decimal().checked_div(other)?).ok()
    }

    /// Truncates after the `scale`th digit after the point; later digits become zeros.
    #[must_use]
    pub fn truncate(self, scale: u16) -> Self {
        self.to_decimal().truncate(scale).try_into().expect("truncating adds no digit")
    }

    /// The nearest value with zeros after the `scale`th digit after the point, the one farther from zero if
    /// two are equally near. `None` if it has one digit more than the type, as 9.9 rounded to 10.
    #[must_use]
    pub fn checked_round(self, scale: u16) -> Option<Self> {
        self.to_decimal().round(scale).try_into().ok()
    }

    /// Returns the number without its sign.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.abs())
    }

    /// Returns the nearest `f64`; digits beyond its precision are lost.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.to_decimal().to_f64()
    }

    /// The whole part, if it is an `i64`.
    #[must_use]
    pub fn to_i64(self) -> Option<i64> {
        self.to_decimal().to_i64()
    }
}

impl<const D: u16, const S: u16> From<Fixed<D, S>> for Decimal {
    fn from(value: Fixed<D, S>) -> Self {
        value.to_decimal()
    }
}

impl<const D: u16, const S: u16> TryFrom<Decimal> for Fixed<D, S> {
    type Error = FixedError;

    /// Exactly this number.
    ///
    /// # Errors
    /// [`FixedError::Inexact`] or [`FixedError::Overflow`] if the type has too few digits after or before the
    /// point.
    fn try_from(value: Decimal) -> Result<Self, FixedError> {
        value.unscaled_as(D, S).map(Self)
    }
}

macro_rules! from_integer {
    ($($integer:ty)*) => {$(
        impl<const D: u16, const S: u16> TryFrom<$integer> for Fixed<D, S> {
            type Error = FixedError;

            fn try_from(value: $integer) -> Result<Self, FixedError> {
                Decimal::from(value).try_into()
            }
        }
    )*};
}

from_integer!(i8 u8 i16 u16 i32 u32 i64 u64);

impl<const D: u16, const S: u16> FromStr for Fixed<D, S> {
    type Err = FixedError;

    /// Parses exactly the number; the final `d` of an IDL literal is accepted.
    ///
    /// # Errors
    /// The errors of [`Decimal::from_str`] and of the conversion from [`Decimal`].
    fn from_str(text: &str) -> Result<Self, FixedError> {
        text.parse::<Decimal>()?.try_into()
    }
}

impl<const D: u16, const S: u16> Neg for Fixed<D, S> {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl<const D: u16, const S: u16> fmt::Display for Fixed<D, S> {
    /// All `S` digits after the point: `12.50`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_number(f, self.0, S)
    }
}

impl<const D: u16, const S: u16> fmt::Debug for Fixed<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}d")
    }
}

impl<const D: u16, const S: u16> Encode for Fixed<D, S> {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        packed::put(self.0, out.room(packed::octets(D)));
        Ok(())
    }
}

impl<const D: u16, const S: u16> Decode for Fixed<D, S> {
    const MIN_OCTETS: usize = packed::octets(D);

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        packed::get(input.take(packed::octets(D))?, D).map(Self)
    }
}

impl<const D: u16, const S: u16> FixedSize for Fixed<D, S> {
    const FIRST_ALIGN: usize = 1;
    const ALIGN: usize = 1;
    const SIZE: usize = packed::octets(D);

    fn put<const SWAP: bool>(&self, out: &mut [u8]) {
        packed::put(self.0, out);
    }

    fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, CdrError> {
        packed::get(input, D).map(Self)
    }
}
