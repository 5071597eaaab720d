//! Operations of values of all types (CORBA 3.3 Part 1, 16.2.2 and 16.2.3).

use super::support::{always, boxed, choice, colour, derived, empty, many, point};
use crate::{DynAny, DynAnyError};
use spandrel_cdr::{Any, Char, Ior, LongDouble, TaggedProfile, TcKind, TypeCode, WString};

fn default_value(type_code: &TypeCode) -> DynAny {
    DynAny::of_type(type_code).unwrap()
}

fn array(type_code: &TypeCode, len: u32) -> TypeCode {
    TypeCode::array(type_code, len).unwrap()
}

#[test]
fn create_from_a_type_gives_the_default_value() {
    // 16.2.2: the table of default values.
    assert_eq!(default_value(&TypeCode::BOOLEAN).boolean(), Ok(false));
    assert_eq!(default_value(&TypeCode::LONG).long(), Ok(0));
    assert_eq!(default_value(&TypeCode::DOUBLE).double(), Ok(0.0));
    assert_eq!(default_value(&TypeCode::CHAR).char(), Ok(Char(0)));
    assert_eq!(default_value(&TypeCode::WCHAR).wchar(), Ok('\0'));
    assert_eq!(default_value(&TypeCode::string(0)).string(), Ok(""));
    assert_eq!(default_value(&TypeCode::wstring(5)).wstring(), Ok(""));
    assert_eq!(default_value(&TypeCode::ANY).any().unwrap().type_code().kind(), TcKind::Null);
    assert_eq!(default_value(&TypeCode::TYPE_CODE).typecode().unwrap().kind(), TcKind::Null);
    assert!(default_value(&TypeCode::object()).reference().unwrap().is_nil());
    assert_eq!(default_value(&colour()).as_enum().unwrap().as_string(), Ok("red".to_owned()));
    assert_eq!(default_value(&many(&TypeCode::LONG, 0)).component_count(), 0);
    assert_eq!(default_value(&array(&TypeCode::LONG, 3)).long_seq(), Ok(vec![0, 0, 0]));
    assert_eq!(
        default_value(&point()).components(),
        [default_value(&TypeCode::LONG), default_value(&TypeCode::string(0))]
    );
    assert_eq!(default_value(&choice()).as_union().unwrap().member_name(), Ok("text".to_owned()));
    assert!(default_value(&derived()).as_value().unwrap().is_null());
    assert!(default_value(&boxed()).as_value_box().unwrap().is_null());
    assert_eq!(default_value(&TypeCode::fixed(5, 2).unwrap()).as_fixed().unwrap().value(), "0");
}

#[test]
fn some_types_have_no_dynamic_values() {
    let native = TypeCode::native("IDL:Handle:1.0", "Handle").unwrap();
    for type_code in [native, TypeCode::PRINCIPAL] {
        let kind = type_code.kind();
        assert_eq!(DynAny::of_type(&type_code), Err(DynAnyError::InconsistentTypeCode(kind)));
    }
}

#[test]
fn values_beyond_the_component_limit_are_rejected() {
    let mut type_code = TypeCode::OCTET;
    for _ in 0..6 {
        type_code = array(&type_code, 1000);
    }
    assert!(matches!(DynAny::of_type(&type_code), Err(DynAnyError::TooLarge { .. })));
    let octets = Any::new(vec![7_u8; 100]).unwrap();
    assert_eq!(DynAny::with_limit(&octets, 100), Err(DynAnyError::TooLarge { limit: 100 }));
    assert_eq!(DynAny::with_limit(&octets, 101).unwrap().octet_seq(), Ok(vec![7; 100]));
    let mut sequence = default_value(&many(&TypeCode::OCTET, 0));
    assert!(matches!(sequence.as_sequence().unwrap().set_length(u32::MAX), Err(DynAnyError::TooLarge { .. })));
}

#[test]
fn the_type_keeps_its_aliases_and_never_changes() {
    // 16.2.3.1
    let aliased = many(&TypeCode::LONG, 0);
    let mut value = default_value(&aliased);
    assert_eq!(value.type_code().kind(), TcKind::Alias);
    value.from_any(&Any::new(vec![1_i32]).unwrap()).unwrap();
    assert!(value.type_code().equal(&aliased));
    assert!(value.to_any().unwrap().type_code().equal(&aliased));
}

#[test]
fn assign_and_from_any_require_an_equivalent_type() {
    // 16.2.3.2, 16.2.3.3
    let mut value = default_value(&TypeCode::LONG);
    let mut other = default_value(&TypeCode::LONG);
    other.insert_long(7).unwrap();
    value.assign(&other).unwrap();
    assert_eq!(value.long(), Ok(7));
    assert!(matches!(value.assign(&default_value(&TypeCode::ULONG)), Err(DynAnyError::TypeMismatch { .. })));
    value.from_any(&Any::new(8_i32).unwrap()).unwrap();
    assert!(matches!(value.from_any(&Any::new(8_i16).unwrap()), Err(DynAnyError::TypeMismatch { .. })));
    assert_eq!(value.long(), Ok(8), "unchanged");
}

#[test]
fn assignment_resets_the_current_position() {
    let mut value = default_value(&point());
    value.seek(1);
    value.assign(&default_value(&point())).unwrap();
    assert_eq!(value.position(), Some(0));
}

#[test]
fn to_any_restores_the_original_any() {
    // 16.2.3.4
    let any = Any::new(vec!["a".to_owned(), "b".to_owned()]).unwrap();
    assert_eq!(DynAny::new(&any).unwrap().to_any().unwrap(), any);
    let mut nul = default_value(&TypeCode::string(0));
    nul.insert_string("a\0b").unwrap();
    assert!(matches!(nul.to_any(), Err(DynAnyError::Octets(_))));
}

#[test]
fn equality_compares_types_and_components_without_positions() {
    // 16.2.3.5
    let (mut a, b) = (default_value(&point()), default_value(&point()));
    a.seek(1);
    assert_eq!(a, b);
    a.insert_string("x").unwrap();
    assert_ne!(a, b);
    assert_eq!(
        default_value(&many(&TypeCode::LONG, 0)),
        default_value(&TypeCode::sequence(&TypeCode::LONG, 0).unwrap())
    );
    assert_ne!(default_value(&TypeCode::LONG), default_value(&TypeCode::ULONG));
}

#[test]
fn a_copy_shares_nothing() {
    // 16.2.3.7
    let mut original = default_value(&point());
    let copy = original.clone();
    original.insert_long(5).unwrap();
    assert_eq!((original.long(), copy.long()), (Ok(5), Ok(0)));
}

#[test]
fn the_current_position_moves_over_the_components() {
    // 16.2.3.9
    let mut value = default_value(&point());
    assert_eq!((value.component_count(), value.position()), (2, Some(0)));
    assert!(value.next());
    assert_eq!(value.current_component().unwrap().unwrap().string(), Ok(""));
    assert!(!value.next(), "beyond the last");
    assert_eq!((value.position(), value.current_component()), (None, Ok(None)));
    assert!(value.next(), "from -1 to 0");
    assert!(value.seek(1) && !value.seek(2));
    assert_eq!(value.position(), None);
    assert!(value.rewind());
    assert_eq!(value.position(), Some(0));
}

#[test]
fn values_without_components_have_no_current_one() {
    // 16.2.3.9: of an empty sequence none is current; a long has no components.
    let mut nothing = default_value(&empty());
    assert_eq!((nothing.component_count(), nothing.position(), nothing.rewind()), (0, None, false));
    assert_eq!(nothing.current_component(), Ok(None));
    let mut long = default_value(&TypeCode::LONG);
    assert_eq!((long.component_count(), long.seek(0)), (0, false));
    assert!(matches!(long.current_component(), Err(DynAnyError::TypeMismatch { .. })));
    assert!(matches!(default_value(&colour()).current_component(), Err(DynAnyError::TypeMismatch { .. })));
}

#[test]
fn a_component_is_changed_in_place() {
    let mut value = default_value(&array(&point(), 2));
    value.seek(1);
    let inner = value.current_component_mut().unwrap().unwrap();
    inner.insert_long(3).unwrap();
    inner.next();
    inner.insert_string("three").unwrap();
    let points = value.as_array().unwrap().elements().unwrap();
    let mut second = DynAny::new(&points[1]).unwrap();
    assert_eq!(second.long(), Ok(3));
    second.next();
    assert_eq!(second.string(), Ok("three"));
}

macro_rules! every_basic_type {
    ($($type_code:expr, $insert:ident, $get:ident, $value:expr;)*) => {
        #[test]
        fn every_basic_type_is_inserted_and_extracted() {
            // 16.2.3.8
            $({
                let mut value = default_value(&$type_code);
                value.$insert($value).unwrap();
                assert_eq!(value.$get(), Ok($value), stringify!($insert));
                // By way of its octets.
                assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap().$get(), Ok($value));
                // In a struct, at the current position, which does not move.
                let outer = TypeCode::structure("IDL:S:1.0", "S", &[("a", TypeCode::OCTET), ("b", $type_code)]).unwrap();
                let mut outer = default_value(&outer);
                assert!(outer.next());
                outer.$insert($value).unwrap();
                assert_eq!((outer.$get(), outer.position()), (Ok($value), Some(1)));
                // For this type only.
                let mut other = default_value(&colour());
                assert!(matches!(other.$insert($value), Err(DynAnyError::TypeMismatch { .. })));
                assert!(matches!(other.$get().unwrap_err(), DynAnyError::TypeMismatch { .. }));
                // Without a current component, or with one that has components itself.
                outer.seek(9);
                assert!(matches!(outer.$insert($value), Err(DynAnyError::InvalidValue(_))));
                assert!(matches!(outer.$get(), Err(DynAnyError::InvalidValue(_))));
                let mut nested = default_value(&array(&point(), 1));
                assert!(matches!(nested.$insert($value), Err(DynAnyError::TypeMismatch { .. })));
            })*
        }
    };
}

every_basic_type! {
    TypeCode::BOOLEAN, insert_boolean, boolean, true;
    TypeCode::OCTET, insert_octet, octet, 7;
    TypeCode::CHAR, insert_char, char, Char(b'x');
    TypeCode::WCHAR, insert_wchar, wchar, '\u{20ac}';
    TypeCode::SHORT, insert_short, short, -2;
    TypeCode::USHORT, insert_ushort, ushort, 2;
    TypeCode::LONG, insert_long, long, -3;
    TypeCode::ULONG, insert_ulong, ulong, 3;
    TypeCode::LONGLONG, insert_longlong, longlong, -4;
    TypeCode::ULONGLONG, insert_ulonglong, ulonglong, 4;
    TypeCode::FLOAT, insert_float, float, 1.5;
    TypeCode::DOUBLE, insert_double, double, 2.5;
    TypeCode::LONGDOUBLE, insert_longdouble, longdouble, LongDouble::from(3.5);
    TypeCode::string(0), insert_string, string, "text";
    TypeCode::wstring(0), insert_wstring, wstring, "5 \u{20ac}";
    TypeCode::ANY, insert_any, any, Any::new(5_i32).unwrap();
    TypeCode::TYPE_CODE, insert_typecode, typecode, point();
}

#[test]
fn references_are_inserted_and_extracted() {
    let profile = TaggedProfile { tag: 0, data: vec![0, 1, 2] };
    let ior = Ior { type_id: "IDL:X:1.0".to_owned(), profiles: vec![profile] };
    let mut value = default_value(&TypeCode::object());
    value.insert_reference(&ior).unwrap();
    assert_eq!(value.reference(), Ok(&ior));
    assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap().reference(), Ok(&ior));
    assert!(matches!(default_value(&TypeCode::LONG).insert_reference(&ior), Err(DynAnyError::TypeMismatch { .. })));
}

#[test]
fn an_any_is_inserted_and_extracted() {
    let mut value = default_value(&TypeCode::ANY);
    let mut inner = default_value(&point());
    inner.insert_long(9).unwrap();
    value.insert_dyn_any(&inner).unwrap();
    assert_eq!(value.dyn_any(), Ok(inner));
    assert!(matches!(default_value(&TypeCode::LONG).dyn_any(), Err(DynAnyError::TypeMismatch { .. })));
}

#[test]
fn strings_respect_their_bounds() {
    let mut narrow = default_value(&TypeCode::string(3));
    narrow.insert_string("abc").unwrap();
    assert!(matches!(narrow.insert_string("abcd"), Err(DynAnyError::InvalidValue(_))));
    assert_eq!(narrow.string(), Ok("abc"));
    let mut wide = default_value(&TypeCode::wstring(2));
    wide.insert_wstring("\u{1f600}\u{1f600}").unwrap();
    assert!(matches!(wide.insert_wstring("abc"), Err(DynAnyError::InvalidValue(_))));
}

macro_rules! every_sequence {
    ($($type_code:expr, $insert:ident, $get:ident, $values:expr;)*) => {
        #[test]
        fn sequences_and_arrays_of_every_basic_type_are_inserted_and_extracted_whole() {
            // 16.2.3.8
            $({
                let values = $values;
                let mut sequence = default_value(&many(&$type_code, 3));
                sequence.$insert(&values).unwrap();
                assert_eq!((sequence.$get(), sequence.position()), (Ok(values.to_vec()), Some(0)), stringify!($insert));
                let mut array = default_value(&array(&$type_code, 2));
                array.$insert(&values).unwrap();
                assert_eq!(DynAny::new(&array.to_any().unwrap()).unwrap().$get(), Ok(values.to_vec()));
                // A number of elements that the type does not permit.
                assert!(matches!(array.$insert(&values[..1]), Err(DynAnyError::InvalidValue(_))));
                let four = [values, values].concat();
                assert!(matches!(sequence.$insert(&four), Err(DynAnyError::InvalidValue(_))));
                // Of another type.
                assert!(matches!(default_value(&many(&colour(), 0)).$insert(&values), Err(DynAnyError::TypeMismatch { .. })));
                assert!(matches!(default_value(&many(&colour(), 0)).$get(), Err(DynAnyError::TypeMismatch { .. })));
                assert!(matches!(default_value(&$type_code).$get(), Err(DynAnyError::TypeMismatch { .. })));
                // As a member.
                let members = [("a", many(&$type_code, 0)), ("b", TypeCode::OCTET)];
                let mut outer = default_value(&TypeCode::structure("IDL:S:1.0", "S", &members).unwrap());
                outer.$insert(&values).unwrap();
                assert_eq!(outer.$get(), Ok(values.to_vec()));
                outer.next();
                assert!(matches!(outer.$get(), Err(DynAnyError::TypeMismatch { .. })));
                outer.next();
                assert!(matches!(outer.$get(), Err(DynAnyError::InvalidValue(_))));
            })*
        }
    };
}

every_sequence! {
    TypeCode::BOOLEAN, insert_boolean_seq, boolean_seq, [true, false];
    TypeCode::OCTET, insert_octet_seq, octet_seq, [1, 2];
    TypeCode::CHAR, insert_char_seq, char_seq, [Char(1), Char(2)];
    TypeCode::WCHAR, insert_wchar_seq, wchar_seq, ['a', '\u{20ac}'];
    TypeCode::SHORT, insert_short_seq, short_seq, [-1, 2];
    TypeCode::USHORT, insert_ushort_seq, ushort_seq, [1, 2];
    TypeCode::LONG, insert_long_seq, long_seq, [-1, 2];
    TypeCode::ULONG, insert_ulong_seq, ulong_seq, [1, 2];
    TypeCode::LONGLONG, insert_longlong_seq, longlong_seq, [-1, 2];
    TypeCode::ULONGLONG, insert_ulonglong_seq, ulonglong_seq, [1, 2];
    TypeCode::FLOAT, insert_float_seq, float_seq, [0.5, 2.0];
    TypeCode::DOUBLE, insert_double_seq, double_seq, [0.5, 2.0];
    TypeCode::LONGDOUBLE, insert_longdouble_seq, longdouble_seq, [LongDouble::from(0.5), LongDouble::from(2.0)];
}

#[test]
fn defaults_of_all_types_survive_encoding() {
    for type_code in [point(), choice(), always(), colour(), derived(), boxed(), empty(), many(&choice(), 4)] {
        let value = default_value(&type_code);
        assert_eq!(DynAny::new(&value.to_any().unwrap()).unwrap(), value, "{type_code}");
    }
    assert_eq!(default_value(&TypeCode::NULL).to_any().unwrap(), Any::default());
    assert_eq!(
        Any::new(WString::from("a")).map(|any| DynAny::new(&any).unwrap().wstring().map(str::to_owned)),
        Ok(Ok("a".to_owned()))
    );
}
