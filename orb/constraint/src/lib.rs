//! The standard constraint and preference languages of the OMG's trading service (Trading Object Service 1.0,
//! Appendix B), and the extension of its constraints for filters of events.
//!
//! A [`Constraint`] selects offers by their properties, and a [`Preference`] orders those that were selected:
//!
//! ```
//! use std::collections::HashMap;
//!
//! use spandrel_constraint::{Constraint, Limits, Value};
//!
//! let constraint = Constraint::parse("ppm > 20 and 'colour' in features and not exist fault", Limits::default())?;
//! let features = Value::Sequence(vec![Value::from("duplex"), Value::from("colour")].into());
//! let printer = HashMap::from([("ppm", Value::Integer(35)), ("features", features)]);
//! assert!(constraint.matches(&printer)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Grammar
//!
//! The tree ([`Expression`]) has the rules of B.3 as its variants. Operators bind in this order, from weak to strong
//! (B.2.2): `or`; `and`; `==` `!=` `<` `<=` `>` `>=`; `in`; `~`; `+` `-`; `*` `/`; `not`; `exist` and the sign of a
//! number. Comparisons, `in`, `~`, `not` and signs do not repeat: `a == b == c` and `not not a` are no expressions.
//!
//! ```text
//! constraint  : [ or ]
//! preference  : [ "min" or | "max" or | "with" or | "random" | "first" ]
//! or          : and { "or" and }
//! and         : comparison { "and" comparison }
//! comparison  : in [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) in ]
//! in          : substring [ "in" name ]
//! substring   : sum [ "~" sum ]
//! sum         : product { ( "+" | "-" ) product }
//! product     : negation { ( "*" | "/" ) negation }
//! negation    : [ "not" ] factor
//! factor      : "(" or ")" | "exist" name | name | [ "+" | "-" ] number | string | "TRUE" | "FALSE"
//! ```
//!
//! A name begins with a letter of ISO 8859-1, and has letters, digits and underscores. The words of the preference
//! language are names in constraints. A string is in single quotes, with `\'` and `\\` for these two characters; any
//! other character after a backslash is an error. An empty constraint matches each offer, and an empty preference is
//! `first`.
//!
//! # Values
//!
//! | operator | operands |
//! | --- | --- |
//! | `exist` | the name of a property of any type |
//! | `==` `!=` `<` `<=` `>` `>=` | two booleans (FALSE is less than TRUE), two numbers, two texts |
//! | `in` | a boolean, a number or a text, and the name of a property that is a sequence of the same |
//! | `~` | two texts: whether the left one is a part of the right one |
//! | `+` `-` `*` `/` | two numbers |
//! | `and` `or` `not` | booleans |
//!
//! Texts are `char`, `string` and their wide forms; a `char` is promoted to a string of one character. They are ordered
//! by the numbers of their characters: the collation of ISO 8859-1, continued by Unicode. Numbers are the integers of
//! 16, 32 and 64 bits, `float` and `double`. Integers are promoted to the widest of them before arithmetic, and to
//! `double` where the other operand is one. Integer division drops the fraction. Comparisons of an integer and a
//! `double` are exact, without conversion. Values of other types can only be used with `exist`.
//!
//! `and` and `or` evaluate the right operand only if the left one does not decide. An expression that refers to a
//! property without a value, or divides by zero, or leaves the range of its type, has no value: the error is an
//! [`EvaluationError`], and the offer does not match.
//!
//! # Limits
//!
//! [`Limits`] bound the length of a text, its nesting, and the steps of an evaluation. Time and memory for parsing are
//! proportional to the length. The search of `~` takes time proportional to the lengths of both texts. The error names
//! the limit.
//!
//! # The extended language
//!
//! The filters of the notification service use an extension of this language (Notification Service 1.1, 2.4), which
//! [`Constraint::parse_extended`] parses. It differs in the operands alone; trees, types, operators, evaluation and limits
//! are the same:
//!
//! ```text
//! factor      : "(" or ")" | ( "exist" | "default" ) component | [ "+" | "-" ] ( component | number )
//!             | enumerator | string | "TRUE" | "FALSE"
//! component   : "$" [ name ] { "." ( name | digits | "(" [ label ] ")" | special ) | "[" digits "]" | "(" name ")" }
//! special     : "_length" | "_d" | "_type_id" | "_repos_id"
//! label       : [ "+" | "-" ] digits | string
//! ```
//!
//! - [`Properties::value`] receives a component name as its text, which [`component_parts`] divides. A component name has no
//!   spaces. `in` has a component as its right operand.
//! - An enumerator is a name without `$`, and has the value of a text with the same characters.
//! - `default` tells whether a union has its default member ([`Properties::is_default`]).
//! - A backslash before a name takes a keyword's meaning away.
//!
//! ```
//! use std::collections::HashMap;
//!
//! use spandrel_constraint::{Constraint, Limits, Value};
//!
//! let constraint = Constraint::parse_extended("$.state == closed and $pressure > 3.5", Limits::default())?;
//! let event = HashMap::from([("$.state", Value::from("closed")), ("$pressure", Value::Integer(4))]);
//! assert!(constraint.matches(&event)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod check;
mod component;
mod constraint;
mod error;
mod evaluate;
mod expression;
mod lexer;
mod limits;
mod number;
mod parser;
mod preference;
mod value;

pub use check::{PropertyTypes, UnknownTypes};
pub use component::{ComponentPart, UnionLabel, component_parts};
pub use constraint::Constraint;
pub use error::{ConstraintError, EvaluationError, TypeMismatch};
pub use expression::{Comparison, Expression, ProductOperator, SumOperator};
pub use limits::{Limit, Limits};
pub use preference::{Preference, Rank};
pub use value::{Properties, SimpleType, Value, ValueType};
