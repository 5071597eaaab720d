//! The value of an expression for the properties of an offer.

use std::cmp::Ordering;

use crate::error::{EvaluationError, TypeMismatch};
use crate::expression::{Comparison, Expression, ProductOperator, SumOperator};
use crate::limits::Limit;
use crate::number::{Number, NumberError};
use crate::value::{Properties, Value, ValueType};

/// An evaluation with its remaining steps.
#[derive(Debug)]
pub(crate) struct Evaluation<'v, P: ?Sized> {
    properties: &'v P,
    remaining: u64,
    bound: u64,
}

impl<'v, P: Properties + ?Sized> Evaluation<'v, P> {
    pub(crate) fn new(properties: &'v P, steps: u64) -> Self {
        Self { properties, remaining: steps, bound: steps }
    }

    /// The steps that are left.
    pub(crate) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The value of an expression that is a boolean. `user` is the operator of which it is an operand.
    pub(crate) fn boolean(&mut self, expression: &'v Expression, user: &'static str) -> Result<bool, EvaluationError> {
        match self.value(expression)? {
            Value::Boolean(value) => Ok(value),
            other => Err(operand_error(user, &other)),
        }
    }

    /// The value of an expression that is a number.
    pub(crate) fn number(&mut self, expression: &'v Expression, user: &'static str) -> Result<Number, EvaluationError> {
        let value = self.value(expression)?;
        value.number().ok_or_else(|| operand_error(user, &value))
    }

    fn charge(&mut self, steps: usize) -> Result<(), EvaluationError> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.remaining = self.remaining.checked_sub(steps).ok_or(Limit::Steps(self.bound))?;
        Ok(())
    }

    fn value(&mut self, expression: &'v Expression) -> Result<Value<'v>, EvaluationError> {
        self.charge(1)?;
        Ok(match expression {
            Expression::Or(operands) => Value::Boolean(self.is_any(operands, true, "or")?),
            Expression::And(operands) => Value::Boolean(!self.is_any(operands, false, "and")?),
            Expression::Not(operand) => Value::Boolean(!self.boolean(operand, "not")?),
            Expression::Compare { comparison, left, right } => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                Value::Boolean(self.compare(*comparison, &left, &right)?)
            }
            Expression::In { element, sequence } => {
                let (element, sequence) = (self.value(element)?, self.property(sequence)?);
                Value::Boolean(self.contains(&sequence, &element)?)
            }
            Expression::Substring { part, whole } => match (self.value(part)?, self.value(whole)?) {
                (Value::Text(part), Value::Text(whole)) => {
                    self.charge(part.len().saturating_add(whole.len()))?;
                    // The search of the standard library is linear in both lengths.
                    Value::Boolean(whole.contains(&*part))
                }
                (part, whole) => return Err(operands_error("~", &part, &whole)),
            },
            Expression::Sum { first, rest } => {
                let user = rest.first().map_or("+", |(operator, _)| operator.symbol());
                let mut sum = self.number(first, user)?;
                for (operator, operand) in rest {
                    let operand = self.number(operand, operator.symbol())?;
                    let result = match operator {
                        SumOperator::Add => sum.add(operand),
                        SumOperator::Subtract => sum.subtract(operand),
                    };
                    sum = result.map_err(|error| arithmetic_error(error, operator.symbol()))?;
                }
                sum.into()
            }
            Expression::Product { first, rest } => {
                let user = rest.first().map_or("*", |(operator, _)| operator.symbol());
                let mut product = self.number(first, user)?;
                for (operator, operand) in rest {
                    let operand = self.number(operand, operator.symbol())?;
                    let result = match operator {
                        ProductOperator::Multiply => product.multiply(operand),
                        ProductOperator::Divide => product.divide(operand),
                    };
                    product = result.map_err(|error| arithmetic_error(error, operator.symbol()))?;
                }
                product.into()
            }
            Expression::Exist(name) => Value::Boolean(self.properties.exists(name)),
            Expression::Default(name) => Value::Boolean(self.properties.is_default(name)),
            Expression::Property(name) => self.property(name)?,
            Expression::Literal(value) => value.borrowed(),
        })
    }

    /// Whether one of the operands has this value; those behind it are not evaluated.
    fn is_any(
        &mut self,
        operands: &'v [Expression],
        deciding: bool,
        user: &'static str,
    ) -> Result<bool, EvaluationError> {
        for operand in operands {
            if self.boolean(operand, user)? == deciding {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn property(&self, name: &str) -> Result<Value<'v>, EvaluationError> {
        self.properties.value(name).ok_or_else(|| EvaluationError::MissingProperty(name.to_owned()))
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: &Value<'_>,
        right: &Value<'_>,
    ) -> Result<bool, EvaluationError> {
        let order = self.order(left, right)?.ok_or_else(|| operands_error(comparison.symbol(), left, right))?;
        let Some(order) = order else { return Ok(comparison == Comparison::NotEqual) };
        Ok(match comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        })
    }

    /// The order of two simple values of one type: outside `None` for other types, inside for NaN.
    fn order(&mut self, left: &Value<'_>, right: &Value<'_>) -> Result<Option<Option<Ordering>>, EvaluationError> {
        if let (Some(left), Some(right)) = (left.number(), right.number()) {
            return Ok(Some(left.compare(right)));
        }
        Ok(match (left, right) {
            (Value::Boolean(left), Value::Boolean(right)) => Some(Some(left.cmp(right))),
            (Value::Text(left), Value::Text(right)) => {
                self.charge(left.len().min(right.len()))?;
                // The order of the octets of UTF-8 is that of the characters' numbers.
                Some(Some(left.cmp(right)))
            }
            _ => None,
        })
    }

    fn contains(&mut self, sequence: &Value<'_>, element: &Value<'_>) -> Result<bool, EvaluationError> {
        let Value::Sequence(elements) = sequence else { return Err(operands_error("in", element, sequence)) };
        for other in elements.iter() {
            self.charge(1)?;
            let order = self.order(element, other)?.ok_or_else(|| operands_error("in", element, sequence))?;
            if order.is_some_and(Ordering::is_eq) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl From<Number> for Value<'_> {
    fn from(number: Number) -> Self {
        match number {
            Number::Integer(number) => Self::Integer(number),
            Number::Floating(number) => Self::Floating(number),
        }
    }
}

fn arithmetic_error(error: NumberError, operator: &'static str) -> EvaluationError {
    match error {
        NumberError::DivisionByZero => EvaluationError::DivisionByZero,
        NumberError::OutOfRange => EvaluationError::Overflow(operator),
    }
}

fn type_of(value: &Value<'_>) -> ValueType {
    value.value_type().unwrap_or(ValueType::Other)
}

fn operand_error(operator: &'static str, operand: &Value<'_>) -> EvaluationError {
    TypeMismatch::one(operator, type_of(operand)).into()
}

fn operands_error(operator: &'static str, left: &Value<'_>, right: &Value<'_>) -> EvaluationError {
    TypeMismatch::two(operator, type_of(left), type_of(right)).into()
}
