//! The tree of an expression, by the rules of the grammar (B.3).

use std::fmt;

use crate::value::Value;

/// A comparison of two simple values.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Comparison {
    /// Equality: `a == b`.
    Equal,
    /// Inequality: `a != b`, also true for NaN.
    NotEqual,
    /// Strict order: `a < b`.
    Less,
    /// Order or equality: `a <= b`.
    LessOrEqual,
    /// Strict reverse order: `a > b`.
    Greater,
    /// Reverse order or equality: `a >= b`.
    GreaterOrEqual,
}

impl Comparison {
    /// The operator in a text.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// An operator of the rule `expr`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SumOperator {
    /// Addition of numbers: `a + b`.
    Add,
    /// Subtraction of numbers: `a - b`.
    Subtract,
}

impl SumOperator {
    /// The character of the operator in constraints.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
        }
    }
}

/// An operator of the rule `term`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ProductOperator {
    /// Multiplication of numbers: `a * b`.
    Multiply,
    /// Division of numbers: `a / b`; integers lose the fraction.
    Divide,
}

impl ProductOperator {
    /// The character of the operator in constraints.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Multiply => "*",
            Self::Divide => "/",
        }
    }
}

/// An expression. Chains of one rule are lists, so that the depth of a tree follows its parentheses and not its length.
///
/// Its text form has the least parentheses, and parses to an equal tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// Two or more operands of `or`.
    Or(Vec<Expression>),
    /// Two or more operands of `and`.
    And(Vec<Expression>),
    /// The comparison of two simple values.
    Compare {
        /// The operator between the operands.
        comparison: Comparison,
        /// The operand before it.
        left: Box<Expression>,
        /// The operand behind it.
        right: Box<Expression>,
    },
    /// Whether a property that is a sequence has an element.
    In {
        /// The element that is searched.
        element: Box<Expression>,
        /// The name of the property.
        sequence: String,
    },
    /// Whether a text is a part of another.
    Substring {
        /// The text that is searched.
        part: Box<Expression>,
        /// The text in which it is searched.
        whole: Box<Expression>,
    },
    /// Additions and subtractions from left to right.
    Sum {
        /// The operand before the first operator.
        first: Box<Expression>,
        /// The operators, each with the operand behind it; at least one.
        rest: Vec<(SumOperator, Expression)>,
    },
    /// Multiplications and divisions from left to right.
    Product {
        /// The operand before the first operator.
        first: Box<Expression>,
        /// The operators, each with the operand behind it; at least one.
        rest: Vec<(ProductOperator, Expression)>,
    },
    /// The negation of a boolean.
    Not(Box<Expression>),
    /// Whether the property with this name has a value.
    Exist(String),
    /// Whether the union with this component name has its default member (extended language).
    Default(String),
    /// The value of the property with this name.
    Property(String),
    /// A number with its sign, a string, TRUE or FALSE.
    Literal(Value<'static>),
}

impl Expression {
    /// The names of all properties in the expression, each once, with those of `exist`.
    #[must_use]
    pub fn property_names(&self) -> Vec<String> {
        let (mut names, mut pending) = (Vec::<String>::new(), vec![self]);
        while let Some(expression) = pending.pop() {
            let name = match expression {
                Self::Or(operands) | Self::And(operands) => {
                    pending.extend(operands);
                    None
                }
                Self::Compare { left, right, .. } | Self::Substring { part: left, whole: right } => {
                    pending.extend([&**left, &**right]);
                    None
                }
                Self::Sum { first, rest } => {
                    pending.push(first);
                    pending.extend(rest.iter().map(|(_, operand)| operand));
                    None
                }
                Self::Product { first, rest } => {
                    pending.push(first);
                    pending.extend(rest.iter().map(|(_, operand)| operand));
                    None
                }
                Self::Not(operand) => {
                    pending.push(operand);
                    None
                }
                Self::In { element, sequence } => {
                    pending.push(element);
                    Some(sequence)
                }
                Self::Exist(name) | Self::Default(name) | Self::Property(name) => Some(name),
                Self::Literal(_) => None,
            };
            names.extend(name.filter(|name| !names.contains(name)).cloned());
        }
        names
    }

    /// The number of the expression's rule, from the weakest operator on.
    fn level(&self) -> u8 {
        match self {
            Self::Or(_) => 0,
            Self::And(_) => 1,
            Self::Compare { .. } => 2,
            Self::In { .. } => 3,
            Self::Substring { .. } => 4,
            Self::Sum { .. } => 5,
            Self::Product { .. } => 6,
            Self::Not(_) => 7,
            Self::Exist(_) | Self::Default(_) | Self::Property(_) | Self::Literal(_) => 8,
        }
    }

    /// Writes the expression as an operand of a rule, in parentheses if its own rule is a weaker one.
    fn write_operand(&self, f: &mut fmt::Formatter<'_>, level: u8) -> fmt::Result {
        if self.level() < level { write!(f, "({self})") } else { write!(f, "{self}") }
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, operands: &[Expression], operator: &str, level: u8) -> fmt::Result {
    for (nth, operand) in operands.iter().enumerate() {
        if nth > 0 {
            write!(f, " {operator} ")?;
        }
        operand.write_operand(f, level)?;
    }
    Ok(())
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Or(operands) => write_list(f, operands, "or", 1),
            Self::And(operands) => write_list(f, operands, "and", 2),
            Self::Compare { comparison, left, right } => {
                left.write_operand(f, 3)?;
                write!(f, " {} ", comparison.symbol())?;
                right.write_operand(f, 3)
            }
            Self::In { element, sequence } => {
                element.write_operand(f, 4)?;
                write!(f, " in {sequence}")
            }
            Self::Substring { part, whole } => {
                part.write_operand(f, 5)?;
                f.write_str(" ~ ")?;
                whole.write_operand(f, 5)
            }
            Self::Sum { first, rest } => {
                first.write_operand(f, 6)?;
                rest.iter().try_for_each(|(operator, operand)| {
                    write!(f, " {} ", operator.symbol())?;
                    operand.write_operand(f, 6)
                })
            }
            Self::Product { first, rest } => {
                first.write_operand(f, 7)?;
                rest.iter().try_for_each(|(operator, operand)| {
                    write!(f, " {} ", operator.symbol())?;
                    operand.write_operand(f, 7)
                })
            }
            Self::Not(operand) => {
                f.write_str("not ")?;
                operand.write_operand(f, 8)
            }
            Self::Exist(name) => write!(f, "exist {name}"),
            Self::Default(name) => write!(f, "default {name}"),
            Self::Property(name) => f.write_str(name),
            Self::Literal(value) => write_literal(f, value),
        }
    }
}

fn write_literal(f: &mut fmt::Formatter<'_>, value: &Value<'_>) -> fmt::Result {
    match value {
        Value::Boolean(true) => f.write_str("TRUE"),
        Value::Boolean(false) => f.write_str("FALSE"),
        Value::Integer(number) => write!(f, "{number}"),
        // The form with a point or an exponent.
        Value::Floating(number) => write!(f, "{number:?}"),
        Value::Text(text) => write!(f, "'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        Value::Sequence(_) | Value::Other => f.write_str("(not a literal)"),
    }
}
