//! `ServiceTypeRepository`: each operation with its exceptions.
#![expect(clippy::result_large_err, reason = "the errors are those of generated stubs")]

use spandrel::dynamic::describe;
use spandrel::services::cos_trading_repos::service_type_repository::{
    AddTypeError, IncarnationNumber, ListOption, MaskTypeError, PropertyMode, RemoveTypeError, SpecifiedServiceTypes,
    UnmaskTypeError,
};
use spandrel::services::repository::fill;
use spandrel::types::TypeCode;
use spandrel::{Endpoint, Orb, SystemExceptionKind};
use spandrel_repository::{InterfaceRepository, RepositoryOptions};
use spandrel_trading::TradingOptions;

use PropertyMode::{PropMandatory, PropMandatoryReadonly, PropNormal, PropReadonly};

use crate::support::{Served, names, prop};

fn every() -> SpecifiedServiceTypes {
    SpecifiedServiceTypes::Unlisted(ListOption::All)
}

#[test]
fn a_type_inherits_the_properties_of_all_its_supertypes() {
    let served = Served::transient();
    let types = &served.types;
    types.add_type("Device", "IDL:Device:1.0", &[prop("site", TypeCode::string(0), PropNormal)], &[]).unwrap();
    let strict = [prop("site", TypeCode::string(0), PropMandatoryReadonly), prop("ppm", TypeCode::LONG, PropMandatory)];
    types.add_type("Printer", "IDL:Printer:1.0", &strict, &names(&["Device"])).unwrap();
    types.add_type("Office::Laser", "IDL:Laser:1.0", &[], &names(&["Printer"])).unwrap();
    let own = types.describe_type("Office::Laser").unwrap();
    assert_eq!((own.props.len(), own.super_types, own.masked), (0, names(&["Printer"]), false));
    let full = types.fully_describe_type("Office::Laser").unwrap();
    assert_eq!(full.super_types, names(&["Printer", "Device"]));
    let modes: Vec<_> = full.props.iter().map(|prop| (&*prop.name, prop.mode)).collect();
    assert_eq!(modes, [("site", PropMandatoryReadonly), ("ppm", PropMandatory)]);
}

#[test]
fn names_of_types_and_properties_are_checked() {
    let served = Served::transient();
    let types = &served.types;
    for name in ["", "1", "a b", "a::", "a:::b", "IDL:", "IDL:a:1", "a/b"] {
        let refused = types.add_type(name, "", &[], &[]).unwrap_err();
        assert!(matches!(refused, AddTypeError::IllegalServiceType(_)), "{name}: {refused}");
    }
    for name in ["a", "::a::b", "IDL:a/b:1.0"] {
        types.add_type(name, "", &[], &[]).unwrap();
    }
    let illegal = types.add_type("t", "", &[prop("<foo", TypeCode::LONG, PropNormal)], &[]).unwrap_err();
    assert!(matches!(illegal, AddTypeError::IllegalPropertyName(_)), "{illegal}");
    let twice = [prop("p", TypeCode::LONG, PropNormal), prop("p", TypeCode::LONG, PropNormal)];
    let duplicate = types.add_type("t", "", &twice, &[]).unwrap_err();
    assert!(matches!(duplicate, AddTypeError::DuplicatePropertyName(_)), "{duplicate}");
}

#[test]
fn types_exist_once_and_supertypes_exist_and_stand_once() {
    let served = Served::transient();
    let types = &served.types;
    types.add_type("A", "", &[], &[]).unwrap();
    assert!(matches!(types.add_type("A", "", &[], &[]), Err(AddTypeError::ServiceTypeExists(_))));
    assert!(matches!(types.add_type("B", "", &[], &names(&["C"])), Err(AddTypeError::UnknownServiceType(_))));
    let twice = types.add_type("B", "", &[], &names(&["A", "A"])).unwrap_err();
    assert!(matches!(twice, AddTypeError::DuplicateServiceTypeName(_)), "{twice}");
    assert_eq!(types.list_types(&every()).unwrap(), names(&["A"]));
}

#[test]
fn a_redefinition_has_the_same_type_and_no_weaker_mode() {
    let served = Served::transient();
    let types = &served.types;
    types.add_type("A", "", &[prop("p", TypeCode::LONG, PropReadonly)], &[]).unwrap();
    types.add_type("B", "", &[prop("p", TypeCode::string(0), PropNormal)], &[]).unwrap();
    let refused = |outcome: Result<_, AddTypeError>| matches!(outcome, Err(AddTypeError::ValueTypeRedefinition(_)));
    let own = |value_type, mode| types.add_type("C", "", &[prop("p", value_type, mode)], &names(&["A"]));
    assert!(refused(own(TypeCode::string(0), PropReadonly)));
    assert!(refused(own(TypeCode::LONG, PropNormal)) && refused(own(TypeCode::LONG, PropMandatory)));
    assert!(refused(types.add_type("C", "", &[], &names(&["A", "B"]))));
    own(TypeCode::LONG, PropMandatoryReadonly).unwrap();
}

#[test]
fn a_type_with_subtypes_is_not_removed() {
    let served = Served::transient();
    let types = &served.types;
    types.add_type("A", "", &[], &[]).unwrap();
    types.add_type("B", "", &[], &names(&["A"])).unwrap();
    match types.remove_type("A") {
        Err(RemoveTypeError::HasSubTypes(names)) => assert_eq!((&*names.the_type, &*names.sub_type), ("A", "B")),
        other => panic!("{other:?}"),
    }
    types.remove_type("B").unwrap();
    types.remove_type("A").unwrap();
    assert!(matches!(types.remove_type("A"), Err(RemoveTypeError::UnknownServiceType(_))));
    assert!(matches!(types.remove_type("?"), Err(RemoveTypeError::IllegalServiceType(_))));
}

#[test]
fn incarnation_numbers_tell_which_types_are_new() {
    let served = Served::transient();
    let types = &served.types;
    let first = types.add_type("A", "", &[], &[]).unwrap();
    let next = types.incarnation().unwrap();
    assert!((first.high, first.low) < (next.high, next.low));
    assert_eq!(types.add_type("B", "", &[], &[]).unwrap(), next);
    let since = |number: IncarnationNumber| types.list_types(&SpecifiedServiceTypes::Incarnation(number)).unwrap();
    assert_eq!(since(first), names(&["A", "B"]));
    assert_eq!(since(next), names(&["B"]));
    assert_eq!(since(types.incarnation().unwrap()), names(&[]));
}

#[test]
fn a_mask_is_set_and_removed_once() {
    let served = Served::printers();
    let types = &served.types;
    served.printer("laser", 30, true);
    assert!(matches!(types.unmask_type("Printer"), Err(UnmaskTypeError::NotMasked(_))));
    types.mask_type("Printer").unwrap();
    assert!(types.describe_type("Printer").unwrap().masked);
    assert!(matches!(types.mask_type("Printer"), Err(MaskTypeError::AlreadyMasked(_))));
    // The offers of a masked type are found, and it has no new ones.
    assert_eq!(served.names("Printer", "", ""), names(&["laser"]));
    assert!(served.register.export(Some(&served.object("o")), "Printer", &[]).is_err());
    types.unmask_type("Printer").unwrap();
    served.printer("inkjet", 10, true);
}

/// A trader whose interface repository has this URL.
fn with_repository(url: &str) -> Served {
    let orb = Orb::builder().init_ref("InterfaceRepository", url).listen(Endpoint::new("127.0.0.1", 0));
    Served::on(orb.build().unwrap(), TradingOptions::default())
}

#[test]
fn the_interface_of_a_type_inherits_from_those_of_its_supertypes() {
    let idl = "module Office { interface Device {}; interface Printer : Device {}; interface Laser : Printer {};
                               interface Chair {}; struct Paper { long size; }; };";
    let folder = tempfile::tempdir().unwrap();
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let repository = InterfaceRepository::start(&orb, RepositoryOptions::new(folder.path())).unwrap();
    let served = with_repository(&repository.reference().to_string());
    fill(repository.reference(), &describe(idl).unwrap()).unwrap();
    let types = &served.types;
    types.add_type("Device", "IDL:Office/Device:1.0", &[], &[]).unwrap();
    types.add_type("Printer", "Office::Printer", &[], &names(&["Device"])).unwrap();
    // Directly, indirectly, the same interface, none, and one that the repository does not have.
    types.add_type("Laser", "IDL:Office/Laser:1.0", &[], &names(&["Printer"])).unwrap();
    types.add_type("Other", "::Office::Laser", &[], &names(&["Laser", "Device"])).unwrap();
    types.add_type("Same", "IDL:Office/Device:1.0", &[], &names(&["Device"])).unwrap();
    types.add_type("Plain", "", &[], &names(&["Device"])).unwrap();
    types.add_type("Unknown", "IDL:Elsewhere/Plotter:1.0", &[], &names(&["Device"])).unwrap();
    for (interface, base, base_if) in [
        ("IDL:Office/Chair:1.0", "Device", "IDL:Office/Device:1.0"),
        ("IDL:Office/Device:1.0", "Laser", "IDL:Office/Laser:1.0"),
        ("Office::Chair", "Printer", "Office::Printer"),
        ("IDL:Office/Paper:1.0", "Device", "IDL:Office/Device:1.0"),
        // That of the supertype's supertype.
        ("IDL:Office/Chair:1.0", "Plain", "IDL:Office/Device:1.0"),
        ("IDL:Office/Chair:1.0", "Unknown", "IDL:Elsewhere/Plotter:1.0"),
    ] {
        let incarnation = types.incarnation().unwrap();
        match types.add_type("Wrong", interface, &[], &names(&[base])).unwrap_err() {
            AddTypeError::InterfaceTypeMismatch(mismatch) => {
                assert_eq!((&*mismatch.derived_service, &*mismatch.derived_if), ("Wrong", interface));
                assert_eq!(mismatch.base_if, base_if, "{mismatch:?}");
            }
            other => panic!("{other}"),
        }
        assert_eq!(types.incarnation().unwrap(), incarnation);
    }
    let unknown = types.add_type("Wrong", "IDL:Office/Chair:1.0", &[], &names(&["Nothing"])).unwrap_err();
    assert!(matches!(unknown, AddTypeError::UnknownServiceType(_)), "{unknown}");
    drop(served);
    repository.stop().unwrap();
    orb.shutdown().unwrap();
}

#[test]
fn interfaces_are_believed_without_a_repository_and_not_compared_by_one_that_is_away() {
    let add = |served: &Served| {
        served.types.add_type("Device", "IDL:Office/Device:1.0", &[], &[]).unwrap();
        served.types.add_type("Chair", "IDL:Office/Chair:1.0", &[], &names(&["Device"]))
    };
    add(&Served::transient()).unwrap();
    match add(&with_repository("corbaloc::127.0.0.1:1/InterfaceRepository")).unwrap_err() {
        AddTypeError::System(error) => assert_eq!(error.kind(), SystemExceptionKind::Transient, "{error}"),
        other => panic!("{other}"),
    }
}
