//! The text form of values.

use crate::support;

use spandrel_cdr::{Ior, TypeCode};
use spandrel_dynamic::{DynAny, ValueTypes};
use support::{boxed, choice, colour, derived, empty, full, many, point};

/// Parses a text, and prints it again.
#[track_caller]
fn again(of: &TypeCode, text: &str, expected: &str) {
    let value = DynAny::from_text(of, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(value.to_string(), expected);
    let once_more = DynAny::from_text(of, expected).unwrap_or_else(|error| panic!("{expected}: {error}"));
    assert_eq!(once_more, value);
    assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap(), value);
}

#[track_caller]
fn refused(of: &TypeCode, text: &str, why: &str) {
    let error = DynAny::from_text(of, text).unwrap_err().to_string();
    assert!(error.contains(why), "{text}: {error}");
}

#[test]
fn numbers_are_within_their_types() {
    again(&TypeCode::SHORT, " -32768 ", "-32768");
    again(&TypeCode::OCTET, "0xff", "255");
    again(&TypeCode::ULONGLONG, "18446744073709551615", "18446744073709551615");
    again(&TypeCode::DOUBLE, "1e3", "1000.0");
    again(&TypeCode::FLOAT, "inf", "inf");
    again(&TypeCode::LONGDOUBLE, "0.5", "0.5");
    again(&TypeCode::BOOLEAN, "true", "true");
    again(&TypeCode::fixed(5, 2).unwrap(), "1.50", "1.5");
    refused(&TypeCode::OCTET, "256", "`256` is not an integer");
    refused(&TypeCode::ULONG, "-1", "`-1` is not an integer");
    refused(&TypeCode::LONG, "1 2", "unexpected text after the value");
    refused(&TypeCode::LONG, "", "expected a value");
    refused(&TypeCode::BOOLEAN, "yes", "expected `true` or `false`, not `yes`");
    refused(&TypeCode::fixed(3, 1).unwrap(), "1.25", "cannot hold");
    refused(&TypeCode::fixed(3, 1).unwrap(), "text", "is not a");
    refused(&TypeCode::FLOAT, "3.4e39", "`3.4e39` is out of range for `float`");
    refused(&TypeCode::FLOAT, "-3.5e38", "`-3.5e38` is out of range for `float`");
    refused(&TypeCode::DOUBLE, "1e309", "`1e309` is out of range for `double`");
    refused(&TypeCode::LONGDOUBLE, "1e309", "`1e309` is out of range for `double`");
    refused(&TypeCode::ANY, "1e309", "`1e309` is out of range for `double`");
    again(&TypeCode::DOUBLE, "-infinity", "-inf");
    again(&TypeCode::DOUBLE, "3.4e39", "3.4e39");
}

#[test]
fn a_whole_text_needs_no_quotes() {
    let text = DynAny::from_text(&TypeCode::STRING, "Ada, and others").unwrap();
    assert_eq!(text.string().unwrap(), "Ada, and others");
    again(&TypeCode::STRING, r#" "a \"b\" \\ \u00e9\n" "#, r#""a \"b\" \\ é\n""#);
    again(&TypeCode::WSTRING, r#""\ud83d\ude00""#, "\"\u{1f600}\"");
    again(&TypeCode::CHAR, r#""é""#, r#""é""#);
    again(&TypeCode::WCHAR, r#""€""#, r#""€""#);
    refused(&TypeCode::CHAR, r#""€""#, "ISO 8859-1");
    refused(&TypeCode::CHAR, r#""ab""#, "one character");
    refused(&TypeCode::STRING, r#""ab"#, "no closing quote");
    refused(&TypeCode::STRING, r#""\ud83d""#, "surrogate");
    refused(&TypeCode::STRING, r#""\q""#, "unknown escape");
    refused(&TypeCode::string(3), "four", "exceeds the bound");
}

#[test]
fn members_have_their_names() {
    again(&point(), r#"{"name": "b", x: 3}"#, r#"{x: 3, name: "b"}"#);
    again(&empty(), "{}", "{}");
    again(&derived(), r#"{id: 1, note: "n"}"#, r#"{id: 1, note: "n"}"#);
    again(&derived(), "null", "null");
    again(&boxed(), r#""in""#, r#""in""#);
    again(&boxed(), "null", "null");
    refused(&point(), "{x: 3}", "the member `name` is missing");
    refused(&point(), "{y: 3}", "unknown member `y`");
    refused(&point(), "{x: 3, x: 4}", "twice");
    refused(&point(), "{x: 3 name: 4}", "expected `,` or `}`");
    refused(&point(), "3", "expected `{`");
    again(&colour(), "green", "green");
    again(&colour(), "\"blue\"", "blue");
    refused(&colour(), "pink", "no enumerator `pink`");
}

#[test]
fn unions_are_identified_by_their_members() {
    again(&choice(), r#"{text: "t"}"#, r#"{_d: 1, text: "t"}"#);
    again(&choice(), r#"{_d: 2, text: "t"}"#, r#"{_d: 2, text: "t"}"#);
    again(&choice(), r#"{point: {x: 1, name: ""}}"#, r#"{_d: 5, point: {x: 1, name: ""}}"#);
    again(&choice(), "{_d: 9}", "{_d: 9}");
    again(&full(), "{number: 1}", "{_d: true, number: 1}");
    refused(&choice(), r#"{_d: 5, text: "t"}"#, "selects the member `point`");
    refused(&choice(), r#"{_d: 9, text: "t"}"#, "does not select `text`");
    refused(&choice(), "{_d: 1}", "selects the member `text`");
    refused(&choice(), "{}", "a member, or `_d`");
    refused(&choice(), "{other: 1}", "unknown member `other`");
}

#[test]
fn the_number_of_elements_matches_the_type() {
    again(&many(&TypeCode::LONG, 3), "[1, 2,3]", "[1, 2, 3]");
    again(&many(&point(), 0), "[]", "[]");
    again(&TypeCode::array(&TypeCode::BOOLEAN, 2).unwrap(), "[true, false]", "[true, false]");
    refused(&many(&TypeCode::LONG, 1), "[1, 2]", "2 elements");
    refused(&TypeCode::array(&TypeCode::BOOLEAN, 2).unwrap(), "[true]", "1 elements");
    refused(&many(&TypeCode::LONG, 0), "[1", "expected `,` or `]`");
}

#[test]
fn anys_have_the_type_implied_by_their_form() {
    for (text, of) in [
        ("true", TypeCode::BOOLEAN),
        ("12", TypeCode::LONG),
        ("5000000000", TypeCode::LONGLONG),
        ("1.5", TypeCode::DOUBLE),
        ("\"t\"", TypeCode::STRING),
        ("null", TypeCode::NULL),
    ] {
        again(&TypeCode::ANY, text, text);
        assert_eq!(DynAny::from_text(&TypeCode::ANY, text).unwrap().any().unwrap().type_code(), &of);
    }
    refused(&TypeCode::ANY, "what", "cannot be determined");
}

#[test]
fn references_are_resolved_by_the_callback() {
    again(&TypeCode::object(), "null", "null");
    refused(&TypeCode::object(), "corbaloc:rir:/Name", "cannot resolve");
    let known = |url: &str| {
        assert_eq!(url, "corbaloc:rir:/Name");
        Ok(Ior { type_id: "IDL:X:1.0".into(), ..Ior::default() })
    };
    let value = DynAny::from_text_with(&TypeCode::object(), "corbaloc:rir:/Name", &ValueTypes::new(), &known).unwrap();
    assert_eq!(value.reference().unwrap().type_id, "IDL:X:1.0");
}

#[test]
fn nesting_in_text_is_limited() {
    let of = TypeCode::structure(
        "IDL:N:1.0",
        "N",
        &[("kids", TypeCode::sequence(&TypeCode::recursive("IDL:N:1.0").unwrap(), 0).unwrap())],
    )
    .unwrap();
    again(&of, "{kids: [{kids: []}]}", "{kids: [{kids: []}]}");
    refused(&of, &"{kids: [".repeat(100_000), "nests too deep");
}
