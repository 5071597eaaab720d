//! Operations of values of particular types (CORBA 3.3 Part 1, 16.2.4 to 16.2.12).

use super::support::{always, base, boxed, choice, colour, derived, empty, full, many, point};
use crate::{DynAny, DynAnyError, DynNamePair, NameValuePair};
use spandrel_cdr::{Any, Decimal, Label, TcKind, TypeCode};

fn default_value(type_code: &TypeCode) -> DynAny {
    DynAny::of_type(type_code).unwrap()
}

fn long(value: i32) -> DynAny {
    DynAny::new(&Any::new(value).unwrap()).unwrap()
}

fn text(value: &str) -> DynAny {
    DynAny::new(&Any::new(value).unwrap()).unwrap()
}

#[test]
fn a_view_requires_its_kind_of_type() {
    let mut value = default_value(&TypeCode::LONG);
    let found = "a value of type `long`";
    let mismatch = |expected: &str| Some(DynAnyError::TypeMismatch { expected: expected.into(), found: found.into() });
    assert_eq!(value.as_fixed().err(), mismatch("a fixed-point number"));
    assert_eq!(value.as_enum().err(), mismatch("an enum"));
    assert_eq!(value.as_struct().err(), mismatch("a struct or an exception"));
    assert_eq!(value.as_union().err(), mismatch("a union"));
    assert_eq!(value.as_sequence().err(), mismatch("a sequence"));
    assert_eq!(value.as_array().err(), mismatch("an array"));
    assert_eq!(value.as_value().err(), mismatch("a value type"));
    assert_eq!(value.as_value_box().err(), mismatch("a value box"));
}

#[test]
fn fixed_is_text() {
    // 16.2.4
    let mut value = default_value(&TypeCode::fixed(5, 2).unwrap());
    let mut fixed = value.as_fixed().unwrap();
    assert_eq!(fixed.set_value("-123.45d"), Ok(true));
    assert_eq!((fixed.value(), fixed.decimal()), ("-123.45".to_owned(), Decimal::new(-12345, 2).unwrap()));
    assert_eq!(fixed.set_value("1.239"), Ok(false), "truncated");
    assert_eq!(fixed.value(), "1.23");
    assert_eq!(fixed.set_value("0.11111111111111111111111111111111111111"), Ok(false));
    assert_eq!(fixed.value(), "0.11");
    assert!(matches!(fixed.set_value("twelve"), Err(DynAnyError::TypeMismatch { .. })));
    assert!(matches!(fixed.set_value("1234.5"), Err(DynAnyError::InvalidValue(_))));
    assert!(matches!(fixed.set_value(&"9".repeat(40)), Err(DynAnyError::InvalidValue(_))));
    assert_eq!(fixed.value(), "0.11", "unchanged");
    assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap().as_fixed().unwrap().value(), "0.11");
}

#[test]
fn enums_are_names_and_numbers() {
    // 16.2.5
    let mut value = default_value(&colour());
    let mut colour = value.as_enum().unwrap();
    colour.set_as_string("blue").unwrap();
    assert_eq!((colour.as_ulong(), colour.as_string()), (2, Ok("blue".to_owned())));
    colour.set_as_ulong(1).unwrap();
    assert_eq!(colour.as_string(), Ok("green".to_owned()));
    assert!(matches!(colour.set_as_ulong(3), Err(DynAnyError::InvalidValue(_))));
    assert!(matches!(colour.set_as_string("mauve"), Err(DynAnyError::InvalidValue(_))));
    assert_eq!(colour.as_ulong(), 1, "unchanged");
    assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap(), value);
}

#[test]
fn structs_name_their_members() {
    // 16.2.6
    let mut value = default_value(&point());
    assert_eq!(value.as_struct().unwrap().current_member_name(), Ok("x".to_owned()));
    value.next();
    let point = value.as_struct().unwrap();
    assert_eq!((point.current_member_name(), point.current_member_kind()), (Ok("name".to_owned()), Ok(TcKind::String)));
    value.next();
    assert!(matches!(value.as_struct().unwrap().current_member_name(), Err(DynAnyError::InvalidValue(_))));
    assert!(matches!(
        default_value(&empty()).as_struct().unwrap().current_member_name(),
        Err(DynAnyError::TypeMismatch { .. })
    ));
    assert!(matches!(
        default_value(&empty()).as_struct().unwrap().current_member_kind(),
        Err(DynAnyError::TypeMismatch { .. })
    ));
}

#[test]
fn structs_get_and_set_all_members() {
    // 16.2.6
    let mut value = default_value(&point());
    value.seek(1);
    let pair = |id: &str, value: &Any| NameValuePair { id: id.to_owned(), value: value.clone() };
    let (seven, name) = (Any::new(7_i32).unwrap(), Any::new("seven").unwrap());
    let mut point = value.as_struct().unwrap();
    point.set_members(&[pair("x", &seven), pair("name", &name)]).unwrap();
    assert_eq!(point.members().unwrap(), [pair("x", &seven), pair("name", &name)]);
    point.set_members(&[pair("", &seven), pair("", &name)]).unwrap();
    assert!(matches!(
        point.set_members(&[pair("y", &seven), pair("name", &name)]),
        Err(DynAnyError::TypeMismatch { .. })
    ));
    assert!(matches!(
        point.set_members(&[pair("x", &name), pair("name", &seven)]),
        Err(DynAnyError::TypeMismatch { .. })
    ));
    assert!(matches!(point.set_members(&[pair("x", &seven)]), Err(DynAnyError::InvalidValue(_))));
    assert_eq!(value.position(), Some(0));
    assert_eq!(value.long(), Ok(7));
}

#[test]
fn structs_get_and_set_all_members_as_components() {
    // 16.2.6
    let mut value = default_value(&point());
    let mut point = value.as_struct().unwrap();
    let members = [("x", long(7)), ("name", text("seven"))];
    let members = members.map(|(id, value)| DynNamePair { id: id.to_owned(), value });
    point.set_members_as_dyn_any(&members).unwrap();
    assert_eq!(point.members_as_dyn_any().unwrap(), members);
    assert!(matches!(point.set_members_as_dyn_any(&members[..1]), Err(DynAnyError::InvalidValue(_))));
    assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap(), value);
}

#[test]
fn exceptions_are_structs() {
    let type_code = TypeCode::exception("IDL:Broken:1.0", "Broken", &[("why", TypeCode::string(0))]).unwrap();
    let mut value = default_value(&type_code);
    value.insert_string("tired").unwrap();
    let any = value.to_any().unwrap();
    assert_eq!(any.value().str().unwrap(), "IDL:Broken:1.0", "its id comes first");
    assert_eq!(DynAny::new(&any).unwrap().as_struct().unwrap().members().unwrap()[0].id, "why");
    // As omniORB encodes it in an `any`.
    let without_id = Any::write(type_code, |out| out.short_str("tired")).unwrap();
    assert_eq!(DynAny::new(&without_id).unwrap(), value);
}

#[test]
fn the_discriminator_selects_the_active_member() {
    // 16.2.7
    let mut value = default_value(&choice());
    let mut choice = value.as_union().unwrap();
    assert_eq!((choice.discriminator().long(), choice.discriminator_kind()), (Ok(1), Ok(TcKind::Long)));
    choice.member_mut().unwrap().insert_string("kept").unwrap();
    choice.set_discriminator(&long(2)).unwrap();
    assert_eq!(choice.member().unwrap().string(), Ok("kept"), "2 selects the same member");
    choice.set_discriminator(&long(5)).unwrap();
    assert_eq!((choice.member_name(), choice.member_kind()), (Ok("point".to_owned()), Ok(TcKind::Struct)));
    assert_eq!(choice.member(), Ok(&default_value(&point())), "another member begins with its default value");
    assert_eq!((value.position(), value.component_count()), (Some(1), 2));
    let mut choice = value.as_union().unwrap();
    choice.set_discriminator(&long(9)).unwrap();
    assert!(choice.has_no_active_member());
    assert!(matches!(choice.member(), Err(DynAnyError::InvalidValue(_))));
    assert!(matches!(choice.member_mut(), Err(DynAnyError::InvalidValue(_))));
    assert!(matches!(choice.member_name(), Err(DynAnyError::InvalidValue(_))));
    assert!(matches!(choice.member_kind(), Err(DynAnyError::InvalidValue(_))));
    assert!(matches!(choice.set_discriminator(&text("5")), Err(DynAnyError::TypeMismatch { .. })));
    assert_eq!((value.position(), value.component_count()), (Some(0), 1));
    assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap(), value);
}

#[test]
fn inserting_a_discriminator_changes_the_active_member() {
    let mut value = default_value(&choice());
    value.rewind();
    assert_eq!(value.current_component().unwrap().unwrap().long(), Ok(1));
    assert!(matches!(value.current_component_mut(), Err(DynAnyError::TypeMismatch { .. })));
    value.insert_long(5).unwrap();
    assert_eq!(value.position(), Some(0), "inserting does not move");
    assert_eq!(value.as_union().unwrap().member_name(), Ok("point".to_owned()));
}

#[test]
fn the_default_member_covers_values_without_a_label() {
    // 16.2.7
    let mut value = default_value(&always());
    let mut always = value.as_union().unwrap();
    assert_eq!(always.member_name(), Ok("number".to_owned()));
    always.set_to_default_member().unwrap();
    assert_eq!((always.member_name(), always.discriminator().boolean()), (Ok("text".to_owned()), Ok(false)));
    assert!(!always.has_no_active_member());
    assert!(matches!(always.set_to_no_active_member(), Err(DynAnyError::TypeMismatch { .. })));
    assert_eq!((value.position(), value.component_count()), (Some(0), 2));
    assert!(matches!(
        default_value(&choice()).as_union().unwrap().set_to_default_member(),
        Err(DynAnyError::TypeMismatch { .. })
    ));
}

#[test]
fn no_member_is_active_for_an_uncovered_value() {
    // 16.2.7
    let mut value = default_value(&choice());
    value.as_union().unwrap().set_to_no_active_member().unwrap();
    assert!(value.as_union().unwrap().has_no_active_member());
    assert_eq!((value.position(), value.component_count()), (Some(0), 1));
    let mut full = default_value(&full());
    assert!(matches!(full.as_union().unwrap().set_to_no_active_member(), Err(DynAnyError::TypeMismatch { .. })));
    let negative = [(Label::Value(0), "a", TypeCode::LONG), (Label::Value(1), "b", TypeCode::LONG)];
    let mut value = default_value(&TypeCode::union("IDL:U:1.0", "U", &TypeCode::SHORT, &negative).unwrap());
    value.as_union().unwrap().set_to_no_active_member().unwrap();
    assert_eq!(value.as_union().unwrap().discriminator().short(), Ok(2));
}

#[test]
fn unions_may_have_every_type_of_discriminator() {
    let types = [
        TypeCode::BOOLEAN,
        TypeCode::CHAR,
        TypeCode::WCHAR,
        TypeCode::OCTET,
        TypeCode::SHORT,
        TypeCode::USHORT,
        TypeCode::LONG,
        TypeCode::ULONG,
        TypeCode::LONGLONG,
        TypeCode::ULONGLONG,
        colour(),
    ];
    for type_code in types {
        let members = [(Label::Value(1), "one", TypeCode::LONG)];
        let mut value = default_value(&TypeCode::union("IDL:U:1.0", "U", &type_code, &members).unwrap());
        assert_eq!(value.as_union().unwrap().member_name(), Ok("one".to_owned()), "{type_code}");
        assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap(), value, "{type_code}");
        value.as_union().unwrap().set_to_no_active_member().unwrap();
        assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap(), value, "{type_code}");
    }
}

#[test]
fn sequences_change_their_length() {
    // 16.2.8
    let mut value = default_value(&many(&TypeCode::LONG, 4));
    assert_eq!((value.as_sequence().unwrap().length(), value.position()), (0, None));
    value.as_sequence().unwrap().set_length(2).unwrap();
    assert_eq!((value.long_seq(), value.position()), (Ok(vec![0, 0]), Some(0)), "the first new one is current");
    value.insert_long_seq(&[1, 2]).unwrap();
    value.seek(9);
    value.as_sequence().unwrap().set_length(4).unwrap();
    assert_eq!((value.long_seq(), value.position()), (Ok(vec![1, 2, 0, 0]), Some(2)));
    value.as_sequence().unwrap().set_length(3).unwrap();
    assert_eq!(value.position(), Some(2), "it is still there");
    value.as_sequence().unwrap().set_length(2).unwrap();
    assert_eq!((value.long_seq(), value.position()), (Ok(vec![1, 2]), None), "the current element was removed");
    assert!(matches!(value.as_sequence().unwrap().set_length(5), Err(DynAnyError::InvalidValue(_))));
    value.as_sequence().unwrap().set_length(0).unwrap();
    assert_eq!((value.component_count(), value.position()), (0, None));
}

#[test]
fn sequences_get_and_set_all_elements() {
    // 16.2.8
    let mut value = default_value(&many(&TypeCode::LONG, 2));
    let elements = [Any::new(1_i32).unwrap(), Any::new(2_i32).unwrap()];
    let mut sequence = value.as_sequence().unwrap();
    sequence.set_elements(&elements).unwrap();
    assert_eq!(sequence.elements().unwrap(), elements);
    assert_eq!(sequence.elements_as_dyn_any(), [long(1), long(2)]);
    assert!(matches!(sequence.set_elements(&[Any::new("1").unwrap()]), Err(DynAnyError::TypeMismatch { .. })));
    assert!(matches!(
        sequence.set_elements_as_dyn_any(&[long(1), long(2), long(3)]),
        Err(DynAnyError::InvalidValue(_))
    ));
    sequence.set_elements_as_dyn_any(&[long(3)]).unwrap();
    assert_eq!((value.long_seq(), value.position()), (Ok(vec![3]), Some(0)));
    value.as_sequence().unwrap().set_elements(&[]).unwrap();
    assert_eq!(value.position(), None);
}

#[test]
fn arrays_get_and_set_all_elements() {
    // 16.2.9
    let mut value = default_value(&TypeCode::array(&TypeCode::LONG, 2).unwrap());
    let elements = [Any::new(1_i32).unwrap(), Any::new(2_i32).unwrap()];
    let mut array = value.as_array().unwrap();
    array.set_elements(&elements).unwrap();
    assert_eq!(array.elements().unwrap(), elements);
    array.set_elements_as_dyn_any(&[long(3), long(4)]).unwrap();
    assert_eq!(array.elements_as_dyn_any(), [long(3), long(4)]);
    assert!(matches!(array.set_elements(&elements[..1]), Err(DynAnyError::InvalidValue(_))));
    assert!(matches!(array.set_elements_as_dyn_any(&[text("a"), text("b")]), Err(DynAnyError::TypeMismatch { .. })));
    assert_eq!(value.long_seq(), Ok(vec![3, 4]), "unchanged");
}

#[test]
fn values_may_be_null() {
    // 16.2.10, 16.2.11
    let mut value = default_value(&derived());
    assert_eq!((value.component_count(), value.position(), value.current_component()), (0, None, Ok(None)));
    assert!(matches!(value.as_value().unwrap().members(), Err(DynAnyError::InvalidValue(_))));
    assert!(matches!(value.as_value().unwrap().members_as_dyn_any(), Err(DynAnyError::InvalidValue(_))));
    value.as_value().unwrap().set_to_value().unwrap();
    assert_eq!((value.component_count(), value.position()), (2, Some(0)));
    value.insert_long(4).unwrap();
    value.as_value().unwrap().set_to_value().unwrap();
    assert_eq!(value.long(), Ok(4), "it is a value already");
    assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap(), value);
    value.as_value().unwrap().set_to_null();
    assert!(value.as_value().unwrap().is_null());
    assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap(), value);
}

#[test]
fn the_state_of_a_value_begins_with_inherited_members() {
    // 16.2.11
    let mut value = default_value(&derived());
    let pair = |id: &str, value: DynAny| DynNamePair { id: id.to_owned(), value };
    let members = [pair("id", long(1)), pair("note", text("n"))];
    let mut derived = value.as_value().unwrap();
    derived.set_members_as_dyn_any(&members).unwrap();
    assert!(!derived.is_null(), "null became a value");
    assert_eq!(derived.members_as_dyn_any().unwrap(), members);
    let anys = derived.members().unwrap();
    derived.set_members(&anys).unwrap();
    assert!(matches!(derived.set_members(&[anys[1].clone(), anys[0].clone()]), Err(DynAnyError::TypeMismatch { .. })));
    assert!(matches!(derived.set_members(&anys[..1]), Err(DynAnyError::InvalidValue(_))));
    value.next();
    let derived = value.as_value().unwrap();
    assert_eq!(
        (derived.current_member_name(), derived.current_member_kind()),
        (Ok("note".to_owned()), Ok(TcKind::String))
    );
    assert!(matches!(
        default_value(&derived_of_nothing()).as_value().unwrap().current_member_name(),
        Err(DynAnyError::TypeMismatch { .. })
    ));
}

fn derived_of_nothing() -> TypeCode {
    TypeCode::value::<&str>("IDL:Nothing:1.0", "Nothing", spandrel_cdr::ValueModifier::None, None, &[]).unwrap()
}

#[test]
fn a_chunked_derived_value_is_truncated_to_its_base() {
    // Part 2, 9.3.4.3: tag (chunks, list of ids), two ids, a chunk with the state of both types, the end tag.
    let any = Any::write(base(), |out| {
        out.u32(0x7fff_ff0e);
        out.u32(2);
        out.short_str("IDL:Derived:1.0")?;
        out.short_str("IDL:Base:1.0")?;
        out.u32(10);
        out.u32(7);
        out.short_str("n")?;
        out.align(4);
        out.i32(-1);
        Ok(())
    });
    let any = any.unwrap();
    let mut value = DynAny::new(&any).unwrap();
    assert_eq!((value.component_count(), value.long()), (1, Ok(7)));
    assert!(!value.as_value().unwrap().is_null());
    // Except without truncation.
    assert_eq!(DynAny::without_truncation(&any).unwrap_err(), DynAnyError::MustTruncate);
    let whole = value.to_any().unwrap();
    assert_eq!(DynAny::without_truncation(&whole).unwrap(), value);
}

#[test]
fn a_type_that_inherits_from_itself_ends_in_an_error() {
    let itself = TypeCode::recursive("IDL:Ouroboros:1.0").unwrap();
    let members = [("id", TypeCode::LONG, spandrel_cdr::Visibility::Public)];
    let none = spandrel_cdr::ValueModifier::None;
    let type_code = TypeCode::value("IDL:Ouroboros:1.0", "Ouroboros", none, Some(&itself), &members).unwrap();
    let mut value = default_value(&type_code);
    assert!(matches!(value.as_value().unwrap().set_to_value(), Err(DynAnyError::TooLarge { .. })));
    let octets = Any::write(type_code, |out| {
        out.u32(0x7fff_ff00);
        (0..10).for_each(|_| out.u32(1));
        Ok(())
    });
    assert!(octets.is_err());
}

#[test]
fn a_box_holds_one_value() {
    // 16.2.12
    let mut value = default_value(&boxed());
    let mut it = value.as_value_box().unwrap();
    assert!(matches!(it.boxed_value(), Err(DynAnyError::InvalidValue(_))));
    assert!(matches!(it.boxed_value_as_dyn_any(), Err(DynAnyError::InvalidValue(_))));
    it.set_boxed_value(&Any::new("held").unwrap()).unwrap();
    assert_eq!((it.boxed_value(), it.is_null()), (Ok(Any::new("held").unwrap()), false));
    it.set_boxed_value_as_dyn_any(&text("other")).unwrap();
    assert_eq!(it.boxed_value_as_dyn_any(), Ok(&text("other")));
    assert!(matches!(it.set_boxed_value(&Any::new(1_i32).unwrap()), Err(DynAnyError::TypeMismatch { .. })));
    it.set_to_value().unwrap();
    assert_eq!(it.boxed_value_as_dyn_any(), Ok(&text("other")), "it holds one already");
    assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap(), value);
    let mut it = value.as_value_box().unwrap();
    it.set_to_null();
    assert!(it.is_null());
    it.set_to_value().unwrap();
    assert_eq!(it.boxed_value_as_dyn_any(), Ok(&text("")));
}
