//! The text form of values.

use super::support::{boxed, choice, colour, derived, empty, full, many, point};
use crate::{DynAny, TextContext};
use spandrel_cdr::{Ior, TypeCode};

/// Parses a text, and prints it again.
#[track_caller]
fn again(type_code: &TypeCode, text: &str, expected: &str) {
    let value = DynAny::from_text(type_code, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(value.to_string(), expected);
    let once_more = DynAny::from_text(type_code, expected).unwrap_or_else(|error| panic!("{expected}: {error}"));
    assert_eq!(once_more, value);
    assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap(), value);
}

#[track_caller]
fn refused(type_code: &TypeCode, text: &str, reason: &str) {
    let error = DynAny::from_text(type_code, text).unwrap_err().to_string();
    assert!(error.contains(reason), "{text}: {error}");
}

#[test]
fn numbers_are_within_their_types() {
    again(&TypeCode::SHORT, " -32768 ", "-32768");
    again(&TypeCode::OCTET, "0xff", "255");
    again(&TypeCode::ULONGLONG, "18446744073709551615", "18446744073709551615");
    again(&TypeCode::DOUBLE, "1e3", "1000.0");
    again(&TypeCode::FLOAT, "inf", "Infinity");
    again(&TypeCode::LONGDOUBLE, "0.5", "0.5");
    again(&TypeCode::BOOLEAN, "true", "true");
    again(&TypeCode::fixed(5, 2).unwrap(), "1.50", "1.5");
    refused(&TypeCode::OCTET, "256", "`256` is not an integer of this type");
    refused(&TypeCode::ULONG, "-1", "`-1` is not an integer of this type");
    refused(&TypeCode::LONG, "1 2", "unexpected text after the value");
    refused(&TypeCode::LONG, "", "expected a value");
    refused(&TypeCode::BOOLEAN, "yes", "expected `true` or `false`, not `yes`");
    refused(&TypeCode::LONG, "five", "`five` is not an integer of this type");
    refused(&TypeCode::LONG, "[5]", "expected an integer");
    refused(&TypeCode::fixed(3, 1).unwrap(), "1.25", "cannot hold");
    refused(&TypeCode::fixed(3, 1).unwrap(), "text", "is not a");
    refused(&TypeCode::FLOAT, "3.4e39", "`3.4e39` is out of range for `float`");
    refused(&TypeCode::FLOAT, "-3.5e38", "`-3.5e38` is out of range for `float`");
    refused(&TypeCode::DOUBLE, "1e309", "`1e309` is out of range for `double`");
    refused(&TypeCode::LONGDOUBLE, "1e309", "`1e309` is out of range for `double`");
    refused(&TypeCode::ANY, "1e309", "`1e309` is out of range for `double`");
    again(&TypeCode::DOUBLE, "-infinity", "-Infinity");
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
    refused(&point(), "{x: 3 name: 4}", "unexpected text after the value `3 name:`");
    again(&point(), "{..}", r#"{x: 0, name: ""}"#);
    again(&point(), r#"{name: "b", ..}"#, r#"{x: 0, name: "b"}"#);
    refused(&point(), "{.., x: 3}", "expected `}` after `..`");
    refused(&point(), "{y: 3, ..}", "unknown member `y`: there are `x`, `name`");
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
    for (text, type_code) in [
        ("true", TypeCode::BOOLEAN),
        ("12", TypeCode::LONG),
        ("5000000000", TypeCode::LONGLONG),
        ("1.5", TypeCode::DOUBLE),
        ("\"t\"", TypeCode::STRING),
        ("null", TypeCode::NULL),
    ] {
        again(&TypeCode::ANY, text, text);
        assert_eq!(DynAny::from_text(&TypeCode::ANY, text).unwrap().any().unwrap().type_code(), &type_code);
    }
    refused(&TypeCode::ANY, "what", "cannot be determined");
    refused(&TypeCode::ANY, "[1, 2]", "write it before the value, as in `long 3`");
    refused(&TypeCode::ANY, "Point {x: 1}", "unknown type `Point`");
}

#[test]
fn anys_have_the_type_that_the_text_names() {
    let types = |name: &str| {
        let declared = [point(), many(&TypeCode::LONG, 0), colour(), derived()];
        declared.into_iter().find(|type_code| type_code.name() == Ok(name) || type_code.id() == Ok(name))
    };
    let context = TextContext::new().types(&types);
    for (text, type_code, printed) in [
        ("short -3", TypeCode::SHORT, "short -3"),
        ("long -3", TypeCode::LONG, "-3"),
        ("unsigned  long long 7", TypeCode::ULONGLONG, "unsigned long long 7"),
        ("long long 7", TypeCode::LONGLONG, "long long 7"),
        ("string<4> \"abc\"", TypeCode::string(4), "string<4> \"abc\""),
        ("fixed<5, 2> 1.5", TypeCode::fixed(5, 2).unwrap(), "fixed<5, 2> 1.5"),
        ("Many [1, 2]", many(&TypeCode::LONG, 0), "Many [1, 2]"),
        ("IDL:Many:1.0 [1, 2]", many(&TypeCode::LONG, 0), "Many [1, 2]"),
        ("::Many[1, 2]", many(&TypeCode::LONG, 0), "Many [1, 2]"),
        ("Point {x: 1, ..}", point(), "Point {x: 1, name: \"\"}"),
        ("Colour green", colour(), "Colour green"),
        ("any short 3", TypeCode::ANY, "any short 3"),
        ("Derived null", derived(), "Derived null"),
        ("sequence<Point> []", TypeCode::sequence(&point(), 0).unwrap(), "sequence<Point> []"),
        ("sequence<octet, 3> [1]", TypeCode::sequence(&TypeCode::OCTET, 3).unwrap(), "sequence<octet, 3> [1]"),
        (
            "long[2][1] [[1], [2]]",
            TypeCode::array(&TypeCode::array(&TypeCode::LONG, 1).unwrap(), 2).unwrap(),
            "long[2][1] [[1], [2]]",
        ),
    ] {
        let read = |text: &str| {
            DynAny::from_text_with(&TypeCode::ANY, text, &context).unwrap_or_else(|error| panic!("{text}: {error}"))
        };
        let value = read(text);
        assert!(value.any().unwrap().type_code().equal(&type_code), "{text}: {:?}", value.any().unwrap().type_code());
        assert_eq!(value.to_string(), printed);
        assert_eq!(read(printed), value);
    }
    let list = many(&TypeCode::ANY, 0);
    let value = DynAny::from_text_with(&list, "[Many [3], 4, null, Point {x: 1, ..}]", &context).unwrap();
    assert_eq!(value.to_string(), "[Many [3], 4, null, Point {x: 1, name: \"\"}]");
    let refused = |text: &str, reason: &str| {
        let error = DynAny::from_text_with(&TypeCode::ANY, text, &context).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    };
    refused("Nothing 3", "unknown type `Nothing`");
    refused("short 40000", "out of range");
    refused("sequence<long [1]", "cannot be determined");
    refused("string<x> \"a\"", "unknown type `string<x>`");
    refused("Many", "the type of `Many` cannot be determined");
    refused(&format!("{}long{} []", "sequence<".repeat(100), ">".repeat(100)), "nests too deep");
}

#[test]
fn numbers_that_are_no_numbers_keep_their_bits() {
    for text in ["NaN", "NaN:0x7fc00001", "Infinity", "-Infinity", "-0.0", "1e-45", "3.4028235e38", "0.1"] {
        again(&TypeCode::FLOAT, text, text);
    }
    again(&TypeCode::DOUBLE, "NaN:0xfff8000000000000", "NaN:0xfff8000000000000");
    again(&TypeCode::LONGDOUBLE, "NaN", "NaN");
    again(&TypeCode::LONGDOUBLE, "0x3fff0000000000000000000000000001", "0x3fff0000000000000000000000000001");
    refused(&TypeCode::FLOAT, "NaN:0x1", "is not a NaN");
    refused(&TypeCode::FLOAT, "NaN:0x1ffffffff", "is not a NaN");
}

#[test]
fn types_are_values() {
    again(&TypeCode::TYPE_CODE, "\"sequence<long, 3>\"", "\"sequence<long, 3>\"");
    let value = DynAny::from_text(&TypeCode::TYPE_CODE, "unsigned long").unwrap();
    assert_eq!(value.to_string(), "\"unsigned long\"");
    refused(&TypeCode::TYPE_CODE, "Nothing", "unknown type `Nothing`");
}

#[test]
fn references_are_resolved_by_the_callback() {
    again(&TypeCode::object(), "null", "null");
    refused(&TypeCode::object(), "corbaloc:rir:/Name", "cannot resolve");
    let resolve = |url: &str| {
        assert_eq!(url, "corbaloc:rir:/Name");
        Ok(Ior { type_id: "IDL:X:1.0".into(), ..Ior::default() })
    };
    let context = TextContext::new().references(&resolve);
    let value = DynAny::from_text_with(&TypeCode::object(), "corbaloc:rir:/Name", &context).unwrap();
    assert_eq!(value.reference().unwrap().type_id, "IDL:X:1.0");
}

#[test]
fn nesting_in_text_is_limited() {
    let type_code = TypeCode::structure(
        "IDL:N:1.0",
        "N",
        &[("kids", TypeCode::sequence(&TypeCode::recursive("IDL:N:1.0").unwrap(), 0).unwrap())],
    )
    .unwrap();
    again(&type_code, "{kids: [{kids: []}]}", "{kids: [{kids: []}]}");
    refused(&type_code, &"{kids: [".repeat(100_000), "nests too deep");
}
