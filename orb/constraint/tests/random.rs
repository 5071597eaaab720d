//! Random sentences of the grammar: their text form, and their values beside the interpreter's.

use std::collections::BTreeMap;

use proptest::prelude::*;
use spandrel_constraint::{Constraint, Limits, Value};

use crate::interpreter::{Outcome, interpret};

fn offer() -> BTreeMap<&'static str, Value<'static>> {
    let sequence = |values: Vec<Value<'static>>| Value::Sequence(values.into());
    BTreeMap::from([
        ("b", Value::Boolean(true)),
        ("i", Value::Integer(4)),
        ("n", Value::Integer(-3)),
        ("f", Value::Floating(2.5)),
        ("s", Value::from("band")),
        ("o", Value::Other),
        ("ints", sequence(vec![Value::Integer(4), Value::Integer(9)])),
        ("texts", sequence(vec![Value::from("an"), Value::from("or")])),
        ("empty", sequence(Vec::new())),
    ])
}

/// Joins one to three operands.
fn chain(
    operand: impl Strategy<Value = String> + 'static,
    operators: &'static [&'static str],
) -> impl Strategy<Value = String> {
    let operands = prop::collection::vec((prop::sample::select(operators), operand), 1..=3);
    // The first operand has no operator before it.
    operands.prop_map(|operands| {
        operands.into_iter().fold(String::new(), |text, (operator, operand)| {
            if text.is_empty() { operand } else { format!("{text} {operator} {operand}") }
        })
    })
}

/// One operand, or two with an operator.
fn pair(
    operand: impl Strategy<Value = String> + Clone + 'static,
    operators: &'static [&'static str],
) -> impl Strategy<Value = String> {
    let both = (operand.clone(), prop::sample::select(operators), operand.clone());
    prop_oneof![operand, both.prop_map(|(left, operator, right)| format!("{left} {operator} {right}"))]
}

fn factor() -> impl Strategy<Value = String> + Clone {
    let name = prop::sample::select(&["b", "i", "n", "f", "s", "o", "ints", "texts", "empty", "missing"][..]);
    let literal = prop::sample::select(
        &["TRUE", "FALSE", "0", "1", "4", "-3", "+7", "2.5", ".5", "1e1", "'an'", "''", r"'it\'s \\'", "'( or )'"][..],
    );
    prop_oneof![
        4 => name.clone().prop_map(str::to_owned),
        4 => literal.prop_map(str::to_owned),
        1 => name.prop_map(|name| format!("exist {name}")),
    ]
}

/// Sentences of the rule `or`.
fn sentence() -> impl Strategy<Value = String> {
    factor().boxed().prop_recursive(2, 30, 4, |inner| {
        let factor = prop_oneof![2 => factor(), 1 => inner.prop_map(|inner| format!("({inner})"))].boxed();
        let negation = prop_oneof![5 => factor.clone(), 1 => factor.prop_map(|factor| format!("not {factor}"))].boxed();
        let product = chain(negation, &["*", "/"]).boxed();
        let sum = chain(product, &["+", "-"]).boxed();
        let substring = pair(sum, &["~"]).boxed();
        let sequence = prop::sample::select(&["ints", "texts", "empty", "s", "missing"][..]);
        let member = (substring.clone(), sequence).prop_map(|(element, name)| format!("{element} in {name}"));
        let member = prop_oneof![4 => substring, 1 => member].boxed();
        let comparison = pair(member, &["==", "!=", "<", "<=", ">", ">="]).boxed();
        chain(chain(comparison, &["and"]).boxed(), &["or"]).boxed()
    })
}

/// Sentences that often have a value: comparisons of operands of one type, connected.
fn typed_sentence() -> impl Strategy<Value = String> {
    let number =
        prop::sample::select(&["i", "n", "f", "0", "1", "2.5", "-3", "(i - 1)", "7"][..]).prop_map(str::to_owned);
    let number = chain(chain(number, &["*", "/"]).boxed(), &["+", "-"]).boxed();
    let text = prop::sample::select(&["s", "'an'", "'band'", "''", "'z'"][..]).prop_map(str::to_owned).boxed();
    let operators = prop::sample::select(&["==", "!=", "<", "<=", ">", ">="][..]);
    let compared = |operand: BoxedStrategy<String>| {
        (operand.clone(), operators.clone(), operand)
            .prop_map(|(left, operator, right)| format!("{left} {operator} {right}"))
    };
    let boolean = prop_oneof![
        compared(number.clone()),
        compared(text.clone()),
        (text.clone(), text.clone()).prop_map(|(part, whole)| format!("{part} ~ {whole}")),
        text.prop_map(|text| format!("{text} in texts")),
        number.prop_map(|number| format!("{number} in ints")),
        Just("exist missing".to_owned()),
        Just("b".to_owned()),
    ];
    boolean.boxed().prop_recursive(3, 30, 3, |inner| {
        let negated = inner.clone().prop_map(|inner| format!("not ({inner})"));
        let grouped = inner.clone().prop_map(|inner| format!("({inner})"));
        chain(chain(prop_oneof![inner, negated, grouped].boxed(), &["and"]).boxed(), &["or"]).boxed()
    })
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let constraint = Constraint::parse(text, Limits::default());
    let constraint = constraint.map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
    let printed = constraint.to_string();
    prop_assert_eq!(Constraint::parse(&printed, Limits::default()), Ok(constraint.clone()), "{}", printed);
    let matches = constraint.matches(&offer());
    match interpret(text, &offer()) {
        Outcome::Unsure => {}
        Outcome::Boolean(value) => prop_assert_eq!(matches, Ok(value), "{}", text),
        _ => prop_assert!(matches.is_err(), "{text}: {matches:?}"),
    }
    Ok(())
}

proptest! {
    #[test]
    fn sentences_have_the_value_of_the_interpreter(text in sentence()) {
        check(&text)?;
    }

    #[test]
    fn sentences_without_errors_of_types_have_the_value_of_the_interpreter(text in typed_sentence()) {
        check(&text)?;
    }

    #[test]
    fn any_text_is_a_constraint_or_an_error(text in "[ab1.e'\\\\ ()~+*/<>=!-]{0,40}") {
        if let Ok(constraint) = Constraint::parse(&text, Limits::default()) {
            let _ = constraint.matches(&offer());
            let printed = constraint.to_string();
            prop_assert_eq!(Constraint::parse(&printed, Limits::default()), Ok(constraint));
        }
    }
}
