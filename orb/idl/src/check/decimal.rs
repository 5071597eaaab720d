//! Arithmetic of fixed-point constants: exact to 62 digits, of which at most 31 are kept (IDL 4.2,
//! 7.4.1.4.3).
//!
//! A value lies between -10^31 and 10^31 and is a multiple of 10^-31: each operation needs at most 31 digits
//! before the point and 31 after it. Trailing zeros of a fraction are dropped.

use std::cmp::Ordering;

use crate::literal::MOST_DIGITS;
use crate::model::FixedValue;

const DIGITS: u32 = MOST_DIGITS as u32;

/// An exclusive bound of whole parts.
const UNIT: u128 = power(DIGITS);

/// 10^`exponent`, which is at most 38.
const fn power(exponent: u32) -> u128 {
    10u128.pow(exponent)
}

/// A magnitude: the whole part, and the rest in units of 10^-31.
type Parts = (u128, u128);

pub(super) fn negated(value: FixedValue) -> FixedValue {
    FixedValue { unscaled: -value.unscaled, ..value }
}

pub(super) fn add(left: FixedValue, right: FixedValue) -> Result<FixedValue, String> {
    let (a, b) = (parts(left), parts(right));
    let negative = left.unscaled < 0;
    if negative == (right.unscaled < 0) {
        let fraction = a.1 + b.1;
        return kept(negative, (a.0 + b.0 + fraction / UNIT, fraction % UNIT));
    }
    match a.cmp(&b) {
        Ordering::Less => kept(!negative, difference(b, a)),
        _ => kept(negative, difference(a, b)),
    }
}

pub(super) fn multiply(left: FixedValue, right: FixedValue) -> Result<FixedValue, String> {
    let (high, low) = product(left.unscaled.unsigned_abs(), right.unscaled.unsigned_abs());
    let scale = u32::from(left.scale) + u32::from(right.scale);
    let magnitude = match scale.checked_sub(DIGITS) {
        None => {
            let whole = high.checked_mul(power(DIGITS - scale)).and_then(|it| it.checked_add(low / power(scale)));
            (whole.ok_or_else(overflow)?, low % power(scale) * power(DIGITS - scale))
        }
        Some(dropped) => {
            let dropped_from = power(dropped);
            (high / dropped_from, high % dropped_from * power(DIGITS - dropped) + low / dropped_from)
        }
    };
    kept((left.unscaled < 0) != (right.unscaled < 0), magnitude)
}

pub(super) fn divide(left: FixedValue, right: FixedValue) -> Result<FixedValue, String> {
    let (dividend, divisor) = (left.unscaled.unsigned_abs(), right.unscaled.unsigned_abs());
    if divisor == 0 {
        return Err("division by zero".to_owned());
    }
    let mut scale = i32::from(left.scale) - i32::from(right.scale);
    let (mut quotient, mut rest) = (dividend / divisor, dividend % divisor);
    while rest > 0 && quotient < UNIT / 10 && scale < DIGITS as i32 {
        rest *= 10;
        quotient = quotient * 10 + rest / divisor;
        rest %= divisor;
        scale += 1;
    }
    if scale < 0 {
        quotient = quotient.checked_mul(power(scale.unsigned_abs())).ok_or_else(overflow)?;
        scale = 0;
    }
    if quotient >= UNIT {
        return Err(overflow());
    }
    let value = stripped(quotient, scale as u32);
    Ok(if (left.unscaled < 0) == (right.unscaled < 0) { value } else { negated(value) })
}

/// The digits and the scale of the smallest type that holds the value.
pub(super) fn digits_and_scale(value: FixedValue) -> (u16, u16) {
    let digits = length(value.unscaled.unsigned_abs()).max(u32::from(value.scale)).max(1);
    (digits as u16, u16::from(value.scale))
}

/// The value with the scale of its type, and whether digits after the point were dropped for it. `None` if it
/// has too many digits before the point.
pub(super) fn fitted(value: FixedValue, digits: u16, scale: u16) -> Option<(FixedValue, bool)> {
    let (has, wants) = (u32::from(value.scale), u32::from(scale));
    let (unscaled, dropped) = if has > wants {
        let factor = power(has - wants) as i128;
        (value.unscaled / factor, value.unscaled % factor != 0)
    } else {
        (value.unscaled.checked_mul(power(wants - has) as i128)?, false)
    };
    let fits = unscaled.unsigned_abs() < power(u32::from(digits));
    fits.then_some((FixedValue { unscaled, scale: scale as u8 }, dropped))
}

fn parts(value: FixedValue) -> Parts {
    let (magnitude, scale) = (value.unscaled.unsigned_abs(), u32::from(value.scale));
    (magnitude / power(scale), magnitude % power(scale) * power(DIGITS - scale))
}

/// `large - small`, both as digits and a scale.
fn difference(large: Parts, small: Parts) -> Parts {
    if large.1 >= small.1 {
        (large.0 - small.0, large.1 - small.1)
    } else {
        (large.0 - small.0 - 1, large.1 + UNIT - small.1)
    }
}

/// The product of two numbers of 31 digits: high 31 digits and low ones.
fn product(left: u128, right: u128) -> (u128, u128) {
    let half = power(16);
    let (a, b, c, d) = (left / half, left % half, right / half, right % half);
    let middle = a * d + b * c;
    let low = middle % power(15) * half + b * d;
    (a * c * 10 + middle / power(15) + low / UNIT, low % UNIT)
}

/// The value truncated to at most 31 significant digits.
fn kept(negative: bool, (whole, fraction): Parts) -> Result<FixedValue, String> {
    if whole >= UNIT {
        return Err(overflow());
    }
    let scale = DIGITS - length(whole);
    let value = stripped(whole * power(scale) + fraction / power(DIGITS - scale), scale);
    Ok(if negative { negated(value) } else { value })
}

/// Removes trailing zeros of the fraction. `magnitude` has at most 31 digits.
fn stripped(mut magnitude: u128, mut scale: u32) -> FixedValue {
    while scale > 0 && magnitude.is_multiple_of(10) {
        magnitude /= 10;
        scale -= 1;
    }
    FixedValue { unscaled: magnitude as i128, scale: scale as u8 }
}

/// The number of digits; zero has none.
fn length(magnitude: u128) -> u32 {
    magnitude.checked_ilog10().map_or(0, |it| it + 1)
}

fn overflow() -> String {
    format!("the result has more than {DIGITS} digits before the point")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal;

    type Operation = fn(FixedValue, FixedValue) -> Result<FixedValue, String>;

    fn value(text: &str) -> FixedValue {
        let magnitude = literal::fixed(&format!("{}d", text.trim_start_matches('-'))).expect("a literal");
        if text.starts_with('-') { negated(magnitude) } else { magnitude }
    }

    #[track_caller]
    fn check(operation: Operation, left: &str, right: &str, expected: &str) {
        assert_eq!(operation(value(left), value(right)), Ok(value(expected)), "{left} and {right}");
    }

    #[test]
    fn sums_are_exact() {
        check(add, "1.5", "2.25", "3.75");
        check(add, "1.5", "-2.25", "-0.75");
        check(add, "-1.5", "2.25", "0.75");
        check(add, "-1.5", "-0.5", "-2");
        check(add, "1", "-0.0000000000000000000000000000001", "0.9999999999999999999999999999999");
        // Beyond 31 digits the rest is dropped, not rounded.
        let large = "9999999999999999999999999999998";
        check(add, large, "0.9", large);
        assert!(add(value("9999999999999999999999999999999"), value("1")).is_err());
    }

    #[test]
    fn products_are_exact_and_truncated_to_31_digits() {
        check(multiply, "-0.5", "0.5", "-0.25");
        check(multiply, "9999999999999999", "999999999999999", "9999999999999989000000000000001");
        check(multiply, "1.23456789012345678", "1.23456789012345678", "1.524157875323883652796829976527");
        check(multiply, "0.0000000000000001", "0.0000000000000001", "0");
        check(multiply, "10000000000000000000000", "0.0000000000000001", "1000000");
        assert!(multiply(value("9999999999999999"), value("9999999999999999")).is_err());
        assert!(multiply(value("9999999999999999999999999999999"), value("9999999999999999999999999999999")).is_err());
    }

    #[test]
    fn quotients_have_31_digits_at_most() {
        check(divide, "1", "3", "0.3333333333333333333333333333333");
        check(divide, "200", "3", "66.66666666666666666666666666666");
        check(divide, "100", "0.001", "100000");
        check(divide, "-1", "8", "-0.125");
        check(divide, "0", "7", "0");
        check(divide, "0.0000000000000000000000000000001", "10", "0");
        assert!(divide(value("1"), value("0")).is_err());
        assert!(divide(value("9999999999999999999999999999999"), value("0.1")).is_err());
    }

    #[test]
    fn a_value_gets_the_scale_of_its_type() {
        let fixed = |unscaled, scale| FixedValue { unscaled, scale };
        assert_eq!(fitted(value("1.5"), 5, 2), Some((fixed(150, 2), false)));
        assert_eq!(fitted(value("-1.555"), 5, 2), Some((fixed(-155, 2), true)));
        assert_eq!(fitted(value("1234.5"), 5, 2), None);
        assert_eq!(fitted(value("9999999999999999999999999999999"), 31, 31), None);
        assert_eq!(digits_and_scale(value("0.05")), (2, 2));
        assert_eq!(digits_and_scale(value("300")), (3, 0));
        assert_eq!(digits_and_scale(value("0")), (1, 0));
    }
}
