//! `Lookup`: queries, their policies and exceptions, and the work of the indices.

use std::time::Duration;

use spandrel::SystemExceptionKind;
use spandrel::services::cos_trading::lookup::{QueryError, SpecifiedProps};
use spandrel::services::cos_trading::{Lookup, UnknownMaxLeftError};
use spandrel::types::Any;
use spandrel_test_support::wait_until;
use spandrel_trading::{IteratorOptions, QUERY_TIME, TradingOptions};

use crate::support::{Served, all, flag, long, names, names_of, none, policy, property, text};

/// Five printers, whose names are their numbers.
fn five() -> Served {
    five_with(IteratorOptions::default())
}

/// The same, in a trader whose iterators have these limits.
fn five_with(iterators: IteratorOptions) -> Served {
    let served = Served::with(TradingOptions { iterators, ..TradingOptions::default() });
    served.add_printer_type();
    for (nth, ppm) in [30, 10, 50, 20, 40].into_iter().enumerate() {
        served.printer(&nth.to_string(), ppm, nth % 2 == 0);
    }
    served
}

#[test]
fn constraints_select_and_preferences_order() {
    let served = five();
    let find = |constraint: &str, preference: &str| served.names("Printer", constraint, preference).concat();
    assert_eq!(find("", ""), "01234");
    assert_eq!(find("ppm > 20", "min ppm"), "042");
    assert_eq!(find("20 < ppm and ppm <= 40", "max ppm"), "40");
    assert_eq!(find("colour", "with ppm >= 50"), "204");
    assert_eq!(find("not colour or ppm == 50", "first"), "123");
    assert_eq!(find("'2' ~ name or name == '4'", ""), "24");
    assert_eq!(find("ppm > 20 and ppm < 10", ""), "");
    assert_eq!(find("ppm >= 10.5 and ppm != 50", "min ppm"), "304");
    let mut random: Vec<_> = find("", "random").chars().collect();
    random.sort_unstable();
    assert_eq!(random.into_iter().collect::<String>(), "01234");
}

#[test]
fn a_preference_puts_offers_without_its_value_last() {
    let served = five();
    let id = served.printer("5", 1, true);
    served.register.modify(&id, &[], &[property("queue", long(3))]).unwrap();
    assert_eq!(served.names("Printer", "", "min queue").concat(), "501234");
}

#[test]
fn subtypes_match_unless_the_type_is_exact() {
    let served = five();
    served.types.add_type("Plotter", "", &[], &names(&["Printer"])).unwrap();
    served.export("Plotter", &[property("name", text("plot")), property("ppm", long(50))]);
    assert_eq!(served.names("Printer", "ppm == 50", ""), names(&["2", "plot"]));
    let (exact, _) = served.query("Printer", "ppm == 50", "", &[policy("exact_type_match", flag(true))]);
    assert_eq!(names_of(&exact), names(&["2"]));
    assert_eq!(served.names("Plotter", "", ""), names(&["plot"]));
}

#[test]
fn cardinalities_limit_a_query_and_are_told() {
    let served = five();
    let limited = |name: &str, card: u32, preference: &str| {
        let (offers, limits) = served.query("Printer", "", preference, &[policy(name, Any::new(card).unwrap())]);
        (names_of(&offers).concat(), limits.concat())
    };
    let pair = |offers: &str, limits: &str| (offers.to_owned(), limits.to_owned());
    assert_eq!(limited("search_card", 2, "max ppm"), pair("01", "search_card"));
    assert_eq!(limited("match_card", 3, "min ppm"), pair("102", "match_card"));
    assert_eq!(limited("return_card", 2, "max ppm"), pair("24", "return_card"));
    assert_eq!(limited("return_card", 5, ""), pair("01234", ""));
    assert_eq!(limited("return_card", 0, ""), pair("", "return_card"));
    // The bound of the trader counts where it is less.
    assert_eq!(served.admin.set_max_return_card(1).unwrap(), 100_000);
    assert_eq!(limited("return_card", 4, "max ppm"), pair("2", "return_card"));
}

#[test]
fn the_rest_of_a_result_is_behind_an_iterator() {
    let served = five();
    let (first, iterator, _) = served.lookup.query("Printer", "", "", &[], &all(), 2).unwrap();
    assert_eq!(names_of(&first).concat(), "01");
    let iterator = iterator.unwrap();
    assert_eq!(iterator.max_left().unwrap(), 3);
    let (has_more, next) = iterator.next_n(2).unwrap();
    assert_eq!((has_more, names_of(&next).concat()), (true, "23".to_owned()));
    let (has_more, next) = iterator.next_n(2).unwrap();
    assert_eq!((has_more, names_of(&next).concat()), (false, "4".to_owned()));
    iterator.destroy().unwrap();
    assert!(iterator.max_left().is_err());
}

fn is_gone(outcome: Result<u32, UnknownMaxLeftError>) -> bool {
    let gone = SystemExceptionKind::ObjectNotExist;
    matches!(outcome, Err(UnknownMaxLeftError::System(error)) if error.kind() == gone)
}

#[test]
fn an_iterator_that_is_not_called_expires() {
    let served = five_with(IteratorOptions { expiry: Duration::ZERO, ..IteratorOptions::default() });
    let iterator = || served.lookup.query("Printer", "", "", &[], &none(), 1).unwrap().1.unwrap();
    let first = iterator();
    wait_until("another iterator ends the expired one", || {
        iterator();
        is_gone(first.max_left())
    });
}

#[test]
fn an_iterator_beyond_the_limit_ends_the_one_that_was_called_least_recently() {
    for iterators in [
        IteratorOptions { limit: 2, ..IteratorOptions::default() },
        IteratorOptions { limit_of_client: 2, ..IteratorOptions::default() },
    ] {
        let served = five_with(iterators);
        let iterator = || served.lookup.query("Printer", "", "", &[], &none(), 1).unwrap().1.unwrap();
        let [first, second] = [iterator(), iterator()];
        first.next_n(1).unwrap();
        let third = iterator();
        assert!(is_gone(second.max_left()));
        assert_eq!([first.max_left().unwrap(), third.max_left().unwrap()], [3, 4]);
    }
}

#[test]
fn results_have_the_properties_that_were_asked_for() {
    let served = five();
    let ask = |desired: &SpecifiedProps| served.lookup.query("Printer", "ppm == 50", "", &[], desired, 9);
    let properties = |desired: &SpecifiedProps| ask(desired).unwrap().0.remove(0).properties;
    assert_eq!(properties(&all()).len(), 3);
    assert_eq!(properties(&none()), []);
    let some = |list: &[&str]| SpecifiedProps::PropNames(names(list));
    assert_eq!(properties(&some(&["queue", "ppm"])), [property("ppm", long(50))]);
    assert!(matches!(ask(&some(&["?"])), Err(QueryError::IllegalPropertyName(_))));
    assert!(matches!(ask(&some(&["a", "a"])), Err(QueryError::DuplicatePropertyName(_))));
}

#[test]
fn arguments_of_queries_are_checked() {
    let served = five();
    let query = |service_type: &str, constraint: &str, preference: &str, policies: &[_]| {
        served.lookup.query(service_type, constraint, preference, policies, &none(), 1).unwrap_err()
    };
    assert!(matches!(query("a b", "", "", &[]), QueryError::IllegalServiceType(_)));
    assert!(matches!(query("Scanner", "", "", &[]), QueryError::UnknownServiceType(_)));
    assert!(matches!(query("Printer", "ppm >", "", &[]), QueryError::IllegalConstraint(_)));
    // Types are those of the service type.
    assert!(matches!(query("Printer", "name > 3", "", &[]), QueryError::IllegalConstraint(_)));
    assert!(matches!(query("Printer", "", "best", &[]), QueryError::IllegalPreference(_)));
    assert!(matches!(query("Printer", "", "min name", &[]), QueryError::IllegalPreference(_)));
    assert!(matches!(query("Printer", "", "", &[policy("?", long(1))]), QueryError::IllegalPolicyName(_)));
    let hop = policy("hop_count", Any::new(1_u32).unwrap());
    assert!(matches!(query("Printer", "", "", &[hop.clone(), hop]), QueryError::DuplicatePolicyName(_)));
    let wrong = query("Printer", "", "", &[policy("search_card", text("many"))]);
    assert!(matches!(wrong, QueryError::PolicyTypeMismatch(_)));
    let nowhere = policy("starting_trader", Any::new(Vec::<String>::new()).unwrap());
    assert!(matches!(query("Printer", "", "", &[nowhere]), QueryError::InvalidPolicyValue(_)));
    let hostile = "(".repeat(1_000_000);
    assert!(matches!(query("Printer", &hostile, "", &[]), QueryError::IllegalConstraint(_)));
}

#[test]
fn offers_with_modifiable_properties_can_be_excluded() {
    let served = Served::transient();
    let modes = spandrel::services::cos_trading_repos::service_type_repository::PropertyMode::PropReadonly;
    let props = [crate::support::prop("name", spandrel::types::TypeCode::string(0), modes)];
    served.types.add_type("T", "", &props, &[]).unwrap();
    served.export("T", &[property("name", text("fixed"))]);
    served.export("T", &[property("name", text("open")), property("x", long(1))]);
    let (offers, _) = served.query("T", "", "", &[policy("use_modifiable_properties", flag(false))]);
    assert_eq!(names_of(&offers), names(&["fixed"]));
}

#[test]
fn the_indices_examine_about_as_many_offers_as_match() {
    let served = Served::transient();
    served.types.add_type("T", "", &[], &[]).unwrap();
    served.types.add_type("U", "", &[], &names(&["T"])).unwrap();
    let lookup: Lookup = served.service.as_ref().unwrap().lookup().narrow().unwrap();
    let register = lookup.register_if().unwrap().unwrap();
    let object = served.orb.string_to_object("corbaloc::127.0.0.1:1/o").unwrap();
    for nth in 0..20_000 {
        let properties = [
            property("name", text(&nth.to_string())),
            property("group", long(nth % 200)),
            property("load", Any::new(f64::from(nth)).unwrap()),
        ];
        let service_type = if nth % 2 == 0 { "T" } else { "U" };
        register.export(Some(&object), service_type, &properties).unwrap();
    }
    // `search_card` counts the offers that a query examines: it is applied if they are more.
    let query = |constraint: &str, examined: u32| {
        let (offers, limits) = served.query("T", constraint, "", &[policy("search_card", Any::new(examined).unwrap())]);
        assert!(limits.is_empty(), "{constraint}: {limits:?}");
        offers.len()
    };
    assert_eq!(query("group == 7", 100), 100);
    assert_eq!(query("group == 7 and load < 10000", 100), 50);
    assert_eq!(query("load >= 19990", 10), 10);
    assert_eq!(query("load > 100 and load < 111", 12), 10);
    assert_eq!(query("name == '77' or name == '78'", 2), 2);
    assert_eq!(query("group == 7 and name == '207' and load > 0", 1), 1);
    assert_eq!(query("group == 500", 0), 0);
    let (_, limits) = served.query("T", "'77' ~ name", "", &[policy("search_card", Any::new(100_u32).unwrap())]);
    assert_eq!(limits, ["search_card"]);
}

#[test]
fn a_query_without_an_index_ends_by_its_time_and_says_so() {
    let served = Served::with(TradingOptions { query_time: Duration::ZERO, ..TradingOptions::default() });
    served.types.add_type("T", "", &[], &[]).unwrap();
    for nth in 0..200 {
        served.export("T", &[property("name", text(&nth.to_string()))]);
    }
    let (offers, limits) = served.query("T", "'9' ~ name", "", &[]);
    assert_eq!(limits, [QUERY_TIME]);
    assert!(offers.len() < 20, "{}", offers.len());
    // An index of few offers needs no clock.
    assert_eq!(served.names("T", "name == '199'", ""), names(&["199"]));
}
