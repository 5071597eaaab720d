//! Values of value types: of derived types, shared ones, cycles, and those in abstract interfaces.

use super::support::{base, boxed, derived, either, leaf, many, node};
use crate::{DynAny, DynAnyError, TextContext, ValueTypes};
use spandrel_cdr::{Any, ByteOrder, CdrError, Decoder, Encoder, GiopVersion, Ior, TypeCode, Wire};

fn wires() -> [Wire; 2] {
    [ByteOrder::Little, ByteOrder::Big].map(|order| Wire::new(order, GiopVersion::V1_2))
}

fn value_types() -> ValueTypes {
    ValueTypes::from_iter([&node(), &leaf(), &derived(), &boxed()])
}

#[track_caller]
fn read_text(type_code: &TypeCode, text: &str) -> DynAny {
    let (value_types, resolve) = (value_types(), |url: &str| Ok(Ior { type_id: url.into(), ..Ior::default() }));
    let value =
        DynAny::from_text_with(type_code, text, &TextContext::new().value_types(&value_types).references(&resolve));
    value.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The octets, in this wire form.
fn sent(any: &Any, wire: Wire) -> Vec<u8> {
    let mut out = Encoder::new(wire);
    any.write_value(&mut out).unwrap();
    out.to_vec()
}

/// Decodes a value of declared type `of`, with the types that the receiver knows.
fn received(type_code: &TypeCode, octets: &[u8], wire: Wire, types: &ValueTypes) -> Result<Any, CdrError> {
    let mut input = Decoder::new(octets, wire).with_binder(types);
    let any = Any::read(type_code.clone(), &mut input)?;
    assert_eq!(input.remaining(), 0);
    Ok(any)
}

/// Checks that the value of a text survives encoding in every order, and prints as the same text.
#[track_caller]
fn there_and_back(type_code: &TypeCode, text: &str) -> DynAny {
    let value = read_text(type_code, text);
    assert_eq!(value.to_string(), text);
    let json = value.to_json().unwrap();
    assert_eq!(read_text(type_code, &json), value, "{json}");
    let mut any = value.to_any().unwrap();
    for wire in wires().into_iter().chain(wires()) {
        // A received value can be forwarded.
        any = received(type_code, &sent(&any, wire), wire, &value_types()).unwrap();
        let back = DynAny::new(&any).unwrap();
        assert_eq!((back.to_string(), &back), (text.to_owned(), &value));
    }
    value
}

#[test]
fn a_derived_value_is_permitted_where_its_base_is_declared() {
    let type_code = many(&base(), 0);
    let leaf = r#"{_type: "IDL:Leaf:1.0", id: 1, inner: {_type: "IDL:Derived:1.0", id: 2, note: "n"}}"#;
    let mut value = there_and_back(&type_code, &format!("[{leaf}, {{id: 3}}, null]"));
    let mut first = value.current_component_mut().unwrap().unwrap().clone();
    let view = first.as_value().unwrap();
    assert_eq!((view.value_type(), view.members().unwrap().len()), (super::support::leaf(), 2));
    assert!(first.type_code().equal(&base()), "the declared type");
    // A receiver without the type cannot skip a value without chunks.
    for wire in wires() {
        let octets = sent(&value.to_any().unwrap(), wire);
        let refused = received(&type_code, &octets, wire, &ValueTypes::new()).unwrap_err();
        assert_eq!(refused, CdrError::UnknownValue { repository_id: "IDL:Leaf:1.0".into() });
    }
    // A truncatable one is truncated.
    let whole = read_text(&base(), r#"{_type: "IDL:Derived:1.0", id: 2, note: "n"}"#).to_any().unwrap();
    for wire in wires() {
        let cut = received(&base(), &sent(&whole, wire), wire, &ValueTypes::new()).unwrap();
        assert_eq!(DynAny::new(&cut).unwrap().to_string(), "{id: 2}");
        assert_eq!(DynAny::without_truncation(&cut).unwrap_err(), DynAnyError::MustTruncate);
    }
    assert_eq!(DynAny::without_truncation(&whole).unwrap(), DynAny::new(&whole).unwrap());
}

#[test]
fn a_value_of_an_unrelated_type_is_rejected() {
    let octets = sent(&read_text(&node(), r#"{name: "n", next: null, others: []}"#).to_any().unwrap(), wires()[0]);
    assert!(received(&base(), &octets, wires()[0], &value_types()).is_err());
    let refused = |type_code: &TypeCode, text: &str, reason: &str| {
        let value_types = value_types();
        let error = DynAny::from_text_with(type_code, text, &TextContext::new().value_types(&value_types))
            .unwrap_err()
            .to_string();
        assert!(error.contains(reason), "{text}: {error}");
    };
    refused(&base(), r#"{_type: "IDL:Node:1.0", name: "n", next: null, others: []}"#, "does not derive from");
    refused(&base(), r#"{_type: "IDL:Nothing:1.0"}"#, "unknown value type");
    refused(&either(), "{id: 1}", "`_type` is needed");
    refused(&many(&base(), 0), "[{_ref: 1}, {_id: 1, id: 2}]", "no earlier value has `_id: 1`");
    refused(&many(&base(), 0), "[{_id: 1, id: 2}, {_id: 1, id: 2}]", "twice");
    let either_way = many(&TypeCode::value_base(), 0);
    assert!(DynAny::from_text(&either_way, r#"[{_type: "IDL:Base:1.0", id: 1}]"#).is_err(), "without its type code");
    let pair = [("any", either()), ("base", base())];
    let pair = TypeCode::structure("IDL:Pair:1.0", "Pair", &pair).unwrap();
    let node = r#"{_id: 1, _type: "IDL:Node:1.0", name: "n", next: null, others: []}"#;
    refused(&pair, &format!("{{any: {node}, base: {{_ref: 1}}}}"), "is not a `IDL:Base:1.0`");
}

#[test]
fn shared_values_and_cycles_are_preserved() {
    let shared =
        r#"[{_id: 1, name: "a", next: null, others: []}, {_ref: 1}, {name: "b", next: {_ref: 1}, others: []}]"#;
    let value = there_and_back(&many(&node(), 0), shared);
    let [first, second, third] = value.components() else { panic!("{value}") };
    assert_eq!(value.original_of(second), Some(first));
    assert!(second.clone().as_value().unwrap().is_repeated() && second.components().is_empty());
    assert!(second.clone().as_value().unwrap().members().is_err() && !second.clone().as_value().unwrap().is_null());
    assert_eq!(value.original_of(&third.components()[1]), Some(first));
    // Two values of the same state are two values.
    let apart = read_text(
        &many(&node(), 0),
        r#"[{name: "a", next: null, others: []}, {name: "a", next: null, others: []}, {name: "b", next: null, others: []}]"#,
    );
    assert_ne!(apart, value);

    let circle = r#"{_id: 1, name: "a", next: {_id: 2, name: "b", next: {_ref: 1}, others: [{_ref: 2}, {_ref: 1}]}, others: []}"#;
    let mut value = there_and_back(&node(), circle);
    assert_eq!(value.clone(), value);
    // As an any, each member contains all its targets.
    let members = value.as_value().unwrap().members().unwrap();
    let inner = DynAny::new(&members[1].value).unwrap();
    assert_eq!(inner.components()[1].components()[0].string(), Ok("a"));
    let mut again = DynAny::of_type(&node()).unwrap();
    again.as_value().unwrap().set_members_as_dyn_any(&value.as_value().unwrap().members_as_dyn_any().unwrap()).unwrap();
    assert_eq!(again.component_count(), 3);
}

#[test]
fn a_program_creates_a_cycle() {
    let mut value = read_text(&node(), r#"{name: "a", next: null, others: []}"#);
    let itself = value.as_value().unwrap().repeat().unwrap();
    value.seek(1);
    value.current_component_mut().unwrap().unwrap().assign(&itself).unwrap();
    assert_eq!(value.to_string(), r#"{_id: 1, name: "a", next: {_ref: 1}, others: []}"#);
    // A copy is another value, with a cycle of its own.
    let mut two = DynAny::of_type(&many(&node(), 0)).unwrap();
    two.as_sequence().unwrap().set_elements_as_dyn_any(&[value.clone(), value.clone(), itself.clone()]).unwrap();
    two.rewind();
    two.current_component_mut().unwrap().unwrap().insert_string("b").unwrap();
    assert!(two.to_string().starts_with(r#"[{_id: "#) && two.to_string().contains(r#"name: "b""#), "{two}");
    let lost = two.to_any().unwrap_err();
    assert!(lost.to_string().contains("outside the encoded value"), "{lost}");
    two.as_sequence().unwrap().set_length(2).unwrap();
    let back = DynAny::new(&two.to_any().unwrap()).unwrap();
    assert_eq!(back, two);
    let names: Vec<_> = back.components().iter().map(|it| it.components()[0].string().unwrap().to_owned()).collect();
    assert_eq!(names, ["b", "a"]);
    assert!(DynAny::of_type(&node()).unwrap().as_value().unwrap().repeat().is_err(), "null has no value to repeat");
}

#[test]
fn an_abstract_interface_has_an_object_or_a_value() {
    let mut nil = there_and_back(&either(), "null");
    assert_eq!(sent(&nil.to_any().unwrap(), wires()[0]), [0; 8], "a boolean, and a null value (Part 2, 9.3.7)");
    assert!(nil.reference().unwrap().is_nil() && nil.as_value().is_err());
    let value = r#"{_type: "IDL:Leaf:1.0", id: 1, inner: null}"#;
    let mut value = there_and_back(&either(), value);
    assert_eq!(value.as_value().unwrap().value_type(), leaf());
    nil.assign(&value).unwrap();
    assert_eq!(nil, value);
    there_and_back(&either(), r#"{_type: "IDL:Box:1.0", _value: "held"}"#);
    // A reference without profiles is printed as nil, but is not nil.
    let object = read_text(&either(), "IDL:Some:1.0");
    assert_eq!(object.reference().unwrap().type_id, "IDL:Some:1.0");
    for wire in wires() {
        let octets = sent(&object.to_any().unwrap(), wire);
        assert_eq!(octets[0], 1);
        assert_eq!(DynAny::new(&received(&either(), &octets, wire, &value_types()).unwrap()).unwrap(), object);
    }
    value.assign(&object).unwrap();
    assert_eq!(value, object);
    assert!(value.assign(&DynAny::new(&Any::new(1_i32).unwrap()).unwrap()).is_err());
    // Several occurrences share their values.
    let several = r#"[{_id: 1, _type: "IDL:Base:1.0", id: 1}, null, {_type: "IDL:Leaf:1.0", id: 2, inner: {_ref: 1}}]"#;
    there_and_back(&many(&either(), 0), several);
    there_and_back(&many(&TypeCode::value_base(), 0), several);
}

#[test]
fn boxes_are_values_too() {
    let text = r#"["a", {_id: 1, _value: "b"}, {_ref: 1}, null]"#;
    there_and_back(&many(&boxed(), 0), text);
    there_and_back(&many(&TypeCode::value_base(), 0), r#"[{_id: 1, _type: "IDL:Box:1.0", _value: "b"}, {_ref: 1}]"#);
}

/// A list is as deep as it is long.
#[test]
fn a_list_of_values_is_as_long_as_the_wire_allows() {
    let list = |len: usize| format!("{}null{}", r#"{name: "n", next: "#.repeat(len), ", others: []}".repeat(len));
    there_and_back(&node(), &list(256));
    let value_types = value_types();
    let longer =
        DynAny::from_text_with(&node(), &list(257), &TextContext::new().value_types(&value_types)).unwrap_err();
    assert!(longer.to_string().contains("nests too deep"), "{longer}");
    // By way of sequences, to which the wire sets another limit.
    let tree = format!("{}{}", r#"{name: "n", next: null, others: ["#.repeat(60), "]}".repeat(60));
    there_and_back(&node(), &tree);
}

/// A value inside the additions of a derived type, which are skipped, is repeated after it.
#[test]
fn a_value_inside_a_truncated_part_is_decoded() {
    let members = [("more", node(), spandrel_cdr::Visibility::Public)];
    let modifier = spandrel_cdr::ValueModifier::Truncatable;
    let longer = TypeCode::value("IDL:Longer:1.0", "Longer", modifier, Some(&base()), &members).unwrap();
    let pair = TypeCode::structure("IDL:Pair:1.0", "Pair", &[("first", base()), ("second", node())]).unwrap();
    let text = r#"{first: {_type: "IDL:Longer:1.0", id: 1, more: {_id: 1, name: "kept", next: {_ref: 1}, others: []}}, second: {_ref: 1}}"#;
    let all = ValueTypes::from_iter([&longer]);
    let value = DynAny::from_text_with(&pair, text, &TextContext::new().value_types(&all)).unwrap();
    let octets = sent(&value.to_any().unwrap(), wires()[1]);
    let cut = received(&pair, &octets, wires()[1], &ValueTypes::new()).unwrap();
    let expected = r#"{first: {id: 1}, second: {_id: 1, name: "kept", next: {_ref: 1}, others: []}}"#;
    assert_eq!(DynAny::new(&cut).unwrap().to_string(), expected);
    assert_eq!(DynAny::new(&received(&pair, &octets, wires()[1], &all).unwrap()).unwrap().to_string(), text);
}

#[test]
fn a_value_shared_between_anys_is_decoded_and_encoded_separately() {
    for orders in [[ByteOrder::Little, ByteOrder::Big], [ByteOrder::Big, ByteOrder::Little]] {
        let [from, to] = orders.map(|order| Wire::new(order, GiopVersion::V1_2));
        let mut out = Encoder::new(from);
        out.u32(0x7fff_ff02);
        out.short_str("IDL:Base:1.0").unwrap();
        out.align(4);
        out.i32(7);
        let here = i32::try_from(out.position()).unwrap();
        out.i32(-1);
        // From the octets after the tag to the value.
        out.i32(-(here + 4));
        let octets = out.to_vec();
        let mut input = Decoder::new(&octets, from);
        let first = Any::read(base(), &mut input).unwrap();
        let second = Any::read(base(), &mut input).unwrap();
        let mut out = Encoder::new(to);
        first.write_value(&mut out).unwrap();
        second.write_value(&mut out).unwrap();
        let octets = out.to_vec();
        let mut input = Decoder::new(&octets, to);
        let read = [(); 2].map(|()| DynAny::new(&Any::read(base(), &mut input).unwrap()).unwrap());
        assert_eq!(read[0], read[1]);
        assert_eq!(read[0].long(), Ok(7));
        assert_eq!(input.remaining(), 0);
    }
}

/// The second value's id is an indirection to the first one's: alone it needs an id of its own.
#[test]
fn a_shared_id_is_encoded_with_each_value() {
    for orders in [[ByteOrder::Little, ByteOrder::Big], [ByteOrder::Big, ByteOrder::Big]] {
        let [from, to] = orders.map(|order| Wire::new(order, GiopVersion::V1_2));
        let mut out = Encoder::new(from);
        out.u32(0x7fff_ff02);
        out.short_str("IDL:Base:1.0").unwrap();
        out.i32(7);
        out.u32(0x7fff_ff02);
        out.i32(-1);
        // Back to the length of the string.
        let here = i32::try_from(out.position()).unwrap();
        out.i32(4 - here);
        out.i32(8);
        let octets = out.to_vec();
        let mut input = Decoder::new(&octets, from);
        let first = Any::read(base(), &mut input).unwrap();
        let second = Any::read(base(), &mut input).unwrap();
        assert_eq!(input.remaining(), 0);
        // In the reverse order, so that all positions differ.
        let mut out = Encoder::new(to);
        second.write_value(&mut out).unwrap();
        first.write_value(&mut out).unwrap();
        let octets = out.to_vec();
        let mut input = Decoder::new(&octets, to);
        let read = [(); 2].map(|()| DynAny::new(&Any::read(base(), &mut input).unwrap()).unwrap().long());
        assert_eq!(read, [Ok(8), Ok(7)]);
    }
}

/// A value in an `any` in the state of a chunked value is itself outside chunks (Part 2, 9.3.4.6), wherever
/// its octets are.
#[test]
fn a_value_in_an_any_in_a_chunked_value_stays_one() {
    let public = spandrel_cdr::Visibility::Public;
    let members = [("pad", TypeCode::STRING, public), ("more", TypeCode::ANY, public)];
    let modifier = spandrel_cdr::ValueModifier::Truncatable;
    let longer = TypeCode::value("IDL:Longer:1.0", "Longer", modifier, Some(&base()), &members).unwrap();
    let inner = read_text(&many(&base(), 0), r#"[{_type: "IDL:Leaf:1.0", id: 1, inner: null}]"#);
    let mut value = DynAny::of_type(&longer).unwrap();
    value.as_value().unwrap().set_to_value().unwrap();
    for (wire, pad) in wires().into_iter().flat_map(|wire| (0..8).map(move |pad| (wire, pad))) {
        value.seek(1);
        value.insert_string(&"p".repeat(pad)).unwrap();
        value.seek(2);
        value.insert_dyn_any(&inner).unwrap();
        let any = value.to_any().unwrap();
        let back = DynAny::new(&received(&longer, &sent(&any, wire), wire, &value_types()).unwrap()).unwrap();
        assert_eq!(back.components()[2].dyn_any().unwrap(), inner, "{wire:?} {pad}");
    }
}

#[test]
fn values_are_inserted_into_positions_of_value_types() {
    let mut list = read_text(&many(&node(), 0), "[null, null]");
    let ring = read_text(&node(), r#"{_id: 1, name: "a", next: {_ref: 1}, others: []}"#);
    assert!(list.seek(1));
    list.insert_val(&ring).unwrap();
    assert_eq!(list.to_string(), r#"[null, {_id: 1, name: "a", next: {_ref: 1}, others: []}]"#);
    assert_eq!(list.val().unwrap(), ring);
    // A position that repeats a value yields the value with its state.
    let mut pair = read_text(&many(&base(), 0), "[{_id: 1, id: 7}, {_ref: 1}]");
    assert!(pair.seek(1));
    assert_eq!(pair.val().unwrap().to_string(), "{id: 7}");
    pair.insert_val(&read_text(&derived(), r#"{id: 3, note: "n"}"#)).unwrap();
    assert_eq!(pair.to_string(), r#"[{id: 7}, {_type: "IDL:Derived:1.0", id: 3, note: "n"}]"#);
    // The value itself is the target without such a component.
    let mut whole = read_text(&base(), "null");
    whole.insert_val(&read_text(&base(), "{id: 5}")).unwrap();
    assert_eq!(whole.to_string(), "{id: 5}");

    assert!(matches!(whole.insert_val(&ring), Err(DynAnyError::TypeMismatch { .. })));
    let mut number = read_text(&TypeCode::LONG, "1");
    assert!(matches!(number.insert_val(&ring), Err(DynAnyError::TypeMismatch { .. })));
    assert!(matches!(number.val(), Err(DynAnyError::TypeMismatch { .. })));
}

#[test]
fn references_and_values_are_inserted_into_abstract_interfaces() {
    let mut list = read_text(&many(&either(), 0), "[null, null]");
    list.insert_abstract(&read_text(&base(), "{id: 5}")).unwrap();
    assert!(list.seek(1));
    let reference = read_text(&TypeCode::object(), "\"IDL:Any:1.0\"");
    list.insert_abstract(&reference).unwrap();
    assert_eq!(list.abstract_val().unwrap().reference().unwrap(), reference.reference().unwrap());
    assert!(list.seek(0));
    assert_eq!(list.abstract_val().unwrap().to_string(), r#"{_type: "IDL:Base:1.0", id: 5}"#);
    let number = read_text(&TypeCode::LONG, "1");
    assert!(matches!(list.insert_abstract(&number), Err(DynAnyError::TypeMismatch { .. })));
    assert!(matches!(list.val(), Err(DynAnyError::TypeMismatch { .. })));
}
