//! `Admin`: attributes and lists.

use spandrel::services::cos_trading::FollowOption;

use crate::support::Served;

#[test]
fn attributes_are_set_and_the_former_value_is_returned() {
    let served = Served::transient();
    let admin = &served.admin;
    let before = admin.def_search_card().unwrap();
    assert_eq!(admin.set_def_search_card(7).unwrap(), before);
    assert_eq!(served.lookup.def_search_card().unwrap(), 7);
    assert_eq!(admin.set_max_hop_count(3).unwrap(), 10);
    assert_eq!(admin.set_def_follow_policy(FollowOption::LocalOnly).unwrap(), FollowOption::IfNoLocal);
    assert_eq!(served.lookup.def_follow_policy().unwrap(), FollowOption::LocalOnly);
    assert!(admin.set_supports_proxy_offers(false).unwrap());
    assert!(!served.register.supports_proxy_offers().unwrap());
    assert!(!admin.set_request_id_stem(&[1, 2]).unwrap().is_empty());
    assert_eq!(admin.request_id_stem().unwrap(), [1, 2]);
    assert!(admin.set_type_repos(None).is_err());
}

#[test]
fn components_refer_to_each_other() {
    let served = Served::transient();
    let lookup = served.admin.lookup_if().unwrap().unwrap();
    assert!(lookup.is_equivalent(&served.lookup));
    assert!(served.register.admin_if().unwrap().unwrap().is_equivalent(&served.admin));
}

#[test]
fn all_offers_are_listed_in_pages() {
    let served = Served::printers();
    let mut ids: Vec<String> = (0..5).map(|nth| served.printer("p", nth, true)).collect();
    let (first, iterator) = served.admin.list_offers(2).unwrap();
    let iterator = iterator.unwrap();
    assert_eq!(iterator.max_left().unwrap(), 3);
    let (has_more, rest) = iterator.next_n(10).unwrap();
    assert!(!has_more);
    let mut listed = [first, rest].concat();
    listed.sort();
    ids.sort();
    assert_eq!(listed, ids);
    assert_eq!(served.admin.list_proxies(10).unwrap(), (Vec::new(), None));
}
