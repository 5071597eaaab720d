//! Texts as constraints of both languages and preferences: no panic, and the text form of a tree parses to an equal tree.

use std::collections::BTreeMap;

use spandrel_constraint::{Constraint, Limits, Preference, SimpleType, UnknownTypes, Value, ValueType};

/// The text form of a tree may be longer than its text, and has no more parentheses.
const LIMITS: Limits = Limits { length: usize::MAX, nesting: 64, steps: 100_000, parts: 32 };

pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let numbers = [1, 4, -3].map(Value::Integer).to_vec();
    let properties = BTreeMap::from([
        ("a", Value::Integer(4)),
        ("b", Value::Boolean(true)),
        ("f", Value::Floating(2.5)),
        ("s", Value::from("band")),
        ("n", Value::Sequence(numbers.into())),
    ]);
    let types = BTreeMap::from([
        ("a", ValueType::Simple(SimpleType::Number)),
        ("s", ValueType::Simple(SimpleType::Text)),
        ("n", ValueType::Sequence(SimpleType::Number)),
    ]);
    if let Ok(constraint) = Constraint::parse(&text, LIMITS) {
        let again = Constraint::parse(&constraint.to_string(), LIMITS);
        assert_eq!(again.as_ref(), Ok(&constraint));
        let is_match = constraint.matches(&properties);
        // Evaluation finds each error of types that the text itself shows, unless it ends before it.
        if constraint.check(&types).is_ok() && is_match.is_ok() {
            constraint.check(&UnknownTypes).expect("fewer types are known");
        }
    }
    if let Ok(constraint) = Constraint::parse_extended(&text, LIMITS) {
        let again = Constraint::parse_extended(&constraint.to_string(), LIMITS);
        assert_eq!(again.as_ref(), Ok(&constraint));
        _ = constraint.matches(&BTreeMap::from([("$", Value::Integer(4)), ("$a", Value::from("band"))]));
    }
    if let Ok(preference) = Preference::parse(&text, LIMITS) {
        let again = Preference::parse(&preference.to_string(), LIMITS);
        assert_eq!(again.as_ref(), Ok(&preference));
        let rank = preference.rank(&properties, || 7);
        assert!(rank == preference.rank(&properties, || 7));
    }
}
