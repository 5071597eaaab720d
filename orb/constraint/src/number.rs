//! Arithmetic and order of numbers.

use std::cmp::Ordering;

/// A number after promotion: all integer types are one, and both floating-point types.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Integer(i128),
    Floating(f64),
}

/// The reason why arithmetic has no result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NumberError {
    DivisionByZero,
    /// The type of the result cannot hold it.
    OutOfRange,
}

use Number::{Floating, Integer};

impl Number {
    /// Compares exactly; `None` if one of them is not a number.
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Integer(left), Integer(right)) => Some(left.cmp(&right)),
            (Floating(left), Floating(right)) => left.partial_cmp(&right),
            (Integer(left), Floating(right)) => compare_exactly(left, right),
            (Floating(left), Integer(right)) => compare_exactly(right, left).map(Ordering::reverse),
        }
    }

    pub(crate) fn add(self, other: Self) -> Result<Self, NumberError> {
        self.calculate(other, i128::checked_add, |left, right| left + right)
    }

    pub(crate) fn subtract(self, other: Self) -> Result<Self, NumberError> {
        self.calculate(other, i128::checked_sub, |left, right| left - right)
    }

    pub(crate) fn multiply(self, other: Self) -> Result<Self, NumberError> {
        self.calculate(other, i128::checked_mul, |left, right| left * right)
    }

    pub(crate) fn divide(self, other: Self) -> Result<Self, NumberError> {
        if other.double() == 0.0 {
            return Err(NumberError::DivisionByZero);
        }
        self.calculate(other, i128::checked_div, |left, right| left / right)
    }

    /// Integer arithmetic for two integers, else that of doubles.
    fn calculate(
        self,
        other: Self,
        integers: fn(i128, i128) -> Option<i128>,
        doubles: fn(f64, f64) -> f64,
    ) -> Result<Self, NumberError> {
        if let (Integer(left), Integer(right)) = (self, other) {
            return integers(left, right).map(Integer).ok_or(NumberError::OutOfRange);
        }
        let result = doubles(self.double(), other.double());
        if result.is_finite() { Ok(Floating(result)) } else { Err(NumberError::OutOfRange) }
    }

    fn double(self) -> f64 {
        match self {
            Integer(number) => number as f64,
            Floating(number) => number,
        }
    }
}

/// Compares an integer with a floating-point number, without rounding.
fn compare_exactly(integer: i128, number: f64) -> Option<Ordering> {
    if number.is_nan() {
        return None;
    }
    // The conversion saturates: -2^127 is exact, and 2^127 is greater than all integers.
    if number >= -(i128::MIN as f64) {
        return Some(Ordering::Less);
    }
    if number < i128::MIN as f64 {
        return Some(Ordering::Greater);
    }
    let whole = number.trunc();
    let order = integer.cmp(&(whole as i128));
    Some(if order.is_eq() { 0.0_f64.total_cmp(&(number - whole + 0.0)) } else { order })
}
