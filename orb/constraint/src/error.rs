//! The reasons why texts are refused and expressions have no value.

use crate::limits::Limit;
use crate::value::ValueType;

/// Values of types that an operator does not accept (B.2.4).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{operator} cannot be applied to {operands}")]
pub struct TypeMismatch {
    /// The operator, or the part of the language that has the value.
    pub operator: &'static str,
    /// The types of the operands, for messages.
    pub operands: String,
}

impl TypeMismatch {
    /// For one operand, or the operand of an operator whose other operand has an unknown type.
    pub(crate) fn one(operator: &'static str, operand: ValueType) -> Self {
        Self { operator, operands: operand.to_string() }
    }

    pub(crate) fn two(operator: &'static str, left: ValueType, right: ValueType) -> Self {
        Self { operator, operands: format!("{left} and {right}") }
    }
}

/// The reason why a text is no constraint or preference.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConstraintError {
    /// The text violates the grammar.
    #[error("expected {expected} at octet {at}, not {token}")]
    Syntax {
        /// The position in the text, in octets from 0.
        at: usize,
        /// The parts of the grammar that may stand there.
        expected: &'static str,
        /// The text at that place, shortened.
        token: String,
    },
    /// A number is larger than the largest `double`.
    #[error("the number at octet {at} is beyond the range of double")]
    Number {
        /// The position in the text, in octets from 0.
        at: usize,
    },
    /// The text exceeds a limit.
    #[error(transparent)]
    Limit(#[from] Limit),
    /// An operator is applied to values of types that it does not accept.
    #[error(transparent)]
    Type(#[from] TypeMismatch),
}
spandrel_error::debug_as_report!(ConstraintError);

/// The reason why an expression has no value for an offer.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// The property has no value.
    #[error("the property {0} has no value")]
    MissingProperty(String),
    /// An operator is applied to values of types that it does not accept.
    #[error(transparent)]
    Type(#[from] TypeMismatch),
    /// A number was divided by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A result of arithmetic is beyond the range of its type.
    #[error("the result of {0} is out of range")]
    Overflow(&'static str),
    /// The value of a `min` or `max` expression is not a number.
    #[error("the value is not a number (NaN)")]
    NotANumber,
    /// The evaluation exceeds a limit.
    #[error(transparent)]
    Limit(#[from] Limit),
}
spandrel_error::debug_as_report!(EvaluationError);
