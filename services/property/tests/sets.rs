//! `PropertySet` and `PropertySetDef`: each operation with its exceptions.

use spandrel::services::cos_property_service::property_set::{
    DefinePropertyError, DeletePropertyError, GetPropertyValueError, IsPropertyDefinedError,
};
use spandrel::services::cos_property_service::property_set_def::{
    DefinePropertyWithModeError, GetPropertyModeError, SetPropertyModeError,
};
use spandrel::services::cos_property_service::{ExceptionReason, PropertyMode, PropertyModeType, PropertySetDef};
use spandrel::types::{Any, TypeCode};

use PropertyModeType::{FixedNormal, FixedReadonly, Normal, ReadOnly, Undefined};

use crate::support::{Served, def, failures, long, names, property, text};

#[test]
fn a_property_is_added_or_its_value_is_changed() {
    let served = Served::transient();
    let set = served.set();
    assert_eq!(set.get_number_of_properties().unwrap(), 0);
    set.define_property("ppm", &long(20)).unwrap();
    set.define_property("name", &text("laser")).unwrap();
    set.define_property("ppm", &long(35)).unwrap();
    assert_eq!(set.get_number_of_properties().unwrap(), 2);
    assert_eq!(set.get_property_value("ppm").unwrap(), long(35));
    assert!(set.is_property_defined("name").unwrap() && !set.is_property_defined("Name").unwrap());
}

#[test]
fn the_type_of_a_property_is_changed_by_its_deletion_alone() {
    let served = Served::transient();
    let set = served.set();
    set.define_property("p", &long(1)).unwrap();
    let conflict = set.define_property("p", &text("x")).unwrap_err();
    assert!(matches!(conflict, DefinePropertyError::ConflictingProperty(_)), "{conflict}");
    assert_eq!(set.get_property_value("p").unwrap(), long(1));
    // An alias is the same type.
    let alias = TypeCode::alias("IDL:Count:1.0", "Count", &TypeCode::LONG).unwrap();
    set.define_property("p", &Any::with_type(alias, &2).unwrap()).unwrap();
    set.delete_property("p").unwrap();
    set.define_property("p", &text("x")).unwrap();
}

#[test]
fn the_empty_name_is_invalid_in_each_operation() {
    let served = Served::transient();
    let set = served.set_def();
    assert!(matches!(set.define_property("", &long(1)), Err(DefinePropertyError::InvalidPropertyName(_))));
    assert!(matches!(set.get_property_value(""), Err(GetPropertyValueError::InvalidPropertyName(_))));
    assert!(matches!(set.delete_property(""), Err(DeletePropertyError::InvalidPropertyName(_))));
    assert!(matches!(set.is_property_defined(""), Err(IsPropertyDefinedError::InvalidPropertyName(_))));
    assert!(matches!(set.get_property_mode(""), Err(GetPropertyModeError::InvalidPropertyName(_))));
    assert!(matches!(set.set_property_mode("", Normal), Err(SetPropertyModeError::InvalidPropertyName(_))));
    let defined = set.define_property_with_mode("", &long(1), Normal);
    assert!(matches!(defined, Err(DefinePropertyWithModeError::InvalidPropertyName(_))));
    assert_eq!(set.get_number_of_properties().unwrap(), 0);
}

#[test]
fn a_property_that_does_not_exist_is_not_found() {
    let served = Served::transient();
    let set = served.set_def();
    assert!(matches!(set.get_property_value("p"), Err(GetPropertyValueError::PropertyNotFound(_))));
    assert!(matches!(set.delete_property("p"), Err(DeletePropertyError::PropertyNotFound(_))));
    assert!(matches!(set.get_property_mode("p"), Err(GetPropertyModeError::PropertyNotFound(_))));
    assert!(matches!(set.set_property_mode("p", Normal), Err(SetPropertyModeError::PropertyNotFound(_))));
}

/// A set with a property of each mode, named by it.
fn with_all_modes(served: &Served) -> PropertySetDef {
    let modes =
        [("normal", Normal), ("read_only", ReadOnly), ("fixed_normal", FixedNormal), ("fixed_readonly", FixedReadonly)];
    let defs: Vec<_> = modes.iter().map(|(name, mode)| def(name, long(0), *mode)).collect();
    served.def_factory.create_initial_propertysetdef(&defs).unwrap().unwrap()
}

#[test]
fn modes_forbid_changes_of_the_value_and_deletion() {
    let served = Served::transient();
    let set = with_all_modes(&served);
    for (name, is_changeable, is_deletable) in [
        ("normal", true, true),
        ("read_only", false, true),
        ("fixed_normal", true, false),
        ("fixed_readonly", false, false),
    ] {
        let mode = set.get_property_mode(name).unwrap();
        match set.define_property(name, &long(1)) {
            Ok(()) => assert!(is_changeable, "{name}"),
            Err(DefinePropertyError::ReadOnlyProperty(_)) => assert!(!is_changeable, "{name}"),
            Err(other) => panic!("{other}"),
        }
        assert_eq!(set.get_property_value(name).unwrap(), long(i32::from(is_changeable)));
        assert_eq!(set.get_property_mode(name).unwrap(), mode, "a new value changes no mode");
        match set.delete_property(name) {
            Ok(()) => assert!(is_deletable, "{name}"),
            Err(DeletePropertyError::FixedProperty(_)) => assert!(!is_deletable, "{name}"),
            Err(other) => panic!("{other}"),
        }
        assert_eq!(set.is_property_defined(name).unwrap(), !is_deletable);
    }
}

#[test]
fn a_mode_is_replaced_only_by_one_that_allows_less() {
    let served = Served::transient();
    let modes =
        [("normal", Normal), ("read_only", ReadOnly), ("fixed_normal", FixedNormal), ("fixed_readonly", FixedReadonly)];
    for (from, before) in modes {
        for (_, after) in modes {
            let set = with_all_modes(&served);
            let is_allowed = before == after || before == Normal || after == FixedReadonly;
            match set.set_property_mode(from, after) {
                Ok(()) => assert!(is_allowed, "{before:?} to {after:?}"),
                Err(SetPropertyModeError::UnsupportedMode(_)) => assert!(!is_allowed, "{before:?} to {after:?}"),
                Err(other) => panic!("{other}"),
            }
            let expected = if is_allowed { after } else { before };
            assert_eq!(set.get_property_mode(from).unwrap(), expected);
        }
    }
    let set = with_all_modes(&served);
    assert!(matches!(set.set_property_mode("normal", Undefined), Err(SetPropertyModeError::UnsupportedMode(_))));
    let undefined = set.define_property_with_mode("new", &long(1), Undefined);
    assert!(matches!(undefined, Err(DefinePropertyWithModeError::UnsupportedMode(_))));
    let normal = set.define_property_with_mode("fixed_normal", &long(1), Normal);
    assert!(matches!(normal, Err(DefinePropertyWithModeError::UnsupportedMode(_))));
    let read_only = set.define_property_with_mode("read_only", &long(1), ReadOnly);
    assert!(matches!(read_only, Err(DefinePropertyWithModeError::ReadOnlyProperty(_))));
    let conflict = set.define_property_with_mode("fixed_readonly", &text(""), FixedReadonly);
    assert!(matches!(conflict, Err(DefinePropertyWithModeError::ConflictingProperty(_))));
    set.define_property_with_mode("fixed_normal", &long(1), FixedReadonly).unwrap();
    assert_eq!(set.get_property_mode("fixed_normal").unwrap(), FixedReadonly);
}

#[test]
fn several_properties_fail_in_the_order_of_the_request_and_the_others_are_defined() {
    let served = Served::transient();
    let set = with_all_modes(&served);
    let outcome = set.define_properties(&[
        property("new", long(1)),
        property("", long(1)),
        property("read_only", long(1)),
        property("normal", text("x")),
        property("new", long(2)),
        property("new", text("x")),
        property("", text("x")),
        property("fixed_normal", long(1)),
    ]);
    let expected = [
        ("", ExceptionReason::InvalidPropertyName),
        ("read_only", ExceptionReason::ReadOnlyProperty),
        ("normal", ExceptionReason::ConflictingProperty),
        ("new", ExceptionReason::ConflictingProperty),
        ("", ExceptionReason::InvalidPropertyName),
    ];
    assert_eq!(failures(outcome), expected.map(|(name, reason)| (name.to_owned(), reason)));
    assert_eq!(set.get_property_value("new").unwrap(), long(2));
    assert_eq!(set.get_property_value("fixed_normal").unwrap(), long(1));

    let outcome = set.define_properties_with_modes(&[
        def("normal", long(3), FixedNormal),
        def("normal", long(4), Normal),
        def("undefined", long(1), Undefined),
        def("other", long(1), ReadOnly),
    ]);
    let expected = [("normal", ExceptionReason::UnsupportedMode), ("undefined", ExceptionReason::UnsupportedMode)];
    assert_eq!(failures(outcome), expected.map(|(name, reason)| (name.to_owned(), reason)));
    assert_eq!(set.get_property_value("normal").unwrap(), long(3));

    let mode = |name: &str, mode| PropertyMode { property_name: name.to_owned(), property_mode: mode };
    let outcome = set.set_property_modes(&[
        mode("new", ReadOnly),
        mode("none", Normal),
        mode("", Normal),
        mode("new", Normal),
        mode("fixed_readonly", FixedReadonly),
    ]);
    let expected = [
        ("none", ExceptionReason::PropertyNotFound),
        ("", ExceptionReason::InvalidPropertyName),
        ("new", ExceptionReason::UnsupportedMode),
    ];
    assert_eq!(failures(outcome), expected.map(|(name, reason)| (name.to_owned(), reason)));
    assert_eq!(set.get_property_mode("new").unwrap(), ReadOnly);

    let outcome = set.delete_properties(&names(&["fixed_normal", "new", "new", "", "read_only"]));
    let expected = [
        ("fixed_normal", ExceptionReason::FixedProperty),
        ("new", ExceptionReason::PropertyNotFound),
        ("", ExceptionReason::InvalidPropertyName),
    ];
    assert_eq!(failures(outcome), expected.map(|(name, reason)| (name.to_owned(), reason)));
    assert!(!set.is_property_defined("read_only").unwrap());
    assert!(failures(set.delete_properties(&[])).is_empty());
}

#[test]
fn a_flag_tells_whether_several_values_or_modes_are_complete() {
    let served = Served::transient();
    let set = served.set_def();
    set.define_property_with_mode("a", &long(1), ReadOnly).unwrap();
    set.define_property("b", &text("x")).unwrap();
    let (is_complete, values) = set.get_properties(&names(&["b", "a", "b"])).unwrap();
    assert!(is_complete);
    assert_eq!(values, [property("b", text("x")), property("a", long(1)), property("b", text("x"))]);
    let (is_complete, values) = set.get_properties(&names(&["a", "none", ""])).unwrap();
    assert!(!is_complete);
    assert_eq!(values.iter().map(|value| &*value.property_name).collect::<Vec<_>>(), ["a", "none", ""]);
    assert_eq!(values[0].property_value, long(1));
    for value in &values[1..] {
        assert_eq!(*value.property_value.type_code(), TypeCode::VOID);
    }
    let (is_complete, modes) = set.get_property_modes(&names(&["a", "b"])).unwrap();
    assert!(is_complete && modes.iter().map(|mode| mode.property_mode).eq([ReadOnly, Normal]));
    let (is_complete, modes) = set.get_property_modes(&names(&["none", "b", ""])).unwrap();
    assert!(!is_complete && modes.iter().map(|mode| mode.property_mode).eq([Undefined, Normal, Undefined]));
    assert_eq!(set.get_properties(&[]).unwrap(), (true, Vec::new()));
}

#[test]
fn all_properties_are_deleted_but_the_fixed_ones() {
    let served = Served::transient();
    let set = with_all_modes(&served);
    assert!(!set.delete_all_properties().unwrap());
    let (remaining, rest) = set.get_all_property_names(10).unwrap();
    assert_eq!(remaining, ["fixed_normal", "fixed_readonly"]);
    assert!(rest.is_none());
    let empty = served.set();
    empty.define_property("a", &long(1)).unwrap();
    assert!(empty.delete_all_properties().unwrap() && empty.delete_all_properties().unwrap());
    assert_eq!(empty.get_number_of_properties().unwrap(), 0);
}

#[test]
fn a_set_without_modes_is_no_set_with_modes() {
    let served = Served::transient();
    let [set, def] = [served.set().into(), spandrel::ObjectRef::from(served.set_def())];
    let set: spandrel::ObjectRef = set;
    let is_def =
        |object: &spandrel::ObjectRef| object.is_a("IDL:omg.org/CosPropertyService/PropertySetDef:1.0").unwrap();
    assert!(!is_def(&set) && is_def(&def));
    assert!(def.is_a("IDL:omg.org/CosPropertyService/PropertySet:1.0").unwrap());
}
