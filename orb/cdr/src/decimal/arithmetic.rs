//! Sums, products and quotients of decimals: exact in 62 digits, then truncated to 31.

use super::{Decimal, MAX_FIXED_DIGITS};

/// 10³¹: one more than the largest number without its point.
pub(super) const ONE: u128 = power(MAX_FIXED_DIGITS);
/// The divisor that halves a number, so that products of halves fit a `u128`.
const HALF: u128 = power(16);

/// 10^`exponent`; up to 38 fit.
pub(super) const fn power(exponent: u16) -> u128 {
    10_u128.pow(exponent as u32)
}

/// The number of digits; none for zero.
pub(super) fn digits(value: u128) -> u16 {
    value.checked_ilog10().map_or(0, |log| log as u16 + 1)
}

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
    pub(super) fn parts(self) -> (i128, i128) {
        let unit = power(self.scale).cast_signed();
        (self.unscaled / unit, self.unscaled % unit * power(MAX_FIXED_DIGITS - self.scale).cast_signed())
    }

    /// The number with these parts, whose signs may differ.
    fn join(whole: i128, fraction: i128) -> Option<Self> {
        let borrowed = if whole.signum() * fraction.signum() < 0 { whole.signum() } else { 0 };
        let (whole, fraction) = (whole - borrowed, fraction + borrowed * ONE.cast_signed());
        let kept = MAX_FIXED_DIGITS.checked_sub(digits(whole.unsigned_abs()))?;
        let dropped = power(MAX_FIXED_DIGITS - kept).cast_signed();
        Self::new(whole * power(kept).cast_signed() + fraction / dropped, kept).ok()
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
