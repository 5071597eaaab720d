//! `Proxy`, and queries that go on to the traders behind proxy offers.

use spandrel::SystemExceptionKind;
use spandrel::services::cos_trading::proxy::{DescribeProxyError, ExportProxyError, ProxyInfo, WithdrawProxyError};
use spandrel::services::cos_trading::register::{DescribeError, ModifyError, WithdrawError};
use spandrel::services::cos_trading::{Lookup, Policy, Property, Proxy};
use spandrel::types::{Any, Interface as _};
use spandrel_trading::{Limits, TradingOptions};

use crate::support::{Served, flag, long, names, policy, property, text};

/// The `Proxy` of a trader.
fn proxies(served: &Served) -> Proxy {
    served.lookup.proxy_if().unwrap().expect("a Proxy")
}

/// The `Lookup` of a trader as clients of another one have it.
fn lookup_for(served: &Served, target: &Served) -> Lookup {
    served.client.string_to_object(&target.lookup.as_object().to_string()).unwrap().unchecked_narrow()
}

/// The properties of a printer, as an offer has them.
fn printer(name: &str, ppm: i32) -> [Property; 2] {
    [property("name", text(name)), property("ppm", long(ppm))]
}

/// Two traders with printers; the second has `fast` and `slow`.
fn traders() -> (Served, Served) {
    let (first, second) = (Served::printers(), Served::printers());
    second.printer("fast", 50, true);
    second.printer("slow", 5, true);
    (first, second)
}

fn export(served: &Served, target: &Served, properties: &[Property], if_match_all: bool, recipe: &str) -> String {
    let target = lookup_for(served, target);
    proxies(served).export_proxy(Some(&target), "Printer", properties, if_match_all, recipe, &[]).unwrap()
}

fn system_kind(error: ExportProxyError) -> SystemExceptionKind {
    match error {
        ExportProxyError::System(exception) => exception.kind(),
        error => panic!("{error}"),
    }
}

#[test]
fn a_proxy_offer_is_described_listed_and_withdrawn() {
    let (first, second) = traders();
    let target = lookup_for(&first, &second);
    let passed_on = [policy("match_card", Any::new(7_u32).unwrap())];
    let id = proxies(&first)
        .export_proxy(Some(&target), "Printer", &printer("p", 1), true, "$* and ppm > $(ppm)", &passed_on)
        .unwrap();
    let expected = ProxyInfo {
        r#type: "Printer".to_owned(),
        target: Some(target),
        properties: printer("p", 1).to_vec(),
        if_match_all: true,
        recipe: "$* and ppm > $(ppm)".to_owned(),
        policies_to_pass_on: passed_on.to_vec(),
    };
    assert_eq!(proxies(&first).describe_proxy(&id).unwrap(), expected);
    assert_eq!(first.admin.list_proxies(10).unwrap().0, std::slice::from_ref(&id));
    assert_eq!(first.admin.list_offers(10).unwrap().0, [""; 0]);
    proxies(&first).withdraw_proxy(&id).unwrap();
    assert_eq!(first.admin.list_proxies(10).unwrap().0, [""; 0]);
    let Err(WithdrawProxyError::UnknownOfferId(raised)) = proxies(&first).withdraw_proxy(&id) else { panic!() };
    assert_eq!(raised.id, id);
}

#[test]
fn ids_of_offers_and_of_proxy_offers_are_told_apart() {
    let (first, second) = traders();
    let (offer, proxy) = (first.printer("p", 1, true), export(&first, &second, &printer("p", 1), true, "$*"));
    assert!(matches!(proxies(&first).describe_proxy(&offer), Err(DescribeProxyError::NotProxyOfferId(_))));
    assert!(matches!(proxies(&first).withdraw_proxy(&offer), Err(WithdrawProxyError::NotProxyOfferId(_))));
    assert!(matches!(proxies(&first).describe_proxy("no id"), Err(DescribeProxyError::IllegalOfferId(_))));
    assert!(matches!(first.register.describe(&proxy), Err(DescribeError::ProxyOfferId(_))));
    assert!(matches!(first.register.withdraw(&proxy), Err(WithdrawError::ProxyOfferId(_))));
    assert!(matches!(first.register.modify(&proxy, &[], &[]), Err(ModifyError::ProxyOfferId(_))));
    // The ids of another trader are unknown.
    assert!(matches!(proxies(&second).describe_proxy(&proxy), Err(DescribeProxyError::UnknownOfferId(_))));
}

#[test]
fn a_proxy_offer_that_its_type_does_not_admit_is_refused() {
    let (first, second) = traders();
    let target = lookup_for(&first, &second);
    let export = |service_type: &str, properties: &[Property], recipe: &str, policies: &[Policy]| {
        proxies(&first).export_proxy(Some(&target), service_type, properties, false, recipe, policies).unwrap_err()
    };
    let offered = printer("p", 1);
    let Err(ExportProxyError::InvalidLookupRef(raised)) =
        proxies(&first).export_proxy(None, "Printer", &offered, false, "$*", &[])
    else {
        panic!()
    };
    assert_eq!(raised.target, None);
    assert!(matches!(export("No Type", &offered, "$*", &[]), ExportProxyError::IllegalServiceType(_)));
    assert!(matches!(export("Scanner", &offered, "$*", &[]), ExportProxyError::UnknownServiceType(_)));
    assert!(matches!(export("Printer", &offered[..1], "$*", &[]), ExportProxyError::MissingMandatoryProperty(_)));
    let wrong = [property("name", long(1)), property("ppm", long(1))];
    assert!(matches!(export("Printer", &wrong, "$*", &[]), ExportProxyError::PropertyTypeMismatch(_)));
    let twice = [printer("p", 1), printer("p", 1)].concat();
    assert!(matches!(export("Printer", &twice, "$*", &[]), ExportProxyError::DuplicatePropertyName(_)));
    for recipe in ["$", "$(name", "$(colour)"] {
        let ExportProxyError::IllegalRecipe(raised) = export("Printer", &offered, recipe, &[]) else { panic!() };
        assert_eq!(raised.recipe, recipe);
    }
    let policies = [policy("a", long(1)), policy("a", long(2))];
    assert!(matches!(export("Printer", &offered, "$*", &policies), ExportProxyError::DuplicatePolicyName(_)));
    first.types.mask_type("Printer").unwrap();
    assert!(matches!(export("Printer", &offered, "$*", &[]), ExportProxyError::UnknownServiceType(_)));
    first.types.unmask_type("Printer").unwrap();
    first.admin.set_supports_proxy_offers(false).unwrap();
    assert_eq!(system_kind(export("Printer", &offered, "$*", &[])), SystemExceptionKind::NoImplement);
}

#[test]
fn the_number_of_proxy_offers_is_bounded() {
    let limits = Limits { proxies: 1, ..Limits::default() };
    let served = Served::with(TradingOptions { limits, ..TradingOptions::default() });
    served.add_printer_type();
    export(&served, &served, &printer("p", 1), true, "$*");
    let raised =
        proxies(&served).export_proxy(Some(&served.lookup), "Printer", &printer("p", 1), true, "$*", &[]).unwrap_err();
    assert_eq!(system_kind(raised), SystemExceptionKind::ImpLimit);
}

#[test]
fn a_query_that_a_proxy_offer_matches_goes_on_with_the_constraint_of_the_recipe() {
    let (first, second) = traders();
    first.printer("own", 20, true);
    export(&first, &second, &printer("behind", 30), false, "($*) and ppm > $(ppm)");
    // The second trader is asked for `(ppm > 10) and ppm > 30`, and one order has the offers of both.
    assert_eq!(first.names("Printer", "ppm > 10", "max ppm"), names(&["fast", "own"]));
    assert_eq!(first.names("Printer", "ppm > 10", "min ppm"), names(&["own", "fast"]));
    // The proxy offer itself does not match.
    assert_eq!(first.names("Printer", "ppm < 10", ""), [""; 0]);
    assert_eq!(first.names("Printer", "ppm > 40", ""), [""; 0]);
}

#[test]
fn with_if_match_all_the_type_alone_decides() {
    let (first, second) = traders();
    first.types.add_type("ColourPrinter", "", &[], &names(&["Printer"])).unwrap();
    second.types.add_type("ColourPrinter", "", &[], &names(&["Printer"])).unwrap();
    let id = export(&first, &second, &printer("behind", 0), true, "$*");
    assert_eq!(first.names("Printer", "ppm > 40", ""), names(&["fast"]));
    // The supertype of a query's type does not conform to it.
    assert_eq!(first.names("ColourPrinter", "", ""), [""; 0]);
    proxies(&first).withdraw_proxy(&id).unwrap();
    let target = lookup_for(&first, &second);
    proxies(&first).export_proxy(Some(&target), "ColourPrinter", &printer("behind", 0), true, "$*", &[]).unwrap();
    assert_eq!(first.names("Printer", "ppm > 40", ""), names(&["fast"]), "the type of the query is passed on");
    let exact = [policy("exact_type_match", flag(true))];
    assert_eq!(first.query("Printer", "ppm > 40", "", &exact).0, []);
}

#[test]
fn policies_decide_whether_proxy_offers_take_part() {
    let (first, second) = traders();
    export(&first, &second, &printer("behind", 0), true, "$*");
    let found = |policies: &[Policy]| first.query("Printer", "ppm > 40", "", policies).0.len();
    assert_eq!(found(&[]), 1);
    assert_eq!(found(&[policy("use_proxy_offers", flag(false))]), 0);
    assert_eq!(found(&[policy("use_proxy_offers", flag(true))]), 1);
    assert_eq!(found(&[policy("hop_count", Any::new(0_u32).unwrap())]), 0);
    first.admin.set_supports_proxy_offers(false).unwrap();
    assert_eq!(found(&[policy("use_proxy_offers", flag(true))]), 0);
}

#[test]
fn search_card_counts_proxy_offers_and_names_the_limit() {
    let (first, second) = traders();
    first.printer("own", 45, true);
    export(&first, &second, &printer("behind", 0), true, "$*");
    let search = |most: u32| [policy("search_card", Any::new(most).unwrap())];
    let (offers, limits) = first.query("Printer", "ppm > 40", "", &search(1));
    assert_eq!((offers.len(), limits), (1, names(&["search_card"])));
    let (offers, limits) = first.query("Printer", "ppm > 40", "", &search(2));
    assert_eq!((offers.len(), limits), (2, Vec::new()));
}

#[test]
fn policies_to_pass_on_reach_the_target() {
    let (first, second) = traders();
    let target = lookup_for(&first, &second);
    let one = [policy("return_card", Any::new(1_u32).unwrap())];
    proxies(&first).export_proxy(Some(&target), "Printer", &printer("p", 0), true, "$*", &one).unwrap();
    let (offers, limits) = first.query("Printer", "", "max ppm", &[]);
    assert_eq!((offers.len(), limits), (1, names(&["return_card"])));
}

#[test]
fn traders_behind_each_other_answer_once() {
    let (first, second) = traders();
    first.printer("own", 20, true);
    export(&first, &second, &printer("behind", 0), true, "$*");
    export(&second, &first, &printer("behind", 0), true, "$*");
    assert_eq!(first.names("Printer", "", "max ppm"), names(&["fast", "own", "slow"]));
    assert_eq!(second.names("Printer", "", "max ppm"), names(&["fast", "own", "slow"]));
}

#[test]
fn a_target_that_is_down_or_no_trader_leaves_the_other_offers() {
    let (first, second) = traders();
    first.printer("own", 20, true);
    export(&first, &second, &printer("behind", 0), true, "$*");
    let nothing = first.object("nothing").unchecked_narrow();
    let no_trader = first.register.as_object().unchecked_narrow();
    for target in [nothing, no_trader] {
        proxies(&first).export_proxy(Some(&target), "Printer", &printer("p", 0), true, "$*", &[]).unwrap();
    }
    // The target refuses the constraint of this recipe.
    export(&first, &second, &printer("behind", 0), true, "$* and (");
    assert_eq!(first.names("Printer", "ppm > 10", "max ppm"), names(&["fast", "own"]));
}

#[test]
fn a_recipe_that_multiplies_the_constraint_is_bounded() {
    let (first, second) = traders();
    first.printer("own", 20, true);
    export(&first, &second, &printer("behind", 0), true, &"$*".repeat(100_000));
    let constraint = format!("ppm > {}10", " ".repeat(60_000));
    // A constraint that is too long is not sent, and none of 6 GB is made.
    assert_eq!(first.names("Printer", &constraint, ""), names(&["own"]));
}

#[test]
fn proxy_offers_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let second = Served::printers();
    second.printer("fast", 50, true);
    let served = Served::with(TradingOptions::new(folder.path()));
    served.add_printer_type();
    let withdrawn = export(&served, &second, &printer("w", 1), true, "$*");
    let id = export(&served, &second, &printer("p", 1), true, "$* and ppm > $(ppm)");
    proxies(&served).withdraw_proxy(&withdrawn).unwrap();
    let before = proxies(&served).describe_proxy(&id).unwrap();
    drop(served);

    let served = Served::with(TradingOptions::new(folder.path()));
    assert_eq!(served.admin.list_proxies(10).unwrap().0, std::slice::from_ref(&id));
    assert_eq!(proxies(&served).describe_proxy(&id).unwrap(), before);
    assert_eq!(served.names("Printer", "ppm > 10", ""), names(&["fast"]));
}
