//! Bounds of a trader: IMP_LIMIT, and nothing changed.

use std::fmt::Debug;

use spandrel::services::cos_trading::FollowOption;
use spandrel::services::cos_trading_repos::service_type_repository::PropertyMode::PropNormal;
use spandrel::types::TypeCode;
use spandrel_trading::federation::linked::LinkOptions;
use spandrel_trading::{Limits, TradingOptions};

use crate::support::{Served, long, names, prop, property, text};

fn served(limits: Limits) -> Served {
    let links = LinkOptions { links: 1, ..LinkOptions::default() };
    Served::with(TradingOptions { limits, links, ..TradingOptions::default() })
}

/// Requires that a call has raised IMP_LIMIT.
fn require_limit<T: Debug, E: Debug>(outcome: Result<T, E>) {
    let error = format!("{:?}", outcome.unwrap_err());
    assert!(error.contains("ImpLimit") || error.contains("IMP_LIMIT"), "{error}");
}

#[test]
fn offers_are_bounded_in_number_properties_and_octets() {
    let served = served(Limits { offers: 2, properties: 3, offer_octets: 600, ..Limits::default() });
    let service = served.service.as_ref().unwrap();
    served.types.add_type("T", "", &[], &[]).unwrap();
    let export = |properties: &[_]| served.register.export(Some(&served.object("o")), "T", properties);
    let four: Vec<_> = ["a", "b", "c", "d"].iter().map(|name| property(name, long(1))).collect();
    require_limit(export(&four));
    require_limit(export(&[property("a", text(&"x".repeat(600)))]));
    assert_eq!(service.offers(), 0);
    let id = export(&four[..3]).unwrap();
    // A change is bounded as an export is.
    require_limit(served.register.modify(&id, &[], &four[3..]));
    require_limit(served.register.modify(&id, &[], &[property("a", long(2)), property("e", text(&"x".repeat(600)))]));
    assert_eq!(served.register.describe(&id).unwrap().properties, four[..3]);
    export(&[]).unwrap();
    require_limit(export(&[]));
    served.register.withdraw(&id).unwrap();
    export(&[]).unwrap();
    assert_eq!(service.offers(), 2);
}

#[test]
fn service_types_and_links_are_bounded() {
    let served = served(Limits { types: 2, properties: 2, ..Limits::default() });
    let types = &served.types;
    types.add_type("A", "", &[], &[]).unwrap();
    let incarnation = types.incarnation().unwrap();
    let three = ["a", "b", "c"].map(|name| prop(name, TypeCode::LONG, PropNormal));
    require_limit(types.add_type("B", "", &three, &[]));
    require_limit(types.add_type("B", "", &[], &names(&["A", "A", "A"])));
    require_limit(types.add_type("B", &"i".repeat(5_000), &[], &[]));
    assert_eq!(types.incarnation().unwrap(), incarnation);
    types.add_type("B", "", &three[..2], &[]).unwrap();
    require_limit(types.add_type("C", "", &[], &[]));
    types.remove_type("B").unwrap();
    types.add_type("C", "", &[], &[]).unwrap();

    let links = served.lookup.link_if().unwrap().unwrap();
    let add = |name: &str| links.add_link(name, Some(&served.lookup), FollowOption::LocalOnly, FollowOption::Always);
    add("first").unwrap();
    require_limit(add("second"));
    assert_eq!(links.list_links().unwrap(), ["first"]);
    require_limit(served.admin.set_request_id_stem(&[0; 5_000]));
}
