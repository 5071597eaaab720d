//! Exact arithmetic of constant expressions.
//!
//! Integers are computed in the joint range of `long` and `unsigned long`, or of their `long long` forms for
//! a constant of such a type: every intermediate value must lie between the least signed and the greatest
//! unsigned one (IDL 4.2, 7.4.1.4.3).

use std::ops::RangeInclusive;

use super::decimal;
use crate::ast::{Binary, Step, StepKind, Unary};
use crate::model::{ConstValue, FixedValue};

/// The width of integer arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    W32,
    W64,
}

impl Width {
    pub(super) fn bits(self) -> u32 {
        match self {
            Width::W32 => 32,
            Width::W64 => 64,
        }
    }

    fn most_signed(self) -> i128 {
        match self {
            Width::W32 => i128::from(i32::MAX),
            Width::W64 => i128::from(i64::MAX),
        }
    }

    pub(super) fn range(self) -> RangeInclusive<i128> {
        match self {
            Width::W32 => i128::from(i32::MIN)..=i128::from(u32::MAX),
            Width::W64 => i128::from(i64::MIN)..=i128::from(u64::MAX),
        }
    }
}

/// Applies an operator; the error is a message. `width` is `None` except for integers. `is_signed` selects
/// the meaning of `~` for a non-negative value: the complement in the signed type of that width, or in the
/// unsigned one.
pub(super) fn unary(
    operator: Unary,
    operand: &ConstValue,
    width: Option<Width>,
    is_signed: bool,
) -> Result<ConstValue, String> {
    match (operand, width) {
        (ConstValue::Integer(value), Some(width)) => {
            let is_signed = *value < 0 || (is_signed && *value <= width.most_signed());
            let result = match operator {
                Unary::Plus => *value,
                Unary::Minus => -*value,
                // `-(value + 1)` of a signed operand, `2 ** bits - 1 - value` of an unsigned one (table 7-12).
                Unary::Complement if is_signed => -(*value + 1),
                Unary::Complement => *width.range().end() - *value,
            };
            in_range(result, width)
        }
        (ConstValue::Fixed(value), _) => match operator {
            Unary::Plus => Ok(ConstValue::Fixed(*value)),
            Unary::Minus => Ok(ConstValue::Fixed(decimal::negated(*value))),
            Unary::Complement => Err(not_defined("~", operand)),
        },
        (ConstValue::Float(value), _) => match operator {
            Unary::Plus => Ok(ConstValue::Float(*value)),
            Unary::Minus => Ok(ConstValue::Float(-*value)),
            Unary::Complement => Err(not_defined("~", operand)),
        },
        _ => {
            let text = match operator {
                Unary::Plus => "+",
                Unary::Minus => "-",
                Unary::Complement => "~",
            };
            Err(not_defined(text, operand))
        }
    }
}

/// As [`unary`], for two operands.
pub(super) fn binary(
    operator: Binary,
    left: &ConstValue,
    right: &ConstValue,
    width: Option<Width>,
) -> Result<ConstValue, String> {
    match (left, right, width) {
        (ConstValue::Integer(left), ConstValue::Integer(right), Some(width)) => {
            in_range(integers(operator, *left, *right)?, width)
        }
        (ConstValue::Fixed(left), ConstValue::Fixed(right), _) => decimals(operator, *left, *right),
        (ConstValue::Float(left), ConstValue::Float(right), _) => floats(operator, *left, *right),
        _ => Err(not_defined(text(operator), left)),
    }
}

/// Operands are within 65 bits, so that only a shift can overflow.
fn integers(operator: Binary, left: i128, right: i128) -> Result<i128, String> {
    let value = match operator {
        Binary::Or => left | right,
        Binary::Xor => left ^ right,
        Binary::And => left & right,
        Binary::ShiftLeft => left << shift(right)?,
        Binary::ShiftRight => left >> shift(right)?,
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left.checked_mul(right).ok_or("the product is too large")?,
        Binary::Divide | Binary::Remainder if right == 0 => {
            return Err("division by zero".to_owned());
        }
        Binary::Divide => left / right,
        Binary::Remainder => left % right,
    };
    Ok(value)
}

fn shift(count: i128) -> Result<u32, String> {
    match u32::try_from(count) {
        Ok(count) if count < 64 => Ok(count),
        _ => Err(format!("a shift must be from 0 to 63, and this is {count}")),
    }
}

fn floats(operator: Binary, left: f64, right: f64) -> Result<ConstValue, String> {
    let value = match operator {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide if right == 0.0 => return Err("division by zero".to_owned()),
        Binary::Divide => left / right,
        _ => return Err(not_defined(text(operator), &ConstValue::Float(left))),
    };
    if value.is_finite() {
        Ok(ConstValue::Float(value))
    } else {
        Err("the result is too large for a double".to_owned())
    }
}

fn decimals(operator: Binary, left: FixedValue, right: FixedValue) -> Result<ConstValue, String> {
    let value = match operator {
        Binary::Add => decimal::add(left, right),
        Binary::Subtract => decimal::add(left, decimal::negated(right)),
        Binary::Multiply => decimal::multiply(left, right),
        Binary::Divide => decimal::divide(left, right),
        _ => return Err(not_defined(text(operator), &ConstValue::Fixed(left))),
    };
    value.map(ConstValue::Fixed)
}

fn in_range(value: i128, width: Width) -> Result<ConstValue, String> {
    let range = width.range();
    if range.contains(&value) {
        return Ok(ConstValue::Integer(value));
    }
    let (least, most) = (range.start(), range.end());
    Err(format!("the result, {value}, is outside the range of this computation, {least} to {most}"))
}

fn not_defined(operator: &str, operand: &ConstValue) -> String {
    format!("`{operator}` is not defined for {}", kind_name(operand))
}

fn text(operator: Binary) -> &'static str {
    match operator {
        Binary::Or => "|",
        Binary::Xor => "^",
        Binary::And => "&",
        Binary::ShiftLeft => "<<",
        Binary::ShiftRight => ">>",
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Remainder => "%",
    }
}

/// The kind of value, with its article.
pub(super) fn kind_name(value: &ConstValue) -> &'static str {
    match value {
        ConstValue::Integer(_) => "an integer",
        ConstValue::Float(_) => "a floating-point number",
        ConstValue::Boolean(_) => "a boolean",
        ConstValue::Char(_) => "a character",
        ConstValue::WideChar(_) => "a wide character",
        ConstValue::String(_) => "a string",
        ConstValue::WideString(_) => "a wide string",
        ConstValue::Fixed(_) => "a fixed-point number",
        ConstValue::Enumerator(_) => "an enumerator",
    }
}

/// Whether an expression contains the operator `~`, whose result depends on the type.
pub(super) fn complements(steps: &[Step]) -> bool {
    let mut steps = steps.iter();
    steps.any(|step| matches!(step.kind, StepKind::Unary(Unary::Complement)))
}
