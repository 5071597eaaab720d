//! The JSON form of values and types of every kind: `docs/json.md`.

use super::support::{always, base, boxed, choice, colour, derived, empty, leaf, many, node, point};
use crate::{
    ArgMode, ArgumentError, AttributeDescription, CallableError, DynAny, InterfaceDescription, NamedValue,
    OperationDescription, Outcome, RequestError, TextContext, UnknownUserException,
};
use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{Any, Label, TcKind, TypeCode, ValueModifier, Visibility};

/// Checks the JSON of a value given as text, and that it is parsed as the same value.
#[track_caller]
fn is_json(type_code: &TypeCode, text: &str, json: &str) {
    let value = DynAny::from_text(type_code, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(value.to_json().unwrap(), json);
    let back = DynAny::from_text(type_code, json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(back, value, "{json}");
    serde_json::from_str::<serde_json::Value>(json).unwrap_or_else(|error| panic!("{json}: {error}"));
}

#[test]
fn numbers_are_exact() {
    is_json(&TypeCode::LONGLONG, "9007199254740991", "9007199254740991");
    is_json(&TypeCode::LONGLONG, "-9007199254740992", "\"-9007199254740992\"");
    is_json(&TypeCode::ULONGLONG, "18446744073709551615", "\"18446744073709551615\"");
    is_json(&TypeCode::OCTET, "0xff", "255");
    is_json(&TypeCode::BOOLEAN, "true", "true");
    is_json(&TypeCode::FLOAT, "0.1", "0.1");
    is_json(&TypeCode::DOUBLE, "1e300", "1e300");
    is_json(&TypeCode::DOUBLE, "NaN", "\"NaN\"");
    is_json(&TypeCode::DOUBLE, "-Infinity", "\"-Infinity\"");
    is_json(&TypeCode::FLOAT, "NaN:0xffc00001", "\"NaN:0xffc00001\"");
    is_json(&TypeCode::LONGDOUBLE, "0.5", "0.5");
    let third = "0x3ffd5555555555555555555555555555";
    is_json(&TypeCode::LONGDOUBLE, third, &format!("\"{third}\""));
    is_json(&TypeCode::fixed(5, 2).unwrap(), "-1.5", "\"-1.5\"");
}

#[test]
fn texts_and_octets_are_strings() {
    is_json(&TypeCode::STRING, r#""a \"b\"\n\u00e9""#, r#""a \"b\"\né""#);
    is_json(&TypeCode::WSTRING, r#""\ud83d\ude00""#, "\"\u{1f600}\"");
    is_json(&TypeCode::CHAR, r#""\u00ff""#, "\"\u{ff}\"");
    is_json(&TypeCode::WCHAR, r#""\u0000""#, r#""\u0000""#);
    is_json(&many(&TypeCode::OCTET, 0), "[1, 2, 3, 4]", "\"AQIDBA==\"");
    is_json(&TypeCode::array(&TypeCode::OCTET, 2).unwrap(), "[0, 255]", "\"AP8=\"");
    is_json(&many(&TypeCode::CHAR, 0), r#"["a", "b"]"#, r#"["a","b"]"#);
    for (text, reason) in [("\"AQI\"", "not Base64"), ("3", "Base64 in quotes")] {
        let error = DynAny::from_text(&many(&TypeCode::OCTET, 0), text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn constructed_values_are_objects_and_arrays() {
    is_json(&point(), r#"{x: 3, name: "b"}"#, r#"{"x":3,"name":"b"}"#);
    is_json(&colour(), "green", "\"green\"");
    is_json(&empty(), "{}", "{}");
    is_json(&choice(), r#"{text: "t"}"#, r#"{"_d":1,"text":"t"}"#);
    is_json(&choice(), "{_d: 9}", r#"{"_d":9}"#);
    is_json(&always(), "{number: 1}", r#"{"_d":true,"number":1}"#);
    is_json(&TypeCode::object(), "null", "null");
    let reference = "IOR:000000000000000849444c3a583a310000000001000000000000000401020304";
    let reference = DynAny::from_text(&TypeCode::object(), reference).unwrap().to_string();
    is_json(&TypeCode::object(), &reference, &format!("\"{reference}\""));
    let error = DynAny::from_text(&TypeCode::object(), "corbaloc::localhost/x").unwrap_err().to_string();
    assert!(error.contains("only `IOR:` can be resolved without an ORB"), "{error}");
}

/// A type code may omit names (CORBA 3.3 Part 1, 8.11.1).
#[test]
fn values_of_types_without_names_are_in_order() {
    let type_code = TypeCode::structure("IDL:P:1.0", "", &[("", TypeCode::LONG), ("", TypeCode::STRING)]).unwrap();
    is_json(&type_code, r#"[3, "b"]"#, r#"[3,"b"]"#);
    let error = DynAny::from_text(&type_code, "[3]").unwrap_err().to_string();
    assert!(error.contains("has 2 members, not 1"), "{error}");
    assert!(DynAny::from_text(&point(), r#"[3, "b"]"#).unwrap_err().to_string().contains("expected `{`"));
    is_json(&TypeCode::enumeration("IDL:E:1.0", "", &["", ""]).unwrap(), "1", "1");
    let members = [(Label::Value(1), "", TypeCode::LONG), (Label::Value(2), "", TypeCode::STRING)];
    let type_code = TypeCode::union("IDL:U:1.0", "", &TypeCode::LONG, &members).unwrap();
    is_json(&type_code, r#"{_d: 2, _value: "b"}"#, r#"{"_d":2,"_value":"b"}"#);
    let members = [("", TypeCode::LONG, Visibility::Public), ("", TypeCode::LONG, Visibility::Public)];
    let type_code = TypeCode::value("IDL:V:1.0", "", ValueModifier::None, None, &members).unwrap();
    is_json(&type_code, "{_value: [1, 2]}", r#"{"_value":[1,2]}"#);
}

#[test]
fn values_are_null_shared_and_recursive() {
    is_json(&derived(), "null", "null");
    is_json(&boxed(), "\"in\"", "\"in\"");
    is_json(&boxed(), "null", "null");
    // A box with an empty content is no empty box.
    let type_code = TypeCode::value_box("IDL:B:1.0", "B", &TypeCode::object()).unwrap();
    is_json(&type_code, "{_value: null}", r#"{"_value":null}"#);
    is_json(&type_code, "null", "null");
    let type_code = TypeCode::value_box("IDL:B:1.0", "B", &TypeCode::ANY).unwrap();
    is_json(&type_code, "{_value: short 3}", r#"{"_value":{"_type":"short","_value":3}}"#);
    let circle = r#"{"_id":1,"name":"a","next":{"_ref":1},"others":[{"_ref":1},null]}"#;
    is_json(&node(), r#"{_id: 1, name: "a", next: {_ref: 1}, others: [{_ref: 1}, null]}"#, circle);
    // The order of the members is free, for readers and writers that do not keep it.
    let sorted = r#"{"name":"a","next":{"_ref":1},"others":[{"_ref":1},null],"_id":1}"#;
    assert_eq!(DynAny::from_text(&node(), sorted).unwrap(), DynAny::from_text(&node(), circle).unwrap());
}

#[test]
fn anys_contain_their_types() {
    is_json(&TypeCode::ANY, "null", "null");
    is_json(&TypeCode::ANY, "3", r#"{"_type":"long","_value":3}"#);
    is_json(&TypeCode::ANY, "any short 3", r#"{"_type":"any","_value":{"_type":"short","_value":3}}"#);
    is_json(&TypeCode::ANY, "sequence<octet, 4> [1]", r#"{"_type":"sequence<octet, 4>","_value":"AQ=="}"#);
    let type_code = r#"{"kind":"struct","id":"IDL:Point:1.0","name":"Point","members":[{"name":"x","type":"long"},{"name":"name","type":"string"}]}"#;
    let json = format!(r#"{{"_type":{type_code},"_value":{{"x":3,"name":"b"}}}}"#);
    is_json(&TypeCode::ANY, &json, &json);
    let type_code = DynAny::from_text(&TypeCode::ANY, &json).unwrap().any().unwrap().type_code().clone();
    assert!(type_code.equal(&point()));
    // A value of a derived type contains the whole type, since the reader may not know it.
    let types = crate::ValueTypes::from_iter([&leaf(), &derived()]);
    let of_base = |name: &str| (name == "Base").then(base);
    let context = TextContext::new().value_types(&types).types(&of_base);
    let text = r#"Base {_type: "IDL:Leaf:1.0", id: 1, inner: {_type: "IDL:Derived:1.0", id: 2, note: "n"}}"#;
    let value = DynAny::from_text_with(&TypeCode::ANY, text, &context).unwrap();
    let json = value.to_json().unwrap();
    let back = DynAny::from_text(&TypeCode::ANY, &json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(back, value, "{json}");
    assert_eq!(back.to_string(), text);
}

#[test]
fn an_any_that_cannot_be_decoded_says_why() {
    let custom = TypeCode::value::<&str>("IDL:C:1.0", "C", ValueModifier::Custom, None, &[]).unwrap();
    let any = Any::write(custom, |out| {
        out.u32(0x7fff_ff02);
        out.short_str("IDL:C:1.0")
    });
    let Ok(any) = any else { return }; // refused earlier: nothing to print
    let mut value = DynAny::of_type(&TypeCode::ANY).unwrap();
    value.insert_any(any).unwrap();
    let json = value.to_json().unwrap();
    assert!(json.contains("\"_error\":"), "{json}");
    serde_json::from_str::<serde_json::Value>(&json).unwrap();
}

#[test]
fn types_of_every_kind_are_parsed_again() {
    let public = Visibility::Public;
    let abstract_value = TypeCode::value::<&str>("IDL:A:1.0", "A", ValueModifier::Abstract, None, &[]).unwrap();
    let all = [
        TypeCode::NULL,
        TypeCode::VOID,
        TypeCode::TYPE_CODE,
        TypeCode::PRINCIPAL,
        TypeCode::wstring(7),
        TypeCode::fixed(31, 4).unwrap(),
        TypeCode::object(),
        TypeCode::value_base(),
        TypeCode::abstract_base(),
        TypeCode::component("IDL:Comp:1.0", "Comp").unwrap(),
        TypeCode::home("IDL:Home:1.0", "Home").unwrap(),
        TypeCode::native("IDL:Nat:1.0", "Nat").unwrap(),
        TypeCode::local_interface("IDL:Loc:1.0", "Loc").unwrap(),
        TypeCode::array(&many(&point(), 4), 3).unwrap(),
        TypeCode::sequence(&TypeCode::sequence(&TypeCode::OCTET, 0).unwrap(), 5).unwrap(),
        TypeCode::value("IDL:Cust:1.0", "Cust", ValueModifier::Custom, None, &[("m", abstract_value, public)]).unwrap(),
        colour(),
        empty(),
        choice(),
        always(),
        boxed(),
        node(),
        derived(),
        leaf(),
    ];
    for type_code in all {
        let json = DynAny::type_to_json(&type_code).unwrap();
        let mut value = DynAny::of_type(&TypeCode::TYPE_CODE).unwrap();
        value.insert_typecode(type_code.clone()).unwrap();
        assert_eq!(value.to_json().unwrap(), json);
        let back = DynAny::from_text(&TypeCode::TYPE_CODE, &json).unwrap_or_else(|error| panic!("{json}: {error}"));
        assert!(back.typecode().unwrap().equal(&type_code), "{json}");
        serde_json::from_str::<serde_json::Value>(&json).unwrap();
    }
    for (text, reason) in [
        (r#"{"kind":"struct","id":"IDL:X:1.0","name":"X","members":[{"name":"a"}]}"#, "the member has no `type`"),
        (r#"{"kind":"enumm"}"#, "unknown kind of type `enumm`"),
        (r#"{"id":"IDL:X:1.0"}"#, "the type has no `kind`"),
        (r#"{"kind":"struct","id":"IDL:X:1.0","name":"X","size":1}"#, "unexpected `size`"),
        ("[]", "expected a type"),
    ] {
        let error = DynAny::from_text(&TypeCode::TYPE_CODE, text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

/// Nested types of which each contains the one before twice take a form that doubles with each of them.
#[test]
fn the_json_of_a_type_is_bounded() {
    let nested = (0..40).try_fold(point(), |type_code, nth| {
        let id = format!("IDL:T{nth}:1.0");
        TypeCode::structure(id, "T", &[("a", type_code.clone()), ("b", type_code)])
    });
    assert!(DynAny::type_to_json(&nested.unwrap()).is_err());
}

/// A source of decisions; all zero after its end.
struct Source(std::vec::IntoIter<u8>);

impl Source {
    fn next(&mut self) -> u8 {
        self.0.next().unwrap_or(0)
    }

    fn below(&mut self, limit: u8) -> u8 {
        self.next() % limit
    }

    fn bits(&mut self) -> u128 {
        (0..16).fold(0, |bits, _| bits << 8 | u128::from(self.next()))
    }

    fn character(&mut self, limit: u32) -> char {
        char::from_u32(self.bits() as u32 % limit).unwrap_or('x')
    }

    fn quoted(&mut self, limit: u32) -> String {
        let text: String = (0..self.below(6)).map(|_| self.character(limit)).filter(|c| *c != '\0').collect();
        serde_json::to_string(&text).unwrap()
    }
}

/// A type. `depth` bounds its nesting.
fn type_of(source: &mut Source, depth: u8) -> TypeCode {
    let number = source.next();
    let (id, name) = (format!("IDL:M/T{number}:1.0"), format!("T{number}"));
    let simple = [
        TypeCode::BOOLEAN,
        TypeCode::OCTET,
        TypeCode::CHAR,
        TypeCode::WCHAR,
        TypeCode::SHORT,
        TypeCode::USHORT,
        TypeCode::LONG,
        TypeCode::ULONG,
        TypeCode::LONGLONG,
        TypeCode::ULONGLONG,
        TypeCode::FLOAT,
        TypeCode::DOUBLE,
        TypeCode::LONGDOUBLE,
        TypeCode::STRING,
        TypeCode::WSTRING,
        TypeCode::ANY,
        TypeCode::TYPE_CODE,
        TypeCode::object(),
        TypeCode::fixed(20, 6).unwrap(),
    ];
    let kind = source.below(if depth == 0 { simple.len() as u8 } else { simple.len() as u8 + 8 });
    if let Some(simple) = simple.get(usize::from(kind)) {
        return simple.clone();
    }
    let inner = |source: &mut Source| type_of(source, depth - 1);
    match usize::from(kind) - simple.len() {
        0 => TypeCode::sequence(&inner(source), 0),
        1 => TypeCode::array(&inner(source), 2),
        2 => TypeCode::alias(id, name, &inner(source)),
        3 => TypeCode::structure(id, name, &[("a", inner(source)), ("b", inner(source))]),
        4 => TypeCode::exception(id, name, &[("reason", inner(source))]).map(|type_code| match depth {
            // An exception is no member.
            3 => type_code,
            _ => TypeCode::LONG,
        }),
        5 => TypeCode::enumeration(id, name, &["red", "green"]),
        6 => {
            let members = [(Label::Value(0), "a", inner(source)), (Label::Value(1), "b", inner(source))];
            TypeCode::union(id, name, &TypeCode::OCTET, &members)
        }
        _ => TypeCode::value(id, name, ValueModifier::None, None, &[("a", inner(source), Visibility::Private)]),
    }
    .unwrap_or(TypeCode::LONG)
}

/// The text of a value.
fn text_of(type_code: &TypeCode, source: &mut Source, depth: u8) -> String {
    let type_code = type_code.without_aliases();
    let content = || type_code.content_type().unwrap();
    match type_code.kind() {
        TcKind::Boolean => (source.below(2) == 1).to_string(),
        TcKind::Octet => source.next().to_string(),
        TcKind::Char => serde_json::to_string(&source.character(256).to_string()).unwrap(),
        TcKind::WChar => serde_json::to_string(&source.character(0x11_0000).to_string()).unwrap(),
        TcKind::Short => (source.bits() as i16).to_string(),
        TcKind::UShort => (source.bits() as u16).to_string(),
        TcKind::Long => (source.bits() as i32).to_string(),
        TcKind::ULong => (source.bits() as u32).to_string(),
        TcKind::LongLong => (source.bits() as i64).to_string(),
        TcKind::ULongLong => (source.bits() as u64).to_string(),
        TcKind::Float => match f32::from_bits(source.bits() as u32) {
            nan if nan.is_nan() => format!("NaN:{:#x}", nan.to_bits()),
            value => value.to_string(),
        },
        TcKind::Double => match f64::from_bits(source.bits() as u64) {
            nan if nan.is_nan() => format!("NaN:{:#x}", nan.to_bits()),
            value => value.to_string(),
        },
        TcKind::LongDouble => format!("{:#034x}", source.bits()),
        TcKind::String => source.quoted(0x250),
        TcKind::WString => source.quoted(0x11_0000),
        TcKind::TypeCode => DynAny::type_to_json(&type_of(source, 2)).unwrap(),
        TcKind::ObjRef => "null".to_owned(),
        TcKind::Fixed => format!("{}.{:06}", source.next(), source.bits() % 1_000_000),
        TcKind::Enum => ["red", "green"][usize::from(source.below(2))].to_owned(),
        TcKind::Any if depth == 0 => "null".to_owned(),
        TcKind::Any => {
            let type_code = type_of(source, 2);
            let json = DynAny::type_to_json(&type_code).unwrap();
            format!("{{_type: {json}, _value: {}}}", text_of(&type_code, source, depth - 1))
        }
        TcKind::Sequence | TcKind::Array => {
            let len = if type_code.kind() == TcKind::Array { 2 } else { source.below(4) };
            let elements: Vec<String> = (0..len).map(|_| text_of(&content(), source, depth)).collect();
            format!("[{}]", elements.join(", "))
        }
        TcKind::Union => {
            let member = usize::from(source.below(3));
            match type_code.member_name(member) {
                Ok(name) => format!("{{{name}: {}}}", text_of(&type_code.member_type(member).unwrap(), source, depth)),
                Err(_) => "{_d: 7}".to_owned(),
            }
        }
        TcKind::Value if source.below(4) == 0 => "null".to_owned(),
        TcKind::Struct | TcKind::Except | TcKind::Value => {
            let member = |index: usize| {
                let value = text_of(&type_code.member_type(index).unwrap(), source, depth);
                format!("{}: {value}", type_code.member_name(index).unwrap())
            };
            format!("{{{}}}", (0..type_code.member_count().unwrap()).map(member).collect::<Vec<_>>().join(", "))
        }
        kind => panic!("no text for {kind}"),
    }
}

/// `long long move(in Point to, inout Colour how, out string note)`.
fn operation() -> OperationDescription {
    OperationDescription::new("move")
        .parameter(ArgMode::In, "to", point())
        .parameter(ArgMode::InOut, "how", colour())
        .parameter(ArgMode::Out, "note", TypeCode::STRING)
        .returns(TypeCode::LONGLONG)
}

#[test]
fn arguments_are_read_by_name_and_in_order() {
    let (operation, context) = (operation(), TextContext::new());
    let apart = operation.read_argument_list(&["{x: 1, name: \"b\"}", "green"], &context).unwrap();
    let by_name = operation.read_arguments(r#"{"how":"green","to":{"x":1,"name":"b"}}"#, &context).unwrap();
    assert_eq!(by_name, apart);
    assert_eq!(operation.read_arguments(r#"[{"x":1,"name":"b"},"green"]"#, &context).unwrap(), apart);
    let none = OperationDescription::new("ping");
    for text in ["", " ", "{}", "{ }", "[]", "null"] {
        assert_eq!(none.read_arguments(text, &context), Ok(Vec::new()), "{text}");
    }
}

#[test]
fn wrong_arguments_are_explained() {
    let (operation, context) = (operation(), TextContext::new());
    let message = |error: ArgumentError| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}")
    };
    let refused = |text: &str| message(operation.read_arguments(text, &context).unwrap_err());
    assert!(refused(r#"{"to":{"x":1,"name":"b"}}"#).contains("the member `how` is missing"), "{}", refused("{}"));
    assert!(refused(r#"{"to":{"x":1,"name":"b"},"how":"green","when":1}"#).contains("when"));
    assert!(refused(r#"[{"x":1,"name":"b"}]"#).contains("2 members, not 1"));
    for text in ["7", "\"a\"", "{", "{\"to\":", "nonsense", "[", "{\"to\":{},\"how\":\"pink\"}"] {
        assert!(refused(text).starts_with("invalid arguments for `long long move("), "{text}");
    }
    let number = operation.read_argument_list(&["{x: 1, name: \"b\"}"], &context).unwrap_err();
    assert!(message(number).ends_with("takes 2 arguments, not 1"));
    let long = "9".repeat(10_000);
    let value = operation.read_argument_list(&["{x: 1, name: \"b\"}", long.as_str()], &context).unwrap_err();
    assert!(matches!(&value, ArgumentError::Value { parameter, text, .. } if parameter == "how" && text.len() < 300));
    let none = OperationDescription::new("ping").read_arguments(r#"{"a":1}"#, &context).unwrap_err();
    assert!(matches!(none, ArgumentError::Number { expected: 0, .. }));
}

#[test]
fn outcomes_and_exceptions_are_json() {
    let outs = vec![
        NamedValue::new("how", ArgMode::InOut, DynAny::from_text(&colour(), "green").unwrap().to_any().unwrap()),
        NamedValue::new("no\"te", ArgMode::Out, Any::new("hi").unwrap()),
    ];
    let outcome = Outcome { result: Any::new(1_i64 << 60).unwrap(), outs };
    let json = outcome.to_json().unwrap();
    assert_eq!(json, r#"{"result":"1152921504606846976","out":{"how":"green","no\"te":"hi"}}"#);
    let void = Any::write(TypeCode::VOID, |_| Ok(())).unwrap();
    assert_eq!(Outcome { result: void, outs: Vec::new() }.to_json().unwrap(), r#"{"out":{}}"#);

    let type_code = TypeCode::exception("IDL:Refused:1.0", "Refused", &[("why", TypeCode::STRING)]).unwrap();
    let exception = DynAny::from_text(&type_code, r#"{why: "no"}"#).unwrap().to_any().unwrap();
    let raised = RequestError::Raised(UnknownUserException { exception });
    let json: serde_json::Value = serde_json::from_str(&raised.to_json()).unwrap();
    assert_eq!(json["exception"], serde_json::json!({"id": "IDL:Refused:1.0", "members": {"why": "no"}}));
    let system = spandrel_giop::SystemException::timeout(3, spandrel_giop::CompletionStatus::Maybe);
    let json: serde_json::Value = serde_json::from_str(&RequestError::System(system).to_json()).unwrap();
    assert_eq!(json["system_exception"]["minor"], 3);
    assert_eq!(json["system_exception"]["completed"], "COMPLETED_MAYBE");
}

#[test]
fn operations_are_found_by_their_idl_names() {
    let interface = InterfaceDescription::new("IDL:Robot:1.0", "Robot").operation(operation()).unwrap();
    let interface = interface.attribute(AttributeDescription::new("speed", TypeCode::LONG)).unwrap();
    let interface = interface.attribute(AttributeDescription::new("name", TypeCode::STRING).readonly()).unwrap();
    let interface = interface.without("cursor", "a native type");
    assert_eq!(interface.callable("move", true).unwrap().name, "move");
    assert_eq!(interface.callable("speed", false).unwrap().name, "_get_speed");
    assert_eq!(interface.callable("speed", true).unwrap().name, "_set_speed");
    assert!(matches!(interface.callable("name", true), Err(CallableError::ReadOnly { .. })));
    assert!(matches!(interface.callable("cursor", false), Err(CallableError::NotCallable { .. })));
    let Err(CallableError::Unknown { known, .. }) = interface.callable("moove", false) else { panic!("it was found") };
    assert_eq!(known, ["speed", "name", "move"]);
}

proptest! {
    #[test]
    fn every_value_is_parsed_from_its_json_and_its_text(octets in vec(any::<u8>(), 1..400)) {
        let mut source = Source(octets.into_iter());
        let type_code = type_of(&mut source, 3);
        let text = text_of(&type_code, &mut source, 2);
        let value = DynAny::from_text(&type_code, &text).map_err(|error| TestCaseError::fail(format!("{type_code} {text}: {error}")))?;
        let json = value.to_json().unwrap();
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{}", json);
        let back = DynAny::from_text(&type_code, &json).map_err(|error| TestCaseError::fail(format!("{json}: {error}")))?;
        prop_assert_eq!(&back, &value, "{}", json);
        // Across the wire.
        let sent = DynAny::new(&value.to_any().unwrap()).unwrap();
        prop_assert_eq!(sent.to_json().unwrap(), json);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[\\[\\]{}<>,:\"\\\\a-c_1.\u{e9} -]{0,40}") {
        for type_code in [TypeCode::ANY, node(), choice(), many(&TypeCode::OCTET, 0), TypeCode::TYPE_CODE] {
            let _ = DynAny::from_text(&type_code, &text);
        }
    }
}

/// Numbers that a schema of JSON takes for integers, and forms that only the text form has.
#[test]
fn strict_reading_takes_one_form_of_each_value() {
    let strict = TextContext::new().strict();
    let reads = |type_code: &TypeCode, text: &str| DynAny::from_text_with(type_code, text, &strict).is_ok();
    for (text, is_integer) in
        [("1.0", true), ("2e3", true), ("-70.00e-1", true), ("0e99999999999", true), ("1.5", false), ("1e400", false)]
    {
        assert_eq!(reads(&TypeCode::LONG, text), is_integer, "{text}");
        assert_eq!(DynAny::from_text(&TypeCode::LONG, text).is_ok(), is_integer, "{text}");
    }
    let fixed = TypeCode::fixed(5, 2).unwrap();
    for (type_code, text) in [
        (TypeCode::LONG, "\"1\""),
        (TypeCode::BOOLEAN, "\"true\""),
        (TypeCode::DOUBLE, "\"1.5\""),
        (TypeCode::CHAR, "7"),
        (TypeCode::ANY, "7"),
        (TypeCode::ANY, r#"{"_type":null,"_value":null}"#),
        (TypeCode::TYPE_CODE, "null"),
        (TypeCode::object(), "\"null\""),
        (fixed, "1.5"),
        (many(&TypeCode::OCTET, 0), "[1, 2]"),
        (colour(), "null"),
    ] {
        assert!(!reads(&type_code, text), "{type_code} {text}");
    }
    // Of two forms that are both written.
    for text in ["7", "\"7\""] {
        assert!(reads(&TypeCode::LONGLONG, text));
    }
    assert!(!reads(&TypeCode::LONGLONG, "\"07\""));
    // A type has the parts of its kind.
    for text in [
        r#"{"kind":"struct","id":"IDL:S:1.0","name":"S","members":[{"name":"x","type":"long","label":1}]}"#,
        r#"{"kind":"sequence","type":"short","length":2}"#,
        r#"{"kind":"valuetype","id":"IDL:V:1.0","name":"V","members":[{"name":"x","type":"long","visibility":"no"}]}"#,
    ] {
        assert!(DynAny::from_text(&TypeCode::TYPE_CODE, text).is_err(), "{text}");
    }
}

/// A repository is asked for a derived type by its id.
#[test]
fn value_types_are_also_those_that_the_context_knows_by_name() {
    let type_code = derived();
    let id = type_code.id().unwrap();
    let types = |name: &str| (name == id).then(|| type_code.clone());
    let context = TextContext::new().types(&types);
    let text = format!("{{_type: \"{id}\", ..}}");
    let read = DynAny::from_text_with(&base(), &text, &context).unwrap();
    assert!(read.to_json().unwrap().contains(id));
    assert!(DynAny::from_text_with(&node(), &text, &context).is_err(), "not one of its bases");
}
