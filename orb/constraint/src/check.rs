//! The types of expressions (B.2.3, B.2.4), as far as those of their properties are known.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

use crate::error::{ConstraintError, TypeMismatch};
use crate::expression::Expression;
use crate::value::{SimpleType, Value, ValueType};

/// The declared types of properties, as in a service type.
pub trait PropertyTypes {
    /// The type of the property with this name; `None` where it is not known, and each use is allowed.
    fn value_type(&self, name: &str) -> Option<ValueType>;
}

/// Properties of unknown types: only literals and results of operators are checked.
#[derive(Clone, Copy, Debug)]
pub struct UnknownTypes;

impl PropertyTypes for UnknownTypes {
    fn value_type(&self, _name: &str) -> Option<ValueType> {
        None
    }
}

impl<K: std::borrow::Borrow<str> + Eq + std::hash::Hash, S: BuildHasher> PropertyTypes for HashMap<K, ValueType, S> {
    fn value_type(&self, name: &str) -> Option<ValueType> {
        self.get(name).copied()
    }
}

impl<K: std::borrow::Borrow<str> + Ord> PropertyTypes for BTreeMap<K, ValueType> {
    fn value_type(&self, name: &str) -> Option<ValueType> {
        self.get(name).copied()
    }
}

/// Checks that an expression has this type, if its type is known.
pub(crate) fn require<T: PropertyTypes + ?Sized>(
    expression: &Expression,
    expected: SimpleType,
    user: &'static str,
    types: &T,
) -> Result<(), ConstraintError> {
    match type_of(expression, types)? {
        Some(other) if other != ValueType::Simple(expected) => Err(TypeMismatch::one(user, other).into()),
        _ => Ok(()),
    }
}

/// The type of an expression, if it is known.
fn type_of<T: PropertyTypes + ?Sized>(
    expression: &Expression,
    types: &T,
) -> Result<Option<ValueType>, ConstraintError> {
    let simple = |simple| Ok(Some(ValueType::Simple(simple)));
    let booleans = |operands: &[Expression], user| {
        operands.iter().try_for_each(|operand| require(operand, SimpleType::Boolean, user, types))
    };
    match expression {
        Expression::Or(operands) => {
            booleans(operands, "or")?;
            simple(SimpleType::Boolean)
        }
        Expression::And(operands) => {
            booleans(operands, "and")?;
            simple(SimpleType::Boolean)
        }
        Expression::Not(operand) => {
            require(operand, SimpleType::Boolean, "not", types)?;
            simple(SimpleType::Boolean)
        }
        Expression::Compare { comparison, left, right } => {
            let (left, right) = (type_of(left, types)?, type_of(right, types)?);
            let is_simple = |side: Option<ValueType>| side.is_none_or(|side| matches!(side, ValueType::Simple(_)));
            let is_same = left.is_none() || right.is_none() || left == right;
            if !(is_simple(left) && is_simple(right) && is_same) {
                return Err(operands_error(comparison.symbol(), left, right).into());
            }
            simple(SimpleType::Boolean)
        }
        Expression::In { element, sequence } => {
            let (element, sequence) = (type_of(element, types)?, types.value_type(sequence));
            let fits = match (element, sequence) {
                (Some(ValueType::Simple(element)), Some(ValueType::Sequence(content))) => element == content,
                (None, Some(ValueType::Sequence(_))) | (Some(ValueType::Simple(_)) | None, None) => true,
                _ => false,
            };
            if !fits {
                return Err(operands_error("in", element, sequence).into());
            }
            simple(SimpleType::Boolean)
        }
        Expression::Substring { part, whole } => {
            require(part, SimpleType::Text, "~", types)?;
            require(whole, SimpleType::Text, "~", types)?;
            simple(SimpleType::Boolean)
        }
        Expression::Sum { first, rest } => {
            require(first, SimpleType::Number, rest.first().map_or("+", |(operator, _)| operator.symbol()), types)?;
            rest.iter()
                .try_for_each(|(operator, operand)| require(operand, SimpleType::Number, operator.symbol(), types))?;
            simple(SimpleType::Number)
        }
        Expression::Product { first, rest } => {
            require(first, SimpleType::Number, rest.first().map_or("*", |(operator, _)| operator.symbol()), types)?;
            rest.iter()
                .try_for_each(|(operator, operand)| require(operand, SimpleType::Number, operator.symbol(), types))?;
            simple(SimpleType::Number)
        }
        Expression::Exist(_) | Expression::Default(_) => simple(SimpleType::Boolean),
        Expression::Property(name) => Ok(types.value_type(name)),
        Expression::Literal(value) => Ok(Value::value_type(value)),
    }
}

/// The error of two operands, one of which may be of an unknown type.
fn operands_error(operator: &'static str, left: Option<ValueType>, right: Option<ValueType>) -> TypeMismatch {
    match (left, right) {
        (Some(left), Some(right)) => TypeMismatch::two(operator, left, right),
        (left, right) => TypeMismatch::one(operator, left.or(right).unwrap_or(ValueType::Other)),
    }
}
