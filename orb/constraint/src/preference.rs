//! Preferences: the language that orders the offers which a constraint has selected.

use std::cmp::Ordering;
use std::fmt;

use crate::check::{self, PropertyTypes};
use crate::error::{ConstraintError, EvaluationError};
use crate::evaluate::Evaluation;
use crate::expression::Expression;
use crate::lexer::Dialect;
use crate::limits::Limits;
use crate::number::Number;
use crate::parser::Parser;
use crate::value::{Properties, SimpleType};

/// The order in which matching offers are returned (B.1). Its text form parses to an equal preference.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use spandrel_constraint::{Limits, Preference, Value};
///
/// let preference = Preference::parse("min queue", Limits::default())?;
/// let mut printers: Vec<_> = [7, 2, 5].map(|queue| BTreeMap::from([("queue", Value::Integer(queue))])).into();
/// printers.sort_by_cached_key(|printer| preference.rank(printer, || 0));
/// assert_eq!(printers[0]["queue"], Value::Integer(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Preference {
    order: Order,
    steps: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Order {
    Min(Expression),
    Max(Expression),
    With(Expression),
    Random,
    First,
}

/// The place of an offer: lower ranks are returned first. Ranks of one preference can be compared with each other.
///
/// The offers for which the expression has no value are behind all others (B.1).
#[derive(Clone, Copy, Debug)]
pub struct Rank(Place);

#[derive(Clone, Copy, Debug)]
enum Place {
    Ascending(Number),
    Descending(Number),
    Group(u64),
    /// The expression has no value.
    Last,
}

impl Default for Preference {
    /// `first`: the order in which the offers were found.
    fn default() -> Self {
        Self { order: Order::First, steps: Limits::default().steps }
    }
}

impl Preference {
    /// Parses a preference; an empty one is `first`. Types are not compared; [`check`](Self::check) does so.
    ///
    /// # Errors
    /// A text that violates the grammar, or exceeds its length or nesting.
    pub fn parse(text: &str, limits: Limits) -> Result<Self, ConstraintError> {
        let mut parser = Parser::new(text, &limits, Dialect::Trading)?;
        let order = if parser.take_word("min")? {
            Order::Min(parser.whole_expression()?)
        } else if parser.take_word("max")? {
            Order::Max(parser.whole_expression()?)
        } else if parser.take_word("with")? {
            Order::With(parser.whole_expression()?)
        } else if parser.take_word("random")? {
            Order::Random
        } else if parser.take_word("first")? || parser.is_at_end() {
            Order::First
        } else {
            return Err(parser.unexpected("min, max, with, random or first"));
        };
        if !parser.is_at_end() {
            return Err(parser.unexpected("the end of the text"));
        }
        Ok(Self { order, steps: limits.steps })
    }

    /// Checks that the expression of `min` and `max` is a number, and that of `with` a boolean.
    ///
    /// # Errors
    /// [`ConstraintError::Type`], also for operators within; types that are not known cause none.
    pub fn check(&self, types: &(impl PropertyTypes + ?Sized)) -> Result<(), ConstraintError> {
        match &self.order {
            Order::Min(expression) => check::require(expression, SimpleType::Number, "min", types),
            Order::Max(expression) => check::require(expression, SimpleType::Number, "max", types),
            Order::With(expression) => check::require(expression, SimpleType::Boolean, "with", types),
            Order::Random | Order::First => Ok(()),
        }
    }

    /// Whether the order is that in which the offers were found, so that the first ones are enough.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.order == Order::First
    }

    /// The expression of `min`, `max` and `with`, for the properties that it uses.
    #[must_use]
    pub fn expression(&self) -> Option<&Expression> {
        match &self.order {
            Order::Min(expression) | Order::Max(expression) | Order::With(expression) => Some(expression),
            Order::Random | Order::First => None,
        }
    }

    /// The place of an offer with these properties. `random` gives a new random number; only `random` calls it.
    ///
    /// All ranks of `first` are equal: a stable sort keeps the offers in the order in which they were found.
    pub fn rank(&self, properties: &(impl Properties + ?Sized), random: impl FnOnce() -> u64) -> Rank {
        let mut evaluation = Evaluation::new(properties, self.steps);
        Rank(match &self.order {
            Order::Min(expression) => number(&mut evaluation, expression, "min").map_or(Place::Last, Place::Ascending),
            Order::Max(expression) => number(&mut evaluation, expression, "max").map_or(Place::Last, Place::Descending),
            Order::With(expression) => match evaluation.boolean(expression, "with") {
                Ok(value) => Place::Group(u64::from(!value)),
                Err(_) => Place::Last,
            },
            Order::Random => Place::Group(random()),
            Order::First => Place::Group(0),
        })
    }
}

fn number<'v, P: Properties + ?Sized>(
    evaluation: &mut Evaluation<'v, P>,
    expression: &'v Expression,
    user: &'static str,
) -> Result<Number, EvaluationError> {
    match evaluation.number(expression, user)? {
        Number::Floating(number) if number.is_nan() => Err(EvaluationError::NotANumber),
        number => Ok(number),
    }
}

impl fmt::Display for Preference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.order {
            Order::Min(expression) => write!(f, "min {expression}"),
            Order::Max(expression) => write!(f, "max {expression}"),
            Order::With(expression) => write!(f, "with {expression}"),
            Order::Random => f.write_str("random"),
            Order::First => f.write_str("first"),
        }
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let compare = |left: Number, right: Number| left.compare(right).unwrap_or(Ordering::Equal); // none is NaN
        match (self.0, other.0) {
            (Place::Ascending(left), Place::Ascending(right)) => compare(left, right),
            (Place::Descending(left), Place::Descending(right)) => compare(right, left),
            (Place::Group(left), Place::Group(right)) => left.cmp(&right),
            (left, right) => left.class().cmp(&right.class()),
        }
    }
}

impl Place {
    /// The order of places of different preferences; only the last has a meaning.
    fn class(self) -> u8 {
        match self {
            Self::Ascending(_) => 0,
            Self::Descending(_) => 1,
            Self::Group(_) => 2,
            Self::Last => 3,
        }
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rank {}
