//! Texts and properties that are made to exhaust the stack, the memory or the processor.

use std::collections::BTreeMap;

use spandrel_constraint::{Constraint, ConstraintError, EvaluationError, Limit, Limits, Preference, Value};

use crate::grammar::parse;

const UNBOUNDED_LENGTH: Limits = Limits { length: usize::MAX, nesting: 64, steps: 1_000_000, parts: 32 };

#[test]
fn a_text_of_a_megabyte_exceeds_the_limit_of_length() {
    let text = "a ".repeat(1 << 19);
    let error = parse(&text).unwrap_err();
    assert_eq!(error, ConstraintError::Limit(Limit::Length(65_536)));
    assert_eq!(error.to_string(), "the text is longer than 65536 octets (limit of length)");
    assert_eq!(Preference::parse(&text, Limits::default()).unwrap_err(), Limit::Length(65_536).into());
    parse(&format!("'{}' ~ a", "x".repeat(65_530))).unwrap();
    parse(&format!("'{}' ~ a", "x".repeat(65_531))).unwrap_err();
}

#[test]
fn a_million_parentheses_exceed_the_limit_of_nesting() {
    for open in ["(", "not (", "1 + (", "a and (", "TRUE == ("] {
        let error = Constraint::parse(&open.repeat(1_000_000), UNBOUNDED_LENGTH).unwrap_err();
        assert_eq!(error, ConstraintError::Limit(Limit::Nesting(64)), "{open}");
    }
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    parse(&nested(64)).unwrap();
    assert_eq!(parse(&nested(65)).unwrap_err(), Limit::Nesting(64).into());
    // Parentheses that are closed count no more.
    let many = vec!["(a)"; 10_000].join(" and ");
    Constraint::parse(&many, UNBOUNDED_LENGTH).unwrap();
}

#[test]
fn long_chains_need_no_stack() {
    let properties = BTreeMap::from([("a", Value::Integer(1)), ("b", Value::Boolean(false))]);
    let limits = Limits { length: usize::MAX, steps: u64::MAX, ..Limits::default() };
    for (operand, operator) in [("b", " or "), ("b", " and "), ("a", " + "), ("a", " - "), ("a", "*"), ("a", "/")] {
        let chain = vec![operand; 20_000].join(operator);
        let text = if operand == "a" { format!("{chain} > 5000000") } else { chain };
        let constraint = Constraint::parse(&text, limits).unwrap();
        assert_eq!(constraint.matches(&properties), Ok(false), "{operator}");
        assert_eq!(Constraint::parse(&constraint.to_string(), limits).as_ref(), Ok(&constraint));
        let few = Constraint::parse(&text, Limits { steps: 1_000, ..limits }).unwrap();
        if operator != " and " {
            assert_eq!(few.matches(&properties), Err(Limit::Steps(1_000).into()), "{operator}");
        }
    }
}

#[test]
fn searches_are_charged_by_the_lengths_of_both_texts() {
    // A naive search compares half a megabyte half a million times.
    let whole = "a".repeat(1 << 20);
    let part = format!("{}b", "a".repeat(1 << 19));
    let properties = BTreeMap::from([("part", Value::from(&*part)), ("whole", Value::from(&*whole))]);
    let limits = Limits { steps: 2_000_000, ..Limits::default() };
    let search = |text: &str, limits| Constraint::parse(text, limits).unwrap().matches(&properties);
    assert_eq!(search("part ~ whole", limits), Ok(false));
    assert_eq!(search("part ~ whole", Limits::default()), Err(Limit::Steps(1_000_000).into()));
    let many = vec!["part ~ whole"; 4_000].join(" or ");
    assert_eq!(search(&many, limits), Err(Limit::Steps(2_000_000).into()));
    assert_eq!(
        search("whole == whole", Limits::default()).unwrap_err().to_string(),
        "the evaluation takes more than 1000000 steps (limit of steps)"
    );
}

#[test]
fn sequences_are_charged_by_their_elements() {
    let elements: Vec<Value<'_>> = (0..600_000).map(Value::Integer).collect();
    let properties = BTreeMap::from([("many", Value::Sequence(elements.into()))]);
    let matches = |text: &str| parse(text).unwrap().matches(&properties);
    assert_eq!(matches("599999 in many"), Ok(true));
    assert_eq!(matches("-1 in many or -2 in many"), Err(EvaluationError::Limit(Limit::Steps(1_000_000))));
    let texts: Vec<Value<'_>> = (0..100).map(|_| Value::from("y".repeat(20_000).leak() as &str)).collect();
    let part = "y".repeat(19_999) + "z";
    let properties = BTreeMap::from([("many", Value::Sequence(texts.into())), ("part", Value::from(&*part))]);
    assert_eq!(parse("part in many").unwrap().matches(&properties), Err(Limit::Steps(1_000_000).into()));
}

#[test]
fn a_preference_that_exceeds_the_limit_of_steps_has_the_last_rank() {
    let long = "x".repeat(2_000_000);
    let properties = BTreeMap::from([("a", Value::from(&*long)), ("b", Value::Boolean(false))]);
    let rank = |text: &str| Preference::parse(text, Limits::default()).unwrap().rank(&properties, || 0);
    assert!(rank("with a == a") > rank("with b"));
    assert!(rank("with a == a") == rank("with missing"));
}
