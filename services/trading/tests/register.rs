//! `Register`: each operation with its exceptions.

use spandrel::services::cos_trading::register::{
    DescribeError, ExportError, ModifyError, ResolveError, WithdrawError, WithdrawUsingConstraintError,
};
use spandrel::services::cos_trading_dynamic::DynamicProp;
use spandrel::types::{Any, TypeCode};

use spandrel::types::Interface as _;
use spandrel_trading::TradingOptions;

use crate::support::{Served, flag, long, names, property, text};

#[test]
fn an_offer_is_described_as_it_was_exported_and_withdrawn_once() {
    let served = Served::printers();
    let id = served.printer("laser", 30, true);
    let offer = served.register.describe(&id).unwrap();
    assert_eq!((&*offer.r#type, offer.reference), ("Printer", Some(served.object("offered"))));
    assert_eq!(
        offer.properties,
        [property("name", text("laser")), property("ppm", long(30)), property("colour", flag(true))]
    );
    served.register.withdraw(&id).unwrap();
    assert!(matches!(served.register.withdraw(&id), Err(WithdrawError::UnknownOfferId(_))));
    assert!(matches!(served.register.describe(&id), Err(DescribeError::UnknownOfferId(_))));
    for id in ["", "x", "1-1", "0000000g-1", "00000000-", "00000000-99999999999999999999999"] {
        assert!(matches!(served.register.withdraw(id), Err(WithdrawError::IllegalOfferId(_))), "{id}");
    }
    assert!(matches!(served.register.withdraw("00000000-1"), Err(WithdrawError::UnknownOfferId(_))));
}

#[test]
fn exports_are_checked_against_the_type() {
    let served = Served::printers();
    let object = served.object("o");
    let export = |service_type: &str, properties: &[_]| {
        served.register.export(Some(&object), service_type, properties).unwrap_err()
    };
    let (name, ppm) = (property("name", text("n")), property("ppm", long(1)));
    assert!(matches!(served.register.export(None, "Printer", &[]), Err(ExportError::InvalidObjectRef(_))));
    assert!(matches!(export("a b", &[]), ExportError::IllegalServiceType(_)));
    assert!(matches!(export("Scanner", &[]), ExportError::UnknownServiceType(_)));
    assert!(matches!(export("Printer", &[property("<x", long(1))]), ExportError::IllegalPropertyName(_)));
    assert!(matches!(export("Printer", &[ppm.clone(), ppm.clone()]), ExportError::DuplicatePropertyName(_)));
    let wrong = export("Printer", &[name.clone(), property("ppm", text("fast"))]);
    assert!(matches!(wrong, ExportError::PropertyTypeMismatch(_)));
    match export("Printer", std::slice::from_ref(&name)) {
        ExportError::MissingMandatoryProperty(missing) => assert_eq!(missing.name, "ppm"),
        other => panic!("{other}"),
    }
    // A property that the type does not declare is allowed.
    served.register.export(Some(&object), "Printer", &[name, ppm, property("floor", long(3))]).unwrap();
    assert_eq!(served.names("Printer", "floor == 3", ""), names(&["n"]));
}

#[test]
fn the_interface_of_an_exported_object_is_checked_if_that_is_chosen() {
    let served = Served::with(TradingOptions { checks_interfaces: true, ..TradingOptions::default() });
    served.types.add_type("Trader", "IDL:omg.org/CosTrading/Lookup:1.0", &[], &[]).unwrap();
    served.types.add_type("Printer", "IDL:Office/Printer:1.0", &[], &[]).unwrap();
    let export = |service_type| served.register.export(Some(served.lookup.as_object()), service_type, &[]);
    match export("Printer") {
        Err(ExportError::InterfaceTypeMismatch(mismatch)) => assert_eq!(mismatch.r#type, "Printer"),
        other => panic!("{other:?}"),
    }
    export("Trader").unwrap();
}

#[test]
fn a_read_only_property_is_not_dynamic() {
    let served = Served::printers();
    let evaluator = served.object("evaluator").unchecked_narrow();
    let dynamic = |returned_type: TypeCode| {
        let eval_if = Some(Clone::clone(&evaluator));
        Any::new(DynamicProp { eval_if, returned_type, extra_info: long(0) }).unwrap()
    };
    let export = |properties: &[_]| served.register.export(Some(&served.object("o")), "Printer", properties);
    let name = property("name", text("n"));
    let readonly = export(&[property("name", dynamic(TypeCode::string(0))), property("ppm", long(1))]);
    assert!(matches!(readonly, Err(ExportError::ReadonlyDynamicProperty(_))));
    let wrong = export(&[name.clone(), property("ppm", dynamic(TypeCode::string(0)))]);
    assert!(matches!(wrong, Err(ExportError::PropertyTypeMismatch(_))));
    export(&[name.clone(), property("ppm", dynamic(TypeCode::LONG))]).unwrap();
    served.admin.set_supports_dynamic_properties(false).unwrap();
    assert!(export(&[name, property("ppm", dynamic(TypeCode::LONG))]).is_err());
}

#[test]
fn modify_deletes_changes_and_adds_properties_or_does_nothing() {
    let served = Served::printers();
    let id = served.printer("laser", 30, true);
    let modify = |deleted: &[&str], changed: &[_]| served.register.modify(&id, &names(deleted), changed);
    assert!(matches!(modify(&["<"], &[]), Err(ModifyError::IllegalPropertyName(_))));
    assert!(matches!(modify(&["queue"], &[]), Err(ModifyError::UnknownPropertyName(_))));
    assert!(matches!(modify(&["colour", "ppm"], &[]), Err(ModifyError::MandatoryProperty(_))));
    assert!(matches!(
        modify(&["colour"], &[property("colour", flag(false))]),
        Err(ModifyError::DuplicatePropertyName(_))
    ));
    assert!(matches!(modify(&["colour"], &[property("ppm", text("x"))]), Err(ModifyError::PropertyTypeMismatch(_))));
    assert!(matches!(modify(&[], &[property("name", text("x"))]), Err(ModifyError::ReadonlyProperty(_))));
    assert_eq!(served.names("Printer", "colour and ppm == 30", ""), names(&["laser"]));
    modify(&["colour"], &[property("ppm", long(40)), property("queue", long(2))]).unwrap();
    assert_eq!(served.names("Printer", "not exist colour and ppm == 40 and queue < 3", ""), names(&["laser"]));
    // The index has the former value no more.
    assert_eq!(served.names("Printer", "ppm == 30", ""), names(&[]));
    assert!(matches!(served.register.modify("x", &[], &[]), Err(ModifyError::IllegalOfferId(_))));
    served.admin.set_supports_modifiable_properties(false).unwrap();
    assert!(matches!(modify(&[], &[]), Err(ModifyError::NotImplemented(_))));
}

#[test]
fn offers_are_withdrawn_by_a_constraint() {
    let served = Served::printers();
    for ppm in 0..20 {
        served.printer(&format!("p{ppm}"), ppm, ppm % 2 == 0);
    }
    let withdraw =
        |service_type: &str, constraint: &str| served.register.withdraw_using_constraint(service_type, constraint);
    use WithdrawUsingConstraintError as Refused;
    assert!(matches!(withdraw("?", ""), Err(Refused::IllegalServiceType(_))));
    assert!(matches!(withdraw("Scanner", ""), Err(Refused::UnknownServiceType(_))));
    assert!(matches!(withdraw("Printer", "ppm >"), Err(Refused::IllegalConstraint(_))));
    assert!(matches!(withdraw("Printer", "ppm > 90"), Err(Refused::NoMatchingOffers(_))));
    withdraw("Printer", "colour or ppm > 4").unwrap();
    assert_eq!(served.names("Printer", "", ""), names(&["p1", "p3"]));
}

#[test]
fn a_trader_without_links_resolves_no_name() {
    let served = Served::transient();
    assert!(matches!(served.register.resolve(&[]), Err(ResolveError::IllegalTraderName(_))));
    assert!(matches!(served.register.resolve(&names(&["x"])), Err(ResolveError::UnknownTraderName(_))));
}
