//! Constraints: the language that selects offers.

use std::fmt;

use crate::check::{self, PropertyTypes};
use crate::error::{ConstraintError, EvaluationError};
use crate::evaluate::Evaluation;
use crate::expression::Expression;
use crate::lexer::Dialect;
use crate::limits::Limits;
use crate::parser::Parser;
use crate::value::{Properties, SimpleType};

/// A boolean expression over the properties of an offer (B.1). Its text form parses to an equal constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// `None` for an empty text.
    expression: Option<Expression>,
    steps: u64,
}

impl Constraint {
    /// Parses a constraint. Types are not compared; [`check`](Self::check) does so.
    ///
    /// # Errors
    /// A text that violates the grammar, or exceeds its length or nesting.
    pub fn parse(text: &str, limits: Limits) -> Result<Self, ConstraintError> {
        Self::parse_dialect(text, limits, Dialect::Trading)
    }

    /// Parses a constraint of the extended language, which filters events: the names are those of their components.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse), and a component name with too many parts.
    pub fn parse_extended(text: &str, limits: Limits) -> Result<Self, ConstraintError> {
        Self::parse_dialect(text, limits, Dialect::Extended { parts: limits.parts })
    }

    fn parse_dialect(text: &str, limits: Limits, dialect: Dialect) -> Result<Self, ConstraintError> {
        let mut parser = Parser::new(text, &limits, dialect)?;
        let expression = if parser.is_at_end() { None } else { Some(parser.whole_expression()?) };
        Ok(Self { expression, steps: limits.steps })
    }

    /// The tree; `None` for an empty constraint, which matches all offers.
    #[must_use]
    pub fn expression(&self) -> Option<&Expression> {
        self.expression.as_ref()
    }

    /// Checks that each operator has operands of types that it accepts (B.2.4), and that the whole is a boolean.
    ///
    /// # Errors
    /// [`ConstraintError::Type`]; types that are not known cause none.
    pub fn check(&self, types: &(impl PropertyTypes + ?Sized)) -> Result<(), ConstraintError> {
        let Some(expression) = &self.expression else { return Ok(()) };
        check::require(expression, SimpleType::Boolean, "a constraint", types)
    }

    /// Whether an offer with these properties matches.
    ///
    /// # Errors
    /// An expression without a value, for which the offer does not match; more steps than the limit.
    pub fn matches(&self, properties: &(impl Properties + ?Sized)) -> Result<bool, EvaluationError> {
        let mut steps = self.steps;
        self.matches_within(properties, &mut steps)
    }

    /// As [`matches`](Self::matches), with the steps that are left to several constraints in place of the limit.
    ///
    /// # Errors
    /// As [`matches`](Self::matches).
    pub fn matches_within(
        &self,
        properties: &(impl Properties + ?Sized),
        steps: &mut u64,
    ) -> Result<bool, EvaluationError> {
        let Some(expression) = &self.expression else { return Ok(true) };
        let mut evaluation = Evaluation::new(properties, *steps);
        let is_match = evaluation.boolean(expression, "a constraint");
        *steps = evaluation.remaining();
        is_match
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expression.as_ref().map_or(Ok(()), |expression| expression.fmt(f))
    }
}
