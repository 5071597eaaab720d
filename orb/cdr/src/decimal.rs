//! Fixed-point decimal numbers: IDL `fixed<d,s>` as [`Fixed`], and [`Decimal`], the number without its type.
//!
//! They compute as the standard's C++ class `Fixed` does (C++ Language Mapping 1.3, 4.9; IDL 4.2, 7.4.1.4.3):
//! exactly, in up to 62 digits, of which up to 31 are kept. Excess digits after the point are truncated,
//! never rounded. A number that does not fit is an error, never a wrong number. The wire format is in
//! `packed`.

use std::{cmp::Ordering, fmt, ops::Neg, str::FromStr};

mod fixed;
mod packed;

pub use fixed::Fixed;

/// The maximum number of digits of a `fixed`.
pub const MAX_FIXED_DIGITS: u16 = 31;

/// 10³¹: one more than the largest number without its point.
pub(super) const ONE: u128 = power(MAX_FIXED_DIGITS);
/// The divisor that halves a number, so that products of halves fit a `u128`.
const HALF: u128 = power(16);

/// 10^`exponent`; up to 38 fit.
pub(super) const fn power(exponent: u16) -> u128 {
    10_u128.pow(exponent as u32)
}

/// The number of digits; none for zero.
fn digits(value: u128) -> u16 {
    value.checked_ilog10().map_or(0, |log| log as u16 + 1)
}

/// The reason for which a number is no value of a `fixed` type, or a text is no number.
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FixedError {
    /// The text is not an optional sign and digits with at most one point.
    #[error("the text is no decimal number: expected a sign, if any, and digits with at most one point")]
    NotANumber,
    /// More digits before the point than the type has, or more than 31 significant digits.
    #[error("the number has more digits before the point than its `fixed` type, or more than 31 digits")]
    Overflow,
    /// More digits after the point than the type has.
    #[error("the number has more digits after the point than its `fixed` type")]
    Inexact,
}
spandrel_error::debug_as_report!(FixedError);

/// A decimal number of up to 31 digits, with the point anywhere among or before them.
///
/// The result of arithmetic on [`Fixed`] of several types, and the content of `DynFixed`. Trailing zeros of
/// the fraction are dropped: equal numbers are the same value.
///
/// ```
/// # mod types { pub use spandrel_cdr::*; }
/// use types::{Decimal, FixedError}; // of spandrel
///
/// let price: Decimal = "19.90".parse()?;
/// assert_eq!((price.unscaled(), price.scale()), (199, 1));
/// assert_eq!(price.checked_mul(Decimal::new(3, 0)?).map(|sum| sum.to_string()), Some("59.7".to_owned()));
/// assert_eq!("19,90".parse::<Decimal>(), Err(FixedError::NotANumber));
/// # Ok::<(), FixedError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Decimal {
    /// Below 10³¹ in magnitude; no multiple of ten unless the scale is 0.
    unscaled: i128,
    /// Digits after the point, 31 at most.
    scale: u16,
}

impl Decimal {
    /// The number 0, with no digit after the point.
    pub const ZERO: Self = Self { unscaled: 0, scale: 0 };

    /// The number `unscaled` / 10^`scale`.
    ///
    /// # Errors
    /// [`FixedError::Overflow`] if its digits are more than 31; [`FixedError::Inexact`] if those after the
    /// point are.
    pub fn new(unscaled: i128, scale: u16) -> Result<Self, FixedError> {
        let (mut unscaled, mut scale) = (unscaled, scale);
        while scale > 0 && unscaled % 10 == 0 {
            unscaled /= 10;
            scale = if unscaled == 0 { 0 } else { scale - 1 };
        }
        if unscaled.unsigned_abs() >= ONE {
            Err(FixedError::Overflow)
        } else if scale > MAX_FIXED_DIGITS {
            Err(FixedError::Inexact)
        } else {
            Ok(Self { unscaled, scale })
        }
    }

    /// The number without its point: itself × 10^[`Decimal::scale`].
    #[must_use]
    pub fn unscaled(self) -> i128 {
        self.unscaled
    }

    /// The number of digits after the point, without trailing zeros.
    #[must_use]
    pub fn scale(self) -> u16 {
        self.scale
    }

    /// The number of digits, from the first that is not zero, or from the point if that comes earlier.
    #[must_use]
    pub fn digits(self) -> u16 {
        digits(self.unscaled.unsigned_abs()).max(self.scale)
    }

    /// Whether it is below zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.unscaled < 0
    }

    /// Truncates to `scale` digits after the point (C++ `truncate`).
    #[must_use]
    pub fn truncate(self, scale: u16) -> Self {
        match self.scale.checked_sub(scale) {
            None => self,
            Some(surplus) => Self::small(self.unscaled / power(surplus).cast_signed(), scale),
        }
    }

    /// The nearest number with at most `scale` digits after the point, the one farther from zero if two are
    /// equally near (C++ `round`).
    #[must_use]
    pub fn round(self, scale: u16) -> Self {
        let Some(surplus) = self.scale.checked_sub(scale) else { return self };
        let unit = power(surplus).cast_signed();
        let up = i128::from((self.unscaled % unit).abs() * 2 >= unit) * self.unscaled.signum();
        Self::small(self.unscaled / unit + if surplus == 0 { 0 } else { up }, scale)
    }

    /// A number whose digits are known to fit.
    fn small(unscaled: i128, scale: u16) -> Self {
        Self::new(unscaled, scale).expect("no more digits than before")
    }

    /// The number × 10^`scale`, if that is below 10^`digits`.
    fn unscaled_as(self, digits: u16, scale: u16) -> Result<i128, FixedError> {
        let more = scale.checked_sub(self.scale).ok_or(FixedError::Inexact)?;
        let fits = |unscaled: &i128| unscaled.unsigned_abs() < power(digits);
        self.unscaled.checked_mul(power(more).cast_signed()).filter(fits).ok_or(FixedError::Overflow)
    }

    /// Returns the nearest `f64`; digits beyond its precision are lost.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().expect("decimal digits and a point are a number")
    }

    /// The whole part, if it is an `i64` (C++ `operator LongLong`).
    #[must_use]
    pub fn to_i64(self) -> Option<i64> {
        i64::try_from(self.truncate(0).unscaled).ok()
    }
}

/// Sums, products and quotients: exact in 62 digits, then truncated to 31.
impl Decimal {
    /// The sum; `None` beyond 31 digits before the point.
    #[must_use]
    pub fn checked_add(self, other: impl Into<Self>) -> Option<Self> {
        let (a, b) = (self.parts(), other.into().parts());
        let one = ONE.cast_signed();
        let fraction = a.1 + b.1;
        Self::join(a.0 + b.0 + fraction / one, fraction % one)
    }

    /// The difference; `None` beyond 31 digits before the point.
    #[must_use]
    pub fn checked_sub(self, other: impl Into<Self>) -> Option<Self> {
        self.checked_add(-other.into())
    }

    /// The product; `None` beyond 31 digits before the point.
    #[must_use]
    pub fn checked_mul(self, other: impl Into<Self>) -> Option<Self> {
        let other = other.into();
        let (a, b) = (self.unscaled.unsigned_abs(), other.unscaled.unsigned_abs());
        let (a1, a0, b1, b0) = (a / HALF, a % HALF, b / HALF, b % HALF);
        // Schoolbook multiplication in digits of 10¹⁶, then regrouped to digits of 10³¹.
        let middle = a1 * b0 + a0 * b1;
        let low = (middle % power(15)) * HALF + a0 * b0;
        let high = a1 * b1 * 10 + middle / power(15) + low / ONE;
        let product = Self::shorten(high, low % ONE, self.scale + other.scale)?;
        Some(if self.is_negative() == other.is_negative() { product } else { -product })
    }

    /// The quotient, in as many digits as fit; `None` for a division by zero, and beyond 31 digits before the
    /// point.
    #[must_use]
    pub fn checked_div(self, other: impl Into<Self>) -> Option<Self> {
        let other = other.into();
        let (a, b) = (self.unscaled.unsigned_abs(), other.unscaled.unsigned_abs());
        let (mut quotient, mut rest) = (a.checked_div(b)?, a.checked_rem(b)?);
        let mut scale = i32::from(self.scale) - i32::from(other.scale);
        // Long division, a digit at a time.
        while scale < 0 || (rest > 0 && digits(quotient) < MAX_FIXED_DIGITS && scale < MAX_FIXED_DIGITS.into()) {
            quotient = quotient * 10 + rest * 10 / b;
            rest = rest * 10 % b;
            scale += 1;
            if quotient >= ONE {
                return None;
            }
        }
        let quotient = Self::shorten(0, quotient, u16::try_from(scale).ok()?)?;
        Some(if self.is_negative() == other.is_negative() { quotient } else { -quotient })
    }

    /// The parts before the point, and after it × 10³¹, both with the number's sign.
    fn parts(self) -> (i128, i128) {
        let unit = power(self.scale).cast_signed();
        (self.unscaled / unit, self.unscaled % unit * power(MAX_FIXED_DIGITS - self.scale).cast_signed())
    }

    /// The number with these parts, whose signs may differ.
    fn join(whole: i128, fraction: i128) -> Option<Self> {
        let borrowed = if whole.signum() * fraction.signum() < 0 { whole.signum() } else { 0 };
        let (whole, fraction) = (whole - borrowed, fraction + borrowed * ONE.cast_signed());
        let scale = MAX_FIXED_DIGITS.checked_sub(digits(whole.unsigned_abs()))?;
        let dropped = power(MAX_FIXED_DIGITS - scale).cast_signed();
        Self::new(whole * power(scale).cast_signed() + fraction / dropped, scale).ok()
    }

    /// The number (`high` × 10³¹ + `low`) / 10^`scale`, without excess digits.
    fn shorten(high: u128, low: u128, scale: u16) -> Option<Self> {
        let all = if high > 0 { MAX_FIXED_DIGITS + digits(high) } else { digits(low) };
        let dropped = all.max(scale).saturating_sub(MAX_FIXED_DIGITS);
        let scale = scale.checked_sub(dropped)?;
        let unscaled = high * power(MAX_FIXED_DIGITS - dropped) + low / power(dropped);
        Self::new(unscaled.cast_signed(), scale).ok()
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl Neg for Decimal {
    type Output = Self;

    fn neg(self) -> Self {
        Self { unscaled: -self.unscaled, ..self }
    }
}

macro_rules! from_integer {
    ($($integer:ty)*) => {$(
        impl From<$integer> for Decimal {
            fn from(value: $integer) -> Self {
                Self { unscaled: value.into(), scale: 0 }
            }
        }
    )*};
}

from_integer!(i8 u8 i16 u16 i32 u32 i64 u64);

impl TryFrom<f64> for Decimal {
    type Error = FixedError;

    /// The number that `value` is printed as, truncated to 31 digits.
    ///
    /// # Errors
    /// [`FixedError::NotANumber`] for infinities and NaN; [`FixedError::Overflow`].
    fn try_from(value: f64) -> Result<Self, FixedError> {
        if !value.is_finite() {
            return Err(FixedError::NotANumber);
        }
        let text = value.to_string();
        let whole = text.split('.').next().map_or(0, |whole| whole.trim_start_matches(['-', '0']).len());
        let fraction_digits = usize::from(MAX_FIXED_DIGITS).saturating_sub(whole);
        let end = text.find('.').map_or(text.len(), |point| text.len().min(point + 1 + fraction_digits));
        text[..end].parse()
    }
}

impl FromStr for Decimal {
    type Err = FixedError;

    /// Parses a sign, digits and a point; the final `d` of an IDL literal is accepted.
    ///
    /// # Errors
    /// [`FixedError::NotANumber`]; [`FixedError::Overflow`] or [`FixedError::Inexact`] if there are too many
    /// digits.
    fn from_str(text: &str) -> Result<Self, FixedError> {
        let (negative, text) = match text.strip_prefix(['-', '+']) {
            Some(rest) => (text.starts_with('-'), rest),
            None => (false, text),
        };
        let text = text.strip_suffix(['d', 'D']).unwrap_or(text);
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = || whole.bytes().chain(fraction.bytes());
        if digits().next().is_none() || !digits().all(|digit| digit.is_ascii_digit()) {
            return Err(FixedError::NotANumber);
        }
        // Trailing zeros do not count against the 31 digits.
        let fraction = fraction.trim_end_matches('0');
        let mut unscaled = 0_i128;
        for digit in whole.bytes().chain(fraction.bytes()) {
            unscaled = unscaled * 10 + i128::from(digit - b'0');
            if unscaled.unsigned_abs() >= ONE {
                return Err(FixedError::Overflow);
            }
        }
        let scale = u16::try_from(fraction.len()).map_err(|_| FixedError::Inexact)?;
        Self::new(if negative { -unscaled } else { unscaled }, scale)
    }
}

impl fmt::Display for Decimal {
    /// Prints the fewest digits that represent the number: `-12.5`, `0.05`, `3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_number(f, self.unscaled, self.scale)
    }
}

/// Prints with exactly `scale` digits after the point, honouring width, fill and sign.
fn write_number(f: &mut fmt::Formatter<'_>, unscaled: i128, scale: u16) -> fmt::Result {
    let unit = power(scale);
    let (whole, fraction) = (unscaled.unsigned_abs() / unit, unscaled.unsigned_abs() % unit);
    let text = match scale {
        0 => whole.to_string(),
        _ => format!("{whole}.{fraction:0width$}", width = usize::from(scale)),
    };
    f.pad_integral(unscaled >= 0, "", &text)
}
