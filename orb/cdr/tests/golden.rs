//! Anys recorded from omniORB, decoded here, and encoded here from the same types and values.

use std::collections::BTreeMap;

use spandrel_cdr::{
    Any, BoundedString, BoundedVec, ByteOrder, CharSet, Decode, Decoder, Encode, Encoder, Fixed, GiopVersion, Label,
    TcKind, TypeCode, TypeCodeError, Typed, ValueModifier, Visibility, WString, Wire,
};

type Made = Result<TypeCode, TypeCodeError>;

/// `IDL:Golden/…:1.0` and the name after the last slash.
macro_rules! golden {
    ($make:ident $name:literal $(, $argument:expr)*) => {
        TypeCode::$make(concat!("IDL:Golden/", $name, ":1.0"), $name $(, $argument)*)
    };
}

fn types() -> Result<BTreeMap<&'static str, TypeCode>, TypeCodeError> {
    let point = golden!(structure "Point", &[("x", TypeCode::SHORT), ("y", TypeCode::DOUBLE)])?;
    let colour = golden!(enumeration "Colour", &["red", "green", "blue"])?;
    let amount = golden!(alias "Amount", &TypeCode::LONG)?;
    let amounts = golden!(alias "Amounts", &TypeCode::sequence(&amount, 3)?)?;
    let name = golden!(alias "Name", &TypeCode::string(5))?;
    let matrix = golden!(alias "Matrix", &<[[u8; 3]; 2]>::type_code())?;
    let choice = golden!(union "Choice", &colour, &[
        (Label::Value(0), "number", TypeCode::LONG),
        (Label::Value(1), "text", TypeCode::STRING),
        (Label::Value(2), "text", TypeCode::STRING),
    ])?;
    let everything = everything([&name, &colour, &amounts, &matrix, &choice])?;
    let node = node()?;
    let special =
        golden!(value "Special", ValueModifier::Truncatable, Some(&node), &[("where", point.clone(), PUBLIC)])?;
    Ok(BTreeMap::from([
        ("tc-long", TypeCode::LONG),
        ("tc-pair", golden!(structure "Pair", &[("first", point.clone()), ("second", point.clone())])?),
        ("tc-point", point),
        ("tc-price", golden!(alias "Price", &Fixed::<5, 2>::type_code())?),
        (
            "tc-letter",
            golden!(union "Letter", &TypeCode::CHAR, &[
                (Label::Value(i128::from(b'x')), "wide", TypeCode::WSTRING),
                (Label::Default, "one", TypeCode::WCHAR),
            ])?,
        ),
        ("tc-flag", golden!(union "Flag", &TypeCode::BOOLEAN, &[(Label::from(true), "its_name", name.clone())])?),
        (
            "tc-nested",
            golden!(union "Nested", &TypeCode::SHORT, &[
                (Label::from(-1_i16), "chosen", choice.clone()),
                (Label::Default, "rows", matrix.clone()),
            ])?,
        ),
        ("tc-colour", colour),
        ("tc-amounts", amounts),
        ("tc-name", name),
        ("tc-matrix", matrix),
        ("tc-choice", choice),
        ("tc-everything", everything),
        ("tc-tree", tree()?),
        ("tc-outer", outer()?),
        ("tc-broke", golden!(exception "Broke", &[("what", TypeCode::STRING), ("code", amount)])?),
        ("tc-node", node),
        ("tc-special", special),
        ("tc-text", golden!(value_box "Text", &TypeCode::STRING)?),
        ("tc-vague", golden!(abstract_interface "Vague")?),
        ("tc-plain", golden!(object_reference "Plain")?),
        ("tc-object", TypeCode::object()),
    ]))
}

fn everything([name, colour, amounts, matrix, choice]: [&TypeCode; 5]) -> Made {
    golden!(structure "Everything", &[
        ("o", TypeCode::OCTET), ("b", TypeCode::BOOLEAN), ("c", TypeCode::CHAR), ("s", TypeCode::SHORT),
        ("us", TypeCode::USHORT), ("l", TypeCode::LONG), ("ul", TypeCode::ULONG), ("ll", TypeCode::LONGLONG),
        ("ull", TypeCode::ULONGLONG), ("f", TypeCode::FLOAT), ("d", TypeCode::DOUBLE), ("words", TypeCode::STRING),
        ("called", name.clone()), ("paint", colour.clone()), ("sums", amounts.clone()), ("rows", matrix.clone()),
        ("chosen", choice.clone()),
    ])
}

fn tree() -> Made {
    let children = TypeCode::sequence(&TypeCode::recursive("IDL:Golden/Tree:1.0")?, 0)?;
    golden!(structure "Tree", &[("value", TypeCode::LONG), ("children", children)])
}

fn outer() -> Made {
    let outers = TypeCode::sequence(&TypeCode::recursive("IDL:Golden/Outer:1.0")?, 0)?;
    let inner = TypeCode::structure("IDL:Golden/Outer/Inner:1.0", "Inner", &[("outers", outers)])?;
    golden!(structure "Outer", &[("one", inner.clone()), ("other", inner)])
}

/// `omniidl` has the numbers of public and private swapped; in CORBA 3.3 Part 1, 8.11.1 and its own
/// `CORBA::PUBLIC_MEMBER` public is 1.
const PUBLIC: Visibility = Visibility::Private;
const PRIVATE: Visibility = Visibility::Public;

fn node() -> Made {
    golden!(value "Node", ValueModifier::None, None, &[
        ("value", TypeCode::LONG, PUBLIC),
        ("next", TypeCode::recursive("IDL:Golden/Node:1.0")?, PUBLIC),
        ("note", TypeCode::STRING, PRIVATE),
    ])
}

/// Name, wire form and octets of each vector.
fn vectors() -> Vec<(&'static str, Wire, Vec<u8>)> {
    let lines = include_str!("golden/anys.txt").lines().filter(|line| !line.starts_with('#'));
    let vector = |line: &'static str| {
        let [name, order, hex] = line.split(' ').collect::<Vec<_>>().try_into().expect("three words");
        let order = if order == "little" { ByteOrder::Little } else { ByteOrder::Big };
        let octets = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        (name, Wire::new(order, GiopVersion::V1_2), octets)
    };
    lines.map(vector).collect()
}

fn read(name: &str, wire: Wire, octets: &[u8]) -> Any {
    let mut input = Decoder::new(octets, wire);
    let any = Any::decode(&mut input).unwrap_or_else(|error| panic!("{name} in {wire:?}: {error}"));
    assert_eq!(input.remaining(), 0, "{name} in {wire:?}");
    any
}

fn written(any: &Any, wire: Wire) -> Vec<u8> {
    let mut out = Encoder::new(wire);
    any.encode(&mut out).unwrap();
    out.to_vec()
}

/// Compares octets except for padding, which is zero here and undefined in the recording.
#[track_caller]
fn check_octets(name: &str, ours: &[u8], theirs: &[u8]) {
    assert_eq!(ours.len(), theirs.len(), "{name}");
    let differ = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs && *ours != 0);
    assert_eq!(differ, None, "{name}: {ours:02x?} is not {theirs:02x?}");
}

#[test]
fn type_codes_of_omniorb_are_decoded_and_encoded_alike() {
    let types = types().unwrap();
    let mut seen = 0;
    for (name, wire, octets) in vectors().iter().filter(|(name, ..)| name.starts_with("tc-")) {
        let read: TypeCode = read(name, *wire, octets).extract().unwrap();
        let expected = &types[name];
        assert!(read.equal(expected), "{name}: {read} is not {expected}");
        if wire.order == ByteOrder::Little && !["tc-choice", "tc-nested", "tc-everything"].contains(name) {
            // These three contain a union without a default, for which omniORB writes -2.
            check_octets(name, &written(&Any::new(expected).unwrap(), *wire), octets);
        }
        seen += 1;
    }
    assert_eq!(seen, 2 * types.len());
}

#[test]
fn values_of_omniorb_are_decoded_and_encoded_alike() {
    for (name, wire, octets) in &vectors() {
        let any = read(name, *wire, octets);
        let again = written(&any, *wire);
        assert_eq!(read(name, *wire, &again), any, "{name}");
        let other =
            Wire::new(if wire.order == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big }, wire.version);
        let other = Wire { char_set: CharSet::Utf8, ..other };
        assert_eq!(read(name, other, &written(&any, other)), any, "{name}");
    }
}

#[test]
fn values_of_omniorb_equal_the_inserted_ones() {
    for (name, wire, octets) in &vectors() {
        let any = read(name, *wire, octets);
        match *name {
            "null" => assert_eq!(any, Any::default()),
            "long" => assert_eq!(any.extract(), Ok(5_i32)),
            "double" => assert_eq!(any.extract(), Ok(2.5_f64)),
            "string" => assert_eq!(any.extract(), Ok("hello".to_owned())),
            "wchar" => assert_eq!(any.extract(), Ok('€')),
            "wstring" => assert_eq!(any.extract(), Ok(WString::from("wide"))),
            "fixed" => assert_eq!(any.extract(), Ok(Fixed::<9, 2>::from_unscaled(-125))),
            "any" => assert_eq!(any.extract::<Any>().unwrap().extract(), Ok(Fixed::<9, 2>::from_unscaled(-125))),
            "object-nil" => assert!(any.extract::<spandrel_cdr::Ior>().unwrap().is_nil()),
            "object" => assert_eq!(any.extract::<spandrel_cdr::Ior>().unwrap().profiles[0].tag, 0),
            "amounts" => assert_eq!(any.extract(), Ok(BoundedVec::<i32, 3>::try_from(vec![11]).unwrap())),
            "tree" => assert_eq!(any.value().rest().len(), 32),
            "broke" => {
                let mut members = any.value();
                assert_eq!((members.str().unwrap(), members.i32().unwrap()), ("glass".into(), 3));
            }
            "flag-none" => assert_eq!(any.value().rest(), [0]),
            "pair" => {
                let mut members = any.value();
                let mut point = || (members.i16().unwrap(), members.f64().unwrap());
                assert_eq!([point(), point()], [(1, 2.5), (-3, -4.5)]);
            }
            "choice" => {
                let mut value = any.value();
                assert_eq!((value.u32().unwrap(), value.str().unwrap()), (2, "blau".into()));
            }
            "everything" => check_everything(&any),
            other => assert!(other.starts_with("tc-") || other.starts_with("value"), "{other}"),
        }
    }
}

fn check_everything(any: &Any) {
    assert_eq!(any.type_code().kind(), TcKind::Struct);
    let mut m = any.value();
    assert_eq!((m.u8().unwrap(), m.bool().unwrap(), m.u8().unwrap()), (0xfe, true, b'z'));
    assert_eq!(
        (m.i16().unwrap(), m.u16().unwrap(), m.i32().unwrap(), m.u32().unwrap()),
        (-2, 65535, -70_000, 4_000_000_000)
    );
    assert_eq!((m.i64().unwrap(), m.u64().unwrap()), (-5_000_000_000, 18_000_000_000_000_000_000));
    assert_eq!((m.f32().unwrap(), m.f64().unwrap()), (0.5, -1e100));
    assert_eq!(
        (m.str().unwrap(), BoundedString::<5>::decode(&mut m).unwrap()),
        ("text".into(), "name".try_into().unwrap())
    );
    assert_eq!((m.u32().unwrap(), Vec::<i32>::decode(&mut m).unwrap()), (1, vec![7, -7]));
    assert_eq!(<[[u8; 3]; 2]>::decode(&mut m).unwrap(), [[0, 1, 2], [3, 4, 5]]);
    assert_eq!((m.u32().unwrap(), m.i32().unwrap(), m.remaining()), (0, 9, 0));
}

#[test]
fn values_of_omniorb_are_forwarded_in_the_other_byte_order() {
    let vectors = vectors();
    let mut seen = 0;
    for pair in vectors.chunks(2) {
        let [(name, little, octets), (_, big, swapped)] = pair else { panic!("each is recorded in two orders") };
        // Unions with omniORB's -2 have -1 here, and the additions of a truncatable value's derived type are
        // unknown here.
        if ["choice", "everything", "value-truncatable"].contains(name) || name.starts_with("tc-") {
            continue;
        }
        check_octets(name, &written(&read(name, *big, swapped), *little), octets);
        seen += 1;
    }
    assert_eq!(seen, 20);
}

#[test]
fn a_truncatable_value_is_forwarded_as_the_base_of_its_position() {
    for (_, wire, octets) in vectors().iter().filter(|(name, ..)| *name == "value-truncatable") {
        let any = read("value-truncatable", *wire, octets);
        // Unchanged, as long as its octets can be copied.
        assert!(written(&any, *wire).ends_with(any.value().rest()));
        let mut out = Encoder::new(*wire);
        out.u32(0);
        any.write_value(&mut out).unwrap();
        let moved = out.to_vec();
        let mut input = Decoder::new(&moved, *wire).at(4);
        assert_eq!((input.u32().unwrap(), input.str().unwrap()), (0x7fff_ff0a, "IDL:Golden/Node:1.0".into()));
        let (chunk, value, next) =
            (input.u32().unwrap(), input.i32().unwrap(), (input.u32().unwrap(), input.i32().unwrap()));
        assert_eq!((chunk, value, next.0), (24, 3, 0xffff_ffff));
        assert_eq!(i64::from(next.1), 4 - (input.position() as i64 - 4));
        assert_eq!((input.str().unwrap(), input.i32().unwrap(), input.remaining()), ("special".into(), -1, 0));
    }
}
