//! The values of expressions: types of operands (B.2.3, B.2.4), promotion, and properties without a value.

use std::collections::{BTreeMap, HashMap};

use spandrel_cdr::{Any, BoundedString, Char, TypeCode, WString};
use spandrel_constraint::{EvaluationError, SimpleType, UnknownTypes, Value, ValueType};

use crate::grammar::parse;

fn properties() -> BTreeMap<&'static str, Value<'static>> {
    let texts = |texts: &[&'static str]| Value::Sequence(texts.iter().copied().map(Value::from).collect());
    let numbers = Value::Sequence(vec![Value::Integer(1), Value::Integer(-2)].into());
    BTreeMap::from([
        ("name", Value::from("laser printer")),
        ("ppm", Value::Integer(35)),
        ("price", Value::Floating(99.5)),
        ("colour", Value::Boolean(true)),
        ("features", texts(&["duplex", "staple"])),
        ("none", texts(&[])),
        ("numbers", numbers),
        ("nan", Value::Floating(f64::NAN)),
        ("big", Value::Integer(u64::MAX.into())),
        ("place", Value::Other),
    ])
}

fn evaluate(text: &str) -> Result<bool, EvaluationError> {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).matches(&properties())
}

#[test]
fn operators_have_their_values() {
    for text in [
        "ppm == 35",
        "ppm != 36 and ppm < 36 and ppm <= 35 and ppm > 34 and ppm >= 35",
        "price > 99 and price < 99.6 and 99.5 == price",
        "'laser' ~ name and '' ~ name and not ('Laser' ~ name)",
        "'duplex' in features and not ('fax' in features)",
        "not ('x' in none) and not (1 in none) and not (TRUE in none)",
        "1 in numbers and -2.0 in numbers and not (2 in numbers)",
        "exist ppm and not exist speed and exist place",
        "colour and not (not colour)",
        "colour == TRUE and FALSE < TRUE and TRUE >= FALSE",
        "7 / 2 == 3 and -7 / 2 == -3 and 7 / 2.0 == 3.5 and 7. / 2 == 3.5",
        "2 + 3 * 4 - 1 == 13 and (2 + 3) * 4 == 20 and 20 / 2 / 5 == 2",
        "ppm * 2 > 69 and ppm - 36 == -1",
        // Unsigned and signed integers are promoted to one type that has both.
        "big > -1 and big + 1 > big and big == 18446744073709551615",
        // Integers and doubles are compared exactly.
        "big < 18446744073709551616 and 9007199254740993 > 9007199254740992.0",
        // The order of texts is that of their characters: capitals, small letters, then those of Latin-1.
        "'Z' < 'a' and 'z' < 'à' and 'abc' < 'abd' and 'ab' < 'abc' and 'a' <= 'a'",
        // NaN is not equal to a number and has no order.
        "nan != nan and not (nan == nan) and not (nan < 1) and not (nan >= 1)",
        "1e3 == 1000",
    ] {
        assert_eq!(evaluate(text), Ok(true), "{text}");
    }
    assert!(parse("").unwrap().matches(&properties()).unwrap());
}

#[test]
fn a_property_without_a_value_leaves_the_expression_without_one() {
    let missing = || Err(EvaluationError::MissingProperty("speed".to_owned()));
    for text in ["speed > 3", "not (speed > 3)", "speed == speed", "1 in speed", "colour and speed > 3"] {
        assert_eq!(evaluate(text), missing(), "{text}");
    }
    assert_eq!(evaluate("speed > 3 or colour"), missing());
    // The operand that is not needed is not evaluated.
    assert_eq!(evaluate("colour or speed > 3"), Ok(true));
    assert_eq!(evaluate("exist speed and speed > 3"), Ok(false));
    assert_eq!(evaluate("not exist speed or speed > 3"), Ok(true));
}

#[test]
fn arithmetic_without_a_result_is_an_error() {
    assert_eq!(evaluate("1 / 0 == 1"), Err(EvaluationError::DivisionByZero));
    assert_eq!(evaluate("1 / 0.0 > 1"), Err(EvaluationError::DivisionByZero));
    assert_eq!(evaluate("1e308 * 10 > 1"), Err(EvaluationError::Overflow("*")));
    assert_eq!(evaluate("big * big * big > 1"), Err(EvaluationError::Overflow("*")));
    assert_eq!(evaluate("nan + 1 > 1"), Err(EvaluationError::Overflow("+")));
}

/// Texts with operands of wrong types, and the errors.
const WRONG: [(&str, &str); 20] = [
    ("ppm", "a constraint cannot be applied to number"),
    ("'x'", "a constraint cannot be applied to text"),
    ("ppm == 'x'", "== cannot be applied to number and text"),
    ("name < 3", "< cannot be applied to text and number"),
    ("colour == 1", "== cannot be applied to boolean and number"),
    ("features == features", "== cannot be applied to sequence of text and sequence of text"),
    ("place == place", "== cannot be applied to a value of another type and a value of another type"),
    ("'x' in name", "in cannot be applied to text and text"),
    ("1 in features", "in cannot be applied to number and sequence of text"),
    ("features in features", "in cannot be applied to sequence of text and sequence of text"),
    ("'x' + 'y' == 'xy'", "+ cannot be applied to text"),
    ("ppm - name == 1", "- cannot be applied to text"),
    ("colour * 2 == 2", "* cannot be applied to boolean"),
    ("2 / 'x' == 2", "/ cannot be applied to text"),
    ("not ppm", "not cannot be applied to number"),
    ("colour and ppm", "and cannot be applied to number"),
    ("ppm or colour", "or cannot be applied to number"),
    ("not colour and place", "and cannot be applied to a value of another type"),
    ("not ('x' ~ 'y') and (ppm == TRUE)", "== cannot be applied to number and boolean"),
    ("1 < 2 == 'x'", ""),
];

#[test]
fn the_check_and_the_evaluation_find_operands_of_wrong_types() {
    let types: HashMap<&str, ValueType> = HashMap::from([
        ("name", ValueType::Simple(SimpleType::Text)),
        ("ppm", ValueType::Simple(SimpleType::Number)),
        ("colour", ValueType::Simple(SimpleType::Boolean)),
        ("features", ValueType::Sequence(SimpleType::Text)),
        ("place", ValueType::Other),
    ]);
    for (text, expected) in WRONG {
        let Ok(constraint) = parse(text) else {
            assert_eq!(expected, "", "{text}");
            continue;
        };
        assert_eq!(constraint.check(&types).expect_err(text).to_string(), expected, "{text}");
        // Behind `and` the left operand decides.
        if !text.starts_with("not colour and") {
            assert_eq!(constraint.matches(&properties()).expect_err(text).to_string(), expected, "{text}");
        }
    }
    for text in ["name == 'x' and ppm + 1 > 2 or not colour", "'x' in features", "exist place", "unknown == ppm", ""] {
        parse(text).unwrap().check(&types).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    // Without declared types, only what the text itself says is compared.
    parse("a + b == c and d in e and a ~ b and f").unwrap().check(&UnknownTypes).unwrap();
    assert_eq!(
        parse("a and 3").unwrap().check(&UnknownTypes).unwrap_err().to_string(),
        "and cannot be applied to number"
    );
    let ordered = BTreeMap::from([("a", ValueType::Simple(SimpleType::Text))]);
    assert!(parse("a == 1").unwrap().check(&ordered).is_err());
}

#[test]
fn values_of_anys_have_the_types_of_the_language() {
    let alias = TypeCode::alias("IDL:Name:1.0", "Name", &TypeCode::STRING).unwrap();
    let aliased = Any::with_type(alias, &"x".to_owned()).unwrap();
    let text = ValueType::Simple(SimpleType::Text);
    let number = ValueType::Simple(SimpleType::Number);
    let sequence = |values: Vec<Value<'static>>| Value::Sequence(values.into());
    for (any, value, value_type) in [
        (Any::new(true).unwrap(), Value::Boolean(true), ValueType::Simple(SimpleType::Boolean)),
        (Any::new(-5_i16).unwrap(), Value::Integer(-5), number),
        (Any::new(60_000_u16).unwrap(), Value::Integer(60_000), number),
        (Any::new(-5_i32).unwrap(), Value::Integer(-5), number),
        (Any::new(5_u32).unwrap(), Value::Integer(5), number),
        (Any::new(i64::MIN).unwrap(), Value::Integer(i64::MIN.into()), number),
        (Any::new(u64::MAX).unwrap(), Value::Integer(u64::MAX.into()), number),
        (Any::new(1.5_f32).unwrap(), Value::Floating(1.5), number),
        (Any::new(2.5_f64).unwrap(), Value::Floating(2.5), number),
        (Any::new(Char(0xe4)).unwrap(), Value::from("ä"), text),
        (Any::new('Ω').unwrap(), Value::from("Ω"), text),
        (Any::new("text".to_owned()).unwrap(), Value::from("text"), text),
        (Any::new(WString::from("wide".to_owned())).unwrap(), Value::from("wide"), text),
        (Any::new(BoundedString::<9>::try_from("bound".to_owned()).unwrap()).unwrap(), Value::from("bound"), text),
        (aliased, Value::from("x"), text),
        (
            Any::new(vec![1_i16, 2]).unwrap(),
            sequence(vec![Value::Integer(1), Value::Integer(2)]),
            ValueType::Sequence(SimpleType::Number),
        ),
        (
            Any::new(vec!["a".to_owned()]).unwrap(),
            sequence(vec![Value::from("a")]),
            ValueType::Sequence(SimpleType::Text),
        ),
        (Any::new(vec![true]).unwrap(), sequence(vec![Value::Boolean(true)]), ValueType::Sequence(SimpleType::Boolean)),
        (Any::new(vec![vec![1_i16]]).unwrap(), Value::Other, ValueType::Other),
        (Any::new(7_u8).unwrap(), Value::Other, ValueType::Other),
        (Any::default(), Value::Other, ValueType::Other),
        (Any::new(Any::new(1_i16).unwrap()).unwrap(), Value::Other, ValueType::Other),
    ] {
        assert_eq!(Value::from_any(&any).unwrap(), value, "{any:?}");
        assert_eq!(ValueType::from_type_code(any.type_code()), value_type, "{any:?}");
    }
}

#[test]
fn integers_and_doubles_are_compared_without_rounding() {
    let offer =
        |integer: i128, number: f64| BTreeMap::from([("i", Value::Integer(integer)), ("d", Value::Floating(number))]);
    for (integer, number, order) in [
        // 2^53 + 1 has no double; the conversion would make them equal.
        ((1 << 53) + 1, 9_007_199_254_740_992.0, ">"),
        (3, 3.5, "<"),
        (-3, -3.5, ">"),
        (0, -0.0, "=="),
        (-2, -2.0, "=="),
        (i128::MAX, f64::INFINITY, "<"),
        (i128::MIN, f64::NEG_INFINITY, ">"),
        (i128::MIN, i128::MIN as f64, "=="),
        (i128::MAX, i128::MAX as f64, "<"),
        (0, f64::MIN_POSITIVE, "<"),
    ] {
        let reverse = match order {
            "<" => ">",
            ">" => "<",
            equal => equal,
        };
        for text in [format!("i {order} d and not (i != d and '{order}' == '==')"), format!("d {reverse} i")] {
            assert_eq!(parse(&text).unwrap().matches(&offer(integer, number)), Ok(true), "{integer} {order} {number}");
        }
    }
    let minimum = offer(i128::MIN, f64::MAX);
    for (text, operator) in [("i / -1 > 0", "/"), ("i - 1 > 0", "-"), ("i * -1 > 0", "*"), ("d + d > 0", "+")] {
        let overflow = EvaluationError::Overflow(operator);
        assert_eq!(parse(text).unwrap().matches(&minimum), Err(overflow), "{text}");
    }
}
