//! The choice of an index for a constraint.

use std::collections::BTreeMap;
use std::ops::Bound;

use spandrel_constraint::{Comparison, Constraint, Expression, Value};

use crate::offers::{Access, Key, Offers, Scope};

/// The index accesses of a constraint, each of which finds all offers that match.
pub(crate) fn accesses(constraint: &Constraint) -> Vec<Access> {
    constraint.expression().map(of_expression).unwrap_or_default()
}

/// The access that finds the fewest offers, and their number; `None` and the number of all offers in the scope if these
/// are as few.
pub(crate) fn choose(offers: &Offers, scope: Scope<'_>, constraint: &Constraint) -> (Option<Access>, usize) {
    let mut best = None;
    let mut fewest = offers.count_all(scope);
    for access in accesses(constraint) {
        let count = offers.count(scope, &access, fewest);
        if count < fewest {
            (fewest, best) = (count, Some(access));
        }
    }
    (best, fewest)
}

fn of_expression(expression: &Expression) -> Vec<Access> {
    match expression {
        Expression::And(operands) => intersected(operands.iter().flat_map(of_expression).collect()),
        Expression::Or(operands) => {
            let parts: Option<Vec<Access>> =
                operands.iter().map(|operand| of_expression(operand).into_iter().next()).collect();
            parts.map(Access::Union).into_iter().collect()
        }
        Expression::Compare { comparison, left, right } => match (&**left, &**right) {
            (Expression::Property(name), Expression::Literal(value)) => range(name, *comparison, value),
            (Expression::Literal(value), Expression::Property(name)) => range(name, reversed(*comparison), value),
            _ => None,
        }
        .into_iter()
        .collect(),
        Expression::Property(name) => equal(name, true),
        Expression::Not(operand) => match &**operand {
            Expression::Property(name) => equal(name, false),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn equal(property: &str, value: bool) -> Vec<Access> {
    range(property, Comparison::Equal, &Value::Boolean(value)).into_iter().collect()
}

fn range(property: &str, comparison: Comparison, value: &Value<'_>) -> Option<Access> {
    let key = Key::new(value)?;
    let (lowest, highest) = key.all_of_type();
    // Rounded numbers may be equal without being so: the bounds are always included.
    let bounds = match comparison {
        Comparison::Equal => (Bound::Included(key.clone()), Bound::Included(key)),
        Comparison::Less | Comparison::LessOrEqual => (lowest, Bound::Included(key)),
        Comparison::Greater | Comparison::GreaterOrEqual => (Bound::Included(key), highest),
        Comparison::NotEqual => return None,
    };
    Some(Access::Range { property: property.to_owned(), bounds })
}

/// The comparison with exchanged operands.
fn reversed(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        Comparison::Equal | Comparison::NotEqual => comparison,
    }
}

/// The accesses of a conjunction: the ranges of one property are one.
fn intersected(accesses: Vec<Access>) -> Vec<Access> {
    let mut ranges: BTreeMap<String, (Bound<Key>, Bound<Key>)> = BTreeMap::new();
    let mut others = Vec::new();
    for access in accesses {
        match access {
            Access::Range { property, bounds } => match ranges.get_mut(&property) {
                Some(range) => {
                    if is_above(&bounds.0, &range.0) {
                        range.0 = bounds.0;
                    }
                    if is_above(&range.1, &bounds.1) {
                        range.1 = bounds.1;
                    }
                }
                None => _ = ranges.insert(property, bounds),
            },
            union @ Access::Union(_) => others.push(union),
        }
    }
    let ranges = ranges.into_iter().map(|(property, bounds)| Access::Range { property, bounds });
    ranges.chain(others).collect()
}

/// Whether one bound is higher than another of the same side. Only upper bounds are unbounded.
fn is_above(one: &Bound<Key>, other: &Bound<Key>) -> bool {
    match (one, other) {
        (Bound::Included(one), Bound::Included(other)) => one > other,
        (one, other) => matches!(one, Bound::Unbounded) && !matches!(other, Bound::Unbounded),
    }
}
