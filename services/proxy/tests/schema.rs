//! The OpenAPI document and the reader of arguments agree: each takes what the other does.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use regex::Regex;
use serde_json::{Value, json};
use spandrel::dynamic::{Descriptions, InterfaceDescription, TextContext, describe};
use spandrel::types::{Ior, TypeCode};

use crate::fixture::Fixture;
use spandrel_proxy::is_looked_up;

const TYPES: &str = "#include <orb.idl>
    enum Hue { red, green };
    typedef fixed<5, 2> Price; typedef fixed<2, 2> Share; typedef fixed<3, 0> Whole;
    typedef sequence<octet> Octets; typedef sequence<octet, 4> FewOctets; typedef octet TwoOctets[2]; typedef octet Three[3];
    typedef sequence<long, 2> Few; typedef long Grid[2][2]; typedef sequence<Hue> Hues;
    struct Point { long x; Hue color; };
    struct Tree; typedef sequence<Tree> Trees; struct Tree { string label; Trees below; };
    union Choice switch (char) { case 'a': case 'b': long number; case 'c': Octets data; };
    union Either switch (boolean) { case TRUE: long yes; case FALSE: string no; };
    union Others switch (long long) { case 1: long one; case 2: string two; default: boolean rest; };
    union Painted switch (Hue) { case red: short depth; };
    valuetype Label string; valuetype Wrapped any; valuetype PointBox Point; valuetype ChoiceBox Choice;
    valuetype Node { public long number; public Node next; };
    valuetype Leaf : Node { public string name; };
    abstract valuetype Basis {}; valuetype Own : Basis { public short size; };
    abstract interface Shown { void show(); };
    valuetype Sign supports Shown { public string text; };";

/// Types, and values of them in JSON.
fn types() -> Vec<(&'static str, Vec<Value>)> {
    let integers = ["octet", "short", "unsigned short", "long", "unsigned long", "long long", "unsigned long long"];
    let one = |of: &'static str, value: Value| (of, vec![value]);
    let mut all: Vec<_> = integers.iter().map(|of| one(of, json!(1))).collect();
    all.extend([
        one("boolean", json!(true)),
        one("float", json!(0.5)),
        one("double", json!(0.5)),
        one("long double", json!(0.5)),
        one("char", json!("a")),
        one("wchar", json!("a")),
        one("string", json!("a")),
        one("string<4>", json!("a")),
        one("wstring", json!("a")),
        one("wstring<4>", json!("a")),
        one("Hue", json!("red")),
        one("Price", json!("1.5")),
        one("Share", json!("0.5")),
        one("Whole", json!("5")),
        one("Octets", json!("AQI=")),
        one("FewOctets", json!("AQI=")),
        one("TwoOctets", json!("AQI=")),
        one("Three", json!("AQID")),
        one("Few", json!([1, 2])),
        one("Grid", json!([[1, 2], [3, 4]])),
        one("Hues", json!(["red"])),
        one("Point", json!({ "x": 1, "color": "green" })),
        one("Tree", json!({ "label": "a", "below": [{ "label": "b", "below": [] }] })),
        ("Choice", vec![json!({ "_d": "b", "number": 1 }), json!({ "data": "AQI=" }), json!({ "_d": "z" })]),
        ("Either", vec![json!({ "_d": true, "yes": 1 }), json!({ "no": "a" })]),
        ("Others", vec![json!({ "_d": 1, "one": 1 }), json!({ "_d": "7", "rest": true }), json!({ "rest": false })]),
        ("Painted", vec![json!({ "_d": "red", "depth": 1 }), json!({ "_d": "green" })]),
        ("Label", vec![json!("a"), json!({ "_id": 1, "_value": "a" }), json!({ "_type": "IDL:Label:1.0", "_value": "a" })]),
        ("Wrapped", vec![json!({ "_value": { "_type": "short", "_value": 1 } }), json!({ "_value": null })]),
        ("PointBox", vec![json!({ "x": 1, "color": "red" }), json!({ "_value": { "x": 1, "color": "red" } })]),
        ("ChoiceBox", vec![json!({ "_value": { "_d": "z" } }), json!({ "number": 1 })]),
        (
            "Node",
            vec![
                json!({ "_id": 1, "number": 1, "next": { "number": 2, "next": null } }),
                json!({ "_type": "IDL:Leaf:1.0", "number": 1, "next": null, "name": "x" }),
                json!({ "_type": "IDL:Node:1.0", "number": 1, "next": null }),
            ],
        ),
        ("Basis", vec![json!({ "_type": "IDL:Own:1.0", "size": 1 })]),
        ("ValueBase", vec![json!({ "_type": "IDL:Own:1.0", "size": 1 }), json!({ "_type": "IDL:Label:1.0", "_value": "a" })]),
        ("Shown", vec![json!({ "_type": "IDL:Sign:1.0", "text": "y" })]),
        ("Object", vec![json!("corbaloc::127.0.0.1:1/x"), json!(null)]),
        ("any", vec![json!({ "_type": "short", "_value": 1 }), json!(null)]),
        (
            "CORBA::TypeCode",
            vec![
                json!("sequence<short>"),
                json!({ "kind": "struct", "id": "IDL:S:1.0", "name": "S", "members": [{ "name": "x", "type": "long" }] }),
                json!({ "kind": "interface", "id": "IDL:I:1.0", "name": "I" }),
                json!({ "kind": "sequence", "type": { "kind": "typedef", "id": "IDL:T:1.0", "name": "T", "type": "short" }, "bound": 3 }),
                json!({ "kind": "array", "type": "short", "length": 3 }),
                json!({ "kind": "union", "id": "IDL:U:1.0", "name": "U", "discriminator": "long",
                    "members": [{ "label": 1, "name": "x", "type": "long" }, { "label": null, "name": "y", "type": "any" }] }),
                json!({ "kind": "valuetype", "id": "IDL:V:1.0", "name": "V", "modifier": "none",
                    "members": [{ "name": "x", "type": "long", "visibility": "private" }] }),
            ],
        ),
    ]);
    all
}

/// Values to stand where others were.
fn atoms() -> Vec<Value> {
    let numbers = [0, 1, -1, 7, 255, 256, 32_767, 32_768, -32_769, 65_535, 65_536, 2_147_483_647, 2_147_483_648]
        .into_iter()
        .chain([-2_147_483_648, -2_147_483_649, 4_294_967_295, 4_294_967_296, 9_007_199_254_740_991])
        .chain([9_007_199_254_740_993, i64::MAX, i64::MIN]);
    let fractions = [1.0, -0.0, 1.5, 300.0, -70_000.0, 3.402_823_5e38, 3.5e38, f64::MAX, f64::MIN, 5e-324, 1e19];
    let others = [u64::MAX, u64::MAX - 1, i64::MAX as u64 + 1];
    let texts = [
        "",
        "a",
        "b",
        "z",
        "ab",
        "abcd",
        "abcde",
        "é",
        "ÿ",
        "Ā",
        "€",
        "😀",
        "\0",
        "a\0b",
        "\u{85}",
        "0",
        "1",
        "-1",
        "-0",
        "007",
        "+1",
        " 1",
        "1 ",
        "0x10",
        "1.0",
        "1.5",
        "-1.50",
        "123.45",
        "1234.5",
        "1.234",
        ".5",
        "5.",
        "0.50",
        "1e2",
        "100",
        "1000",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999",
        "NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "inf",
        "+Infinity",
        "-NaN",
        "NaN:0x7fc00001",
        "NaN:0x7fc00000",
        "NaN:0x7f800000",
        "NaN:0xff800000",
        "NaN:0x7FC00001",
        "NaN:0x7ff8000000000001",
        "NaN:0x7ff0000000000000",
        "NaN:0x0",
        "NaN:",
        "0x3ffd5555555555555555555555555555",
        "0x3FFD5555555555555555555555555555",
        "0x3ffd",
        "true",
        "null",
        "red",
        "blue",
        "AQI=",
        "AQ==",
        "AQIDBA==",
        "AQI",
        "AR==",
        "AQJ=",
        "A===",
        "AQID",
        "AQIDBAU=",
        "AQIDBAUG",
        "?AID",
        "=",
        "short",
        "string<8>",
        "IDL:Leaf:1.0",
        "IDL:Node:1.0",
        "IDL:Own:1.0",
        "IDL:Sign:1.0",
        "IDL:Label:1.0",
        ":",
        "a:b",
        "public",
        "none",
        "custom",
        "corbaloc::127.0.0.1:1/y",
        "CORBALOC::127.0.0.1:1/y",
        "corbaname::127.0.0.1:1#y",
        "IOR:00",
        "IOR:",
        "corbaloc:rir:/NameService",
        "http://x/",
    ];
    let shapes = json!([
        [], [1], [1, 2], [1, 2, 3], ["a"], ["red"], [null], [[1, 2], [3, 4]], [[1], [2]], {}, { "x": 1 }, { "_type": null },
        { "_type": null, "_value": null }, { "_type": "short" }, { "_type": "short", "_value": 1 }, { "_value": 1 },
        { "_type": "", "_value": 1 }, { "_type": 5, "_value": 1 }, { "_type": true, "_value": 1 }, { "_d": 1 }, { "_d": "a" },
        { "_type": { "kind": "interface", "id": "", "name": "" }, "_value": null }, { "_value": "a" }, { "_value": null },
        { "_type": "short", "_value": 1, "x": 1 }, { "kind": null }, { "kind": "struct" }, { "kind": "interface", "id": "" },
        { "kind": "interface" }, { "kind": "sequence", "type": null }, { "kind": "sequence" }, { "kind": "long" },
        { "kind": "sequence", "type": "short", "length": 2 }, { "kind": "struct", "id": "", "name": "", "members": [] },
    ]);
    let mut all = vec![json!(null), json!(true), json!(false)];
    all.extend(numbers.map(Value::from));
    all.extend(fractions.map(Value::from));
    all.extend(others.map(Value::from));
    all.extend(texts.map(Value::from));
    all.extend(shapes.as_array().unwrap().iter().cloned());
    all
}

/// All values that differ from this one in one place.
fn variants(value: &Value, atoms: &[Value], found: &mut dyn FnMut(Value)) {
    atoms.iter().cloned().for_each(&mut *found);
    match value {
        Value::Array(elements) => {
            for at in 0..elements.len() {
                variants(&elements[at], atoms, &mut |element| {
                    let mut changed = elements.clone();
                    changed[at] = element;
                    found(Value::Array(changed));
                });
            }
        }
        Value::Object(members) => {
            for name in members.keys() {
                variants(&members[name], atoms, &mut |member| {
                    let mut changed = members.clone();
                    changed.insert(name.clone(), member);
                    found(Value::Object(changed));
                });
                let mut without = members.clone();
                without.remove(name);
                found(Value::Object(without));
            }
            let more =
                [("extra", json!(1)), ("_id", json!(3)), ("_id", json!("3")), ("_id", json!(-1)), ("_value", json!(1))];
            let types = ["IDL:Node:1.0", "IDL:Leaf:1.0", "IDL:Label:1.0"].map(|id| ("_type", json!(id)));
            let parts = [("bound", json!(2)), ("id", json!("")), ("label", json!(3)), ("visibility", json!("public"))];
            for (name, member) in more.into_iter().chain(types).chain(parts) {
                let mut with = members.clone();
                with.insert(name.to_owned(), member);
                found(Value::Object(with));
            }
        }
        _ => {}
    }
}

/// Whether a value fits a schema (JSON Schema 2020-12, as far as the document uses it).
fn fits(schema: &Value, value: &Value, document: &Value) -> bool {
    let keywords = schema.as_object().unwrap_or_else(|| panic!("no schema: {schema}"));
    let fits = |schema: &Value, value: &Value| fits(schema, value, document);
    let length = || value.as_str().map(|text| text.chars().count() as u64);
    let count = || value.as_array().map(|elements| elements.len() as u64);
    keywords.iter().all(|(keyword, it)| match keyword.as_str() {
        "description" | "contentEncoding" => true,
        // What only results have.
        "readOnly" => false,
        "$ref" => fits(document.pointer(&it.as_str().unwrap()[1..]).unwrap(), value),
        "type" => match it {
            Value::Array(types) => types.iter().any(|it| is_type(it, value)),
            it => is_type(it, value),
        },
        "const" => equal(it, value),
        "enum" => it.as_array().unwrap().iter().any(|it| equal(it, value)),
        "minimum" => !value.is_number() || !is_less(value, it),
        "maximum" => !value.is_number() || !is_less(it, value),
        "minLength" => length().is_none_or(|length| length >= it.as_u64().unwrap()),
        "maxLength" => length().is_none_or(|length| length <= it.as_u64().unwrap()),
        "pattern" => value.as_str().is_none_or(|text| is_match(it.as_str().unwrap(), text)),
        "minItems" => count().is_none_or(|count| count >= it.as_u64().unwrap()),
        "maxItems" => count().is_none_or(|count| count <= it.as_u64().unwrap()),
        "items" => value.as_array().is_none_or(|elements| elements.iter().all(|element| fits(it, element))),
        "prefixItems" => value.as_array().is_none_or(|elements| {
            it.as_array().unwrap().iter().zip(elements).all(|(schema, element)| fits(schema, element))
        }),
        "properties" => value.as_object().is_none_or(|members| {
            it.as_object()
                .unwrap()
                .iter()
                .all(|(name, schema)| members.get(name).is_none_or(|member| fits(schema, member)))
        }),
        "required" => value.as_object().is_none_or(|members| {
            it.as_array().unwrap().iter().all(|name| members.contains_key(name.as_str().unwrap()))
        }),
        "additionalProperties" => {
            assert_eq!(it, &json!(false));
            let known = keywords["properties"].as_object().unwrap();
            value.as_object().is_none_or(|members| members.keys().all(|name| known.contains_key(name)))
        }
        "anyOf" => it.as_array().unwrap().iter().any(|schema| fits(schema, value)),
        "oneOf" => it.as_array().unwrap().iter().filter(|schema| fits(schema, value)).count() == 1,
        "allOf" => it.as_array().unwrap().iter().all(|schema| fits(schema, value)),
        "not" => !fits(it, value),
        other => panic!("the keyword `{other}` is not known here"),
    })
}

fn is_match(pattern: &str, text: &str) -> bool {
    thread_local!(static PATTERNS: RefCell<HashMap<String, Regex>> = RefCell::default());
    PATTERNS.with_borrow_mut(|known| {
        known.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).unwrap()).is_match(text)
    })
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => integer(value).is_some(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type: {other}"),
    }
}

/// A number without a fraction.
fn integer(value: &Value) -> Option<i128> {
    let of_float = || value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i128);
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)).or_else(of_float)
}

fn is_less(left: &Value, right: &Value) -> bool {
    let number = |value: &Value| value.as_f64().unwrap();
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) if left.unsigned_abs().max(right.unsigned_abs()) < 1 << 100 => left < right,
        _ => number(left) < number(right),
    }
}

fn equal(left: &Value, right: &Value) -> bool {
    left == right || integer(left).zip(integer(right)).is_some_and(|(left, right)| left == right)
}

/// The same context as that of the proxy.
fn read(idl: &Descriptions, interface: &InterfaceDescription, operation: &str, body: &str) -> Result<(), String> {
    let types = |name: &str| -> Option<TypeCode> { idl.type_code(name).ok() };
    let references = |url: &str| {
        let scheme = url.split(':').next().unwrap_or_default().to_ascii_lowercase();
        let is_read = url.contains(':') && ["ior", "corbaloc"].contains(&&*scheme) && !is_looked_up(url);
        if is_read { Ok(Ior::default()) } else { Err("expected a reference".to_owned()) }
    };
    let context =
        TextContext::new().strict().value_types(interface.value_types()).types(&types).references(&references);
    let read = interface.find(operation).unwrap().read_arguments(body, &context);
    read.map(drop).map_err(|error| text_of(&error))
}

fn text_of(error: &dyn std::error::Error) -> String {
    format!("{error}: {}", error.source().map(ToString::to_string).unwrap_or_default())
}

/// The reasons that no schema can express: names that nothing has, and types that IDL cannot have.
fn is_beyond_schemas(reason: &str) -> bool {
    ["unknown type `", "no earlier value has", "occurs twice", "cannot be encoded", "cannot have this type", "a union "]
        .iter()
        .any(|it| reason.contains(it))
}

/// Whether it is an `any`, or one in a box, of whose type its value has to be.
fn has_type_and_value(any: &Value) -> bool {
    let has_both = |any: &Value| any.get("_type").is_some() && any.get("_value").is_some();
    has_both(any) || has_both(&any["_value"])
}

#[test]
fn requests_fit_the_document_if_and_only_if_they_are_read() {
    let types = types();
    let operations: String = (0..)
        .zip(&types)
        .map(|(at, (of, _))| format!("{of} pass_{at}(in {of} a, inout {of} b, out {of} c);"))
        .collect();
    let idl = format!("{TYPES} interface Echo {{ {operations} }};");
    let fixture = Fixture::echo(&idl, "Echo");
    let document = fixture.send("GET", "/openapi.json", "").json();
    let (descriptions, atoms) = (describe(&idl).unwrap(), atoms());
    let interface = descriptions.interface("Echo").unwrap();
    let (mut differences, mut read_bodies) = (Vec::new(), 0);
    for (at, (of, values)) in types.iter().enumerate() {
        let (operation, path) = (format!("pass_{at}"), format!("/Echo/all/pass_{at}"));
        let of_operation = &document["paths"][&path]["post"];
        let request = &of_operation["requestBody"]["content"]["application/json"]["schema"];
        let result = &of_operation["responses"]["200"]["content"]["application/json"]["schema"];
        let is_any = ["any", "Wrapped"].contains(of);
        let (mut seen, mut sent) = (HashSet::new(), 0);
        for value in values {
            let mut all = vec![value.clone()];
            variants(value, &atoms, &mut |variant| all.push(variant));
            for variant in all {
                let body = json!({ "a": variant, "b": value });
                if !seen.insert(body.to_string()) {
                    continue;
                }
                let is_promised = fits(request, &body, &document);
                match read(&descriptions, &interface, &operation, &body.to_string()) {
                    Ok(()) if !is_promised => {
                        differences.push(format!("{of} {variant}: read, and not in the document"))
                    }
                    Err(reason)
                        if is_promised && !is_beyond_schemas(&reason) && !(is_any && has_type_and_value(&variant)) =>
                    {
                        differences.push(format!("{of} {variant}: in the document, and {reason}"));
                    }
                    Ok(()) if sent < 4 || variant == *value => {
                        // As a client sends it; the results fit, too.
                        sent += 1;
                        let response = fixture.send("POST", &path, &body.to_string());
                        let is_reference = response.status == 400 && response.body.contains("cannot resolve");
                        if !is_reference && (response.status != 200 || !fits(result, &response.json(), &document)) {
                            differences.push(format!("{of} {variant}: {response:?}"));
                        }
                    }
                    read => read_bodies += usize::from(read.is_ok()),
                }
            }
        }
        for body in [
            json!([values[0], values[values.len() - 1]]),
            json!([values[0]]),
            json!({ "a": values[0] }),
            json!(null),
            json!([]),
        ] {
            let is_read = read(&descriptions, &interface, &operation, &body.to_string()).is_ok();
            if is_read != fits(request, &body, &document) {
                differences.push(format!("{of}: {body} is read: {is_read}"));
            }
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    assert!(read_bodies > 1_000, "{read_bodies}");
}

/// The values of the suite of interoperability.
#[test]
fn values_of_static_stubs_fit_the_document() {
    let fixture = Fixture::types();
    let document = fixture.send("GET", "/openapi.json", "").json();
    for case in spandrel_interop::json_cases(1) {
        let of_operation = &document["paths"][format!("/Types/{}/{}", case.object, case.operation)]["post"];
        for (part, text) in [("/requestBody", &case.arguments), ("/responses/200", &case.results)] {
            let schema = &of_operation.pointer(part).unwrap()["content"]["application/json"]["schema"];
            assert!(fits(schema, &serde_json::from_str(text).unwrap(), &document), "{}: {text}", case.operation);
        }
    }
}
