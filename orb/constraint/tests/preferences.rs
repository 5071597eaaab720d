//! Preferences (B.1): the order in which offers are returned.

use std::collections::BTreeMap;

use spandrel_constraint::{Limits, Preference, SimpleType, Value, ValueType};

fn parse(text: &str) -> Preference {
    Preference::parse(text, Limits::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The names of the offers in the order of the preference.
fn order(text: &str) -> String {
    let preference = parse(text);
    let mut offers: Vec<(char, BTreeMap<&str, Value<'_>>)> = vec![
        ('a', BTreeMap::from([("queue", Value::Integer(3)), ("colour", Value::Boolean(false))])),
        ('b', BTreeMap::from([("colour", Value::Boolean(true))])),
        ('c', BTreeMap::from([("queue", Value::Floating(0.5))])),
        ('d', BTreeMap::from([("queue", Value::from("full")), ("colour", Value::Boolean(true))])),
        ('e', BTreeMap::from([("queue", Value::Floating(f64::NAN))])),
        ('f', BTreeMap::from([("queue", Value::Integer(3)), ("colour", Value::Integer(1))])),
        ('g', BTreeMap::from([("queue", Value::Integer(7))])),
    ];
    let mut numbers = [5, 1, 6, 0, 3, 2, 4].into_iter();
    offers.sort_by_cached_key(|(_, properties)| preference.rank(properties, || numbers.next().unwrap()));
    offers.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn offers_without_a_value_of_the_expression_are_last() {
    assert_eq!(order(""), "abcdefg");
    assert_eq!(order(" first "), "abcdefg");
    assert_eq!(order("min queue"), "cafgbde");
    assert_eq!(order("max queue"), "gafcbde");
    assert_eq!(order("max queue * -1"), "cafgbde");
    assert_eq!(order("with colour"), "bdacefg");
    assert_eq!(order("with queue > 1"), "afgcebd"); // NaN is not greater than 1, and d is not a number
    assert_eq!(order("with exist colour"), "abdfceg");
    assert_eq!(order("random"), "dbfegac");
}

#[test]
fn preferences_have_the_grammar_of_the_specification() {
    for text in ["min a", "max a + 1", "with a == 1 or b", "random", "first", "min first", "with max", "min min"] {
        assert_eq!(parse(text).to_string(), text);
        assert_eq!(parse(&parse(text).to_string()), parse(text));
    }
    assert!(parse("").is_first() && parse("first").is_first() && !parse("random").is_first());
    for text in ["min", "with", "a", "random 3", "first a", "min a b", "MIN a", "3", "(min a)", "or", "min (a"] {
        Preference::parse(text, Limits::default()).expect_err(text);
    }
}

#[test]
fn the_expression_of_a_preference_has_its_type() {
    let number = ValueType::Simple(SimpleType::Number);
    let types = BTreeMap::from([("a", number), ("b", ValueType::Simple(SimpleType::Boolean))]);
    for text in ["min a", "max a * 2 + unknown", "with b", "with a > 1", "random", "first", "min unknown"] {
        parse(text).check(&types).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    for text in ["min b", "max 'x'", "with a", "with a + b == 1", "min a == 1"] {
        parse(text).check(&types).expect_err(text);
    }
}
