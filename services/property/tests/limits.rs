//! Bounds of sets, and of a service: IMP_LIMIT, and nothing changed.

use spandrel::services::cos_property_service::property_set::DefinePropertyError;
use spandrel::services::cos_property_service::{MultipleExceptionsError, PropertyModeType};
use spandrel::types::TypeCode;
use spandrel::{SystemException, SystemExceptionKind};
use spandrel_property::{Limits, PropertyOptions, ServiceLimits};

use crate::support::{Served, def, long, property, text};

fn served(set: Limits, limits: ServiceLimits) -> Served {
    Served::with(PropertyOptions { limits: ServiceLimits { set, ..limits }, ..PropertyOptions::default() })
}

fn is_limit(error: &SystemException) -> bool {
    error.kind() == SystemExceptionKind::ImpLimit
}

#[test]
fn a_set_is_bounded() {
    let limits = Limits { properties: 3, name: 8, octets: 200, constraints: 2 };
    let served = served(limits, ServiceLimits::default());
    let set = served.set();
    let refused = |name: &str, value| match set.define_property(name, &value) {
        Err(DefinePropertyError::System(error)) => assert!(is_limit(&error), "{error}"),
        other => panic!("{other:?}"),
    };
    refused("123456789", long(1));
    refused("a", text(&"x".repeat(200)));
    set.define_property("12345678", &long(1)).unwrap();
    // A request that exceeds a limit leaves no part.
    let three: Vec<_> = ["a", "b", "c"].iter().map(|name| property(name, long(1))).collect();
    match set.define_properties(&three) {
        Err(MultipleExceptionsError::System(error)) => assert!(is_limit(&error), "{error}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(set.get_number_of_properties().unwrap(), 1);
    // A request is bounded even where it has one name again and again.
    let same = vec![property("a", long(1)); 4];
    match set.define_properties(&same) {
        Err(MultipleExceptionsError::System(error)) => assert!(is_limit(&error), "{error}"),
        other => panic!("{other:?}"),
    }
    set.define_properties(&same[..3]).unwrap();
    set.delete_property("a").unwrap();
    set.define_properties(&three[..2]).unwrap();
    refused("c", long(1));
    set.delete_property("a").unwrap();
    set.define_property("c", &long(1)).unwrap();
    // Octets of a replaced value are free again.
    set.delete_all_properties().unwrap();
    for _ in 0..20 {
        set.define_property("t", &text(&"x".repeat(150))).unwrap();
    }
    refused("u", text(&"x".repeat(100)));
    let types = [TypeCode::LONG, TypeCode::STRING, TypeCode::BOOLEAN];
    let error = served.factory.create_constrained_propertyset(&types, &[]).unwrap_err();
    assert!(matches!(error, spandrel::services::cos_property_service::ConstraintNotSupportedError::System(_)));
}

#[test]
fn a_service_is_bounded_in_sets_and_octets() {
    let limits = ServiceLimits { sets: 10, sets_of_client: 3, octets: 400, ..ServiceLimits::default() };
    let served = served(Limits::default(), limits);
    let service = served.service.as_ref().unwrap();
    let [first, second] = [served.set(), served.set_def().into()];
    // A set that fails counts no more.
    let wrong = [def("a", long(1), PropertyModeType::Undefined)];
    for _ in 0..5 {
        served.def_factory.create_initial_propertysetdef(&wrong).unwrap_err();
    }
    served.set();
    assert!(is_limit(&served.factory.create_propertyset().unwrap_err()));
    assert_eq!(service.sets(), 3);
    first.define_property("a", &text(&"x".repeat(300))).unwrap();
    let before = service.octets();
    match second.define_property("a", &text(&"x".repeat(200))) {
        Err(DefinePropertyError::System(error)) => assert!(is_limit(&error), "{error}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(service.octets(), before);
    first.delete_all_properties().unwrap();
    assert_eq!(service.octets(), 0);
    second.define_property("a", &text(&"x".repeat(200))).unwrap();
}

#[test]
fn constraints_count_for_the_limits() {
    let allowed = |octets: usize| vec![def("a", text(&"x".repeat(octets)), PropertyModeType::Normal)];
    let limits = ServiceLimits { octets: 500, ..ServiceLimits::default() };
    let served = served(Limits { octets: 300, ..Limits::default() }, limits);
    let service = served.service.as_ref().unwrap();
    let create = |octets| served.def_factory.create_constrained_propertysetdef(&[], &allowed(octets));
    let set = create(200).unwrap().unwrap();
    assert!((200..300).contains(&service.octets()), "{}", service.octets());
    // Those of a set, and those of all sets.
    create(300).unwrap_err();
    create(280).unwrap_err();
    assert_eq!(service.sets(), 1);
    match set.define_property("a", &text(&"x".repeat(100))) {
        Err(DefinePropertyError::System(error)) => assert!(is_limit(&error), "{error}"),
        other => panic!("{other:?}"),
    }
    create(150).unwrap();
}
