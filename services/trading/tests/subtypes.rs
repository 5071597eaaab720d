//! Queries on a service type with many subtypes, which one index has together.

use std::collections::BTreeSet;

use spandrel::types::Any;
use spandrel_trading::TradingOptions;

use crate::support::{Served, flag, long, names, policy, property, text};

/// More types than have an index visited each.
const TYPES: i32 = 40;

/// A base type, its subtypes `T0` to `T39`, of which every other one has the one before as a second supertype, and a type apart.
/// Each has two offers, whose `load` is the number of the type and that number plus a half.
fn served(options: TradingOptions) -> Served {
    let served = Served::with(options);
    for name in ["Base", "Apart"] {
        served.types.add_type(name, "", &[], &[]).unwrap();
    }
    for nth in 0..TYPES {
        add_subtype(&served, nth);
    }
    for nth in 0..TYPES {
        export(&served, &format!("T{nth}"), nth);
    }
    export(&served, "Base", 100);
    export(&served, "Apart", 3);
    served
}

fn add_subtype(served: &Served, nth: i32) {
    let (base, before) = ("Base".to_owned(), format!("T{}", nth - 1));
    let supertypes = if nth % 2 == 0 { vec![base] } else { vec![before, base] };
    served.types.add_type(&format!("T{nth}"), "", &[], &supertypes).unwrap();
}

fn export(served: &Served, service_type: &str, load: i32) {
    for half in [0.0, 0.5] {
        let load = f64::from(load) + half;
        let name = property("name", text(&format!("{service_type}/{load}")));
        served.export(
            service_type,
            &[name, property("load", Any::new(load).unwrap()), property("is_idle", flag(half == 0.0))],
        );
    }
}

fn loads(served: &Served, service_type: &str, constraint: &str) -> BTreeSet<String> {
    served.names(service_type, constraint, "").into_iter().collect()
}

#[test]
fn the_common_index_has_the_offers_of_a_type_and_its_subtypes_alone() {
    let served = served(TradingOptions::default());
    assert_eq!(loads(&served, "Base", "load >= 3 and load < 4"), BTreeSet::from(["T3/3", "T3/3.5"].map(str::to_owned)));
    assert_eq!(loads(&served, "Base", "load > 100"), BTreeSet::from(["Base/100.5".to_owned()]));
    assert_eq!(loads(&served, "Base", "is_idle and load < 2").len(), 2);
    assert_eq!(loads(&served, "Base", "is_idle").len(), TYPES as usize + 1);
    assert_eq!(loads(&served, "Base", "").len(), 2 * TYPES as usize + 2);
    assert_eq!(loads(&served, "T2", "load >= 3 and load < 4").len(), 2, "T3 is a subtype of T2, too");
    let exact = [policy("exact_type_match", flag(true))];
    assert_eq!(served.query("Base", "load < 50", "", &exact).0, []);
    assert_eq!(served.query("Base", "load > 50", "", &exact).0.len(), 2);
}

// `search_card` counts the offers that an index did not exclude.
#[test]
fn offers_of_other_types_are_excluded_without_their_evaluation() {
    let served = served(TradingOptions::default());
    let search = [policy("search_card", Any::new(2_u32).unwrap())];
    let (offers, limits) = served.query("Base", "load >= 3 and load <= 3.5", "", &search);
    assert_eq!((offers.len(), limits), (2, Vec::new()));
}

#[test]
fn changes_of_offers_and_types_reach_the_common_index() {
    let served = served(TradingOptions::default());
    let find = |load: &str| loads(&served, "Base", &format!("load == {load}")).len();
    let id = served.export("T39", &[property("name", text("changed")), property("load", long(7))]);
    assert_eq!(find("7"), 2);
    served.register.modify(&id, &[], &[property("load", long(77))]).unwrap();
    assert_eq!((find("7"), find("77")), (1, 1));
    served.register.withdraw(&id).unwrap();
    assert_eq!(find("77"), 0);
    // The offers of a removed type are found again with it, below the supertypes that it then has.
    served.types.remove_type("T39").unwrap();
    assert_eq!(find("39"), 0);
    served.types.add_type("T39", "", &[], &[]).unwrap();
    assert_eq!(find("39"), 0);
    served.types.remove_type("T39").unwrap();
    export(&served, "T38", 39);
    add_subtype(&served, 39);
    assert_eq!(find("39"), 2);
    served.register.withdraw_using_constraint("Base", "load == 39").unwrap();
    assert_eq!((find("39"), find("39.5")), (0, 2));
    served.types.add_type("T40", "", &[], &names(&["T39"])).unwrap();
    export(&served, "T40", 40);
    assert_eq!(find("40"), 1);
}

#[test]
fn the_common_index_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    drop(served(TradingOptions::new(folder.path())));
    let served = Served::with(TradingOptions::new(folder.path()));
    assert_eq!(loads(&served, "Base", "load >= 3 and load < 4").len(), 2);
    assert_eq!(loads(&served, "Base", "").len(), 2 * TYPES as usize + 2);
}
