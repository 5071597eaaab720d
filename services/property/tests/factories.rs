//! The factories, and the constraints of sets.

use spandrel::services::cos_property_service::property_set::DefinePropertyError;
use spandrel::services::cos_property_service::property_set_def::{DefinePropertyWithModeError, SetPropertyModeError};
use spandrel::services::cos_property_service::{
    ConstraintNotSupportedError, ExceptionReason, PropertyDef, PropertyModeType, PropertySetDef,
};
use spandrel::types::{Any, TypeCode};

use crate::support::{Served, def, failures, long, property, text};

#[test]
fn an_initial_set_is_created_whole_or_not_at_all() {
    let served = Served::transient();
    let initial = [property("a", long(1)), property("b", text("x"))];
    let set = served.factory.create_initial_propertyset(&initial).unwrap().unwrap();
    assert_eq!(set.get_all_properties(10).unwrap().0, initial);
    let before = served.service.as_ref().unwrap().sets();
    let wrong = [property("a", long(1)), property("", long(1)), property("a", text("x"))];
    let outcome = served.factory.create_initial_propertyset(&wrong).map(drop);
    let expected = [("", ExceptionReason::InvalidPropertyName), ("a", ExceptionReason::ConflictingProperty)];
    assert_eq!(failures(outcome), expected.map(|(name, reason)| (name.to_owned(), reason)));
    let wrong = [def("a", long(1), PropertyModeType::Undefined)];
    let outcome = served.def_factory.create_initial_propertysetdef(&wrong).map(drop);
    assert_eq!(failures(outcome), [("a".to_owned(), ExceptionReason::UnsupportedMode)]);
    assert_eq!(served.service.as_ref().unwrap().sets(), before);
}

fn constrained(served: &Served, types: &[TypeCode], defs: &[PropertyDef]) -> PropertySetDef {
    served.def_factory.create_constrained_propertysetdef(types, defs).unwrap().unwrap()
}

#[test]
fn a_set_has_the_types_and_properties_that_it_allows() {
    let served = Served::transient();
    let types = constrained(&served, &[TypeCode::LONG, TypeCode::STRING], &[]);
    types.define_property("a", &long(1)).unwrap();
    types.define_property("b", &text("x")).unwrap();
    let wrong = types.define_property("c", &Any::new(true).unwrap()).unwrap_err();
    assert!(matches!(wrong, DefinePropertyError::UnsupportedTypeCode(_)), "{wrong}");
    assert_eq!(types.get_allowed_property_types().unwrap(), [TypeCode::LONG, TypeCode::STRING]);
    assert!(types.get_allowed_properties().unwrap().is_empty());

    let defs =
        [def("size", long(0), PropertyModeType::ReadOnly), def("any", Any::default(), PropertyModeType::Undefined)];
    let set = constrained(&served, &[], &defs);
    assert_eq!(set.get_number_of_properties().unwrap(), 0);
    assert_eq!(set.get_allowed_properties().unwrap(), defs);
    let wrong = set.define_property("other", &long(1)).unwrap_err();
    assert!(matches!(wrong, DefinePropertyError::UnsupportedProperty(_)), "{wrong}");
    let wrong = set.define_property("size", &text("x")).unwrap_err();
    assert!(matches!(wrong, DefinePropertyError::UnsupportedTypeCode(_)), "{wrong}");
    let wrong = set.define_property_with_mode("size", &long(1), PropertyModeType::Normal).unwrap_err();
    assert!(matches!(wrong, DefinePropertyWithModeError::UnsupportedMode(_)), "{wrong}");
    set.define_property("size", &long(1)).unwrap();
    assert_eq!(set.get_property_mode("size").unwrap(), PropertyModeType::ReadOnly);
    let wrong = set.set_property_mode("size", PropertyModeType::FixedReadonly).unwrap_err();
    assert!(matches!(wrong, SetPropertyModeError::UnsupportedMode(_)), "{wrong}");
    set.define_property("any", &text("x")).unwrap();
    assert_eq!(set.get_property_mode("any").unwrap(), PropertyModeType::Normal);
    set.define_property_with_mode("any", &text("y"), PropertyModeType::FixedNormal).unwrap();
}

#[test]
fn allowed_properties_of_a_set_without_modes_are_fixed() {
    let served = Served::transient();
    let allowed = [property("size", long(0))];
    let set = served.factory.create_constrained_propertyset(&[TypeCode::LONG], &allowed).unwrap().unwrap();
    set.define_property("size", &long(1)).unwrap();
    set.define_property("size", &long(2)).unwrap();
    set.delete_property("size").unwrap_err();
    set.define_property("other", &long(2)).unwrap_err();
}

#[test]
fn constraints_that_contradict_each_other_are_not_supported() {
    let served = Served::transient();
    let normal = PropertyModeType::Normal;
    for (types, defs) in [
        (vec![], vec![def("", long(0), normal)]),
        (vec![], vec![def("a", long(0), normal), def("b", long(0), normal), def("a", long(0), normal)]),
        (vec![TypeCode::STRING], vec![def("a", long(0), normal)]),
    ] {
        let error = served.def_factory.create_constrained_propertysetdef(&types, &defs).unwrap_err();
        assert!(matches!(error, ConstraintNotSupportedError::ConstraintNotSupported(_)), "{error}");
    }
    let twice = [property("a", long(0)), property("a", long(0))];
    served.factory.create_constrained_propertyset(&[], &twice).unwrap_err();
    assert_eq!(served.service.as_ref().unwrap().sets(), 0);
    constrained(&served, &[TypeCode::STRING], &[def("a", Any::default(), normal)]);
}
