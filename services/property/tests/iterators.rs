//! Iterators: positions in a set that changes, their number and their expiry.

use std::time::Duration;

use spandrel::services::cos_property_service::{PropertiesIterator, PropertyNamesIterator, PropertySet};
use spandrel::{SystemException, SystemExceptionKind};
use spandrel_property::{IteratorOptions, PropertyOptions};
use spandrel_test_support::wait_until;

use crate::support::{Served, long, property};

/// Defines properties with the names `a`, `b` and so on.
fn fill(set: &PropertySet, count: u8) {
    let letters: Vec<_> =
        (0..count).map(|nth| property(&char::from(b'a' + nth).to_string(), long(nth.into()))).collect();
    set.define_properties(&letters).unwrap();
}

fn is_gone<T: std::fmt::Debug>(outcome: Result<T, SystemException>) -> bool {
    outcome.is_err_and(|error| error.kind() == SystemExceptionKind::ObjectNotExist)
}

#[test]
fn names_that_one_reply_does_not_hold_are_in_an_iterator() {
    let served = Served::transient();
    let set = served.set();
    fill(&set, 5);
    let (first, rest) = set.get_all_property_names(2).unwrap();
    assert_eq!(first, ["a", "b"]);
    let rest: PropertyNamesIterator = rest.unwrap();
    assert_eq!(rest.next_one().unwrap(), (true, "c".to_owned()));
    assert_eq!(rest.next_n(0).unwrap(), (true, vec![]));
    assert_eq!(rest.next_n(9).unwrap(), (true, vec!["d".to_owned(), "e".to_owned()]));
    assert_eq!(rest.next_n(9).unwrap(), (false, vec![]));
    assert!(!rest.next_one().unwrap().0);
    rest.reset().unwrap();
    assert_eq!(rest.next_n(9).unwrap().1, ["a", "b", "c", "d", "e"]);
    rest.destroy().unwrap();
    assert!(is_gone(rest.next_one()));
    for all in [5, 6, u32::MAX] {
        assert!(set.get_all_property_names(all).unwrap().1.is_none());
    }
    assert_eq!(set.get_all_property_names(0).unwrap().1.unwrap().next_n(u32::MAX).unwrap().1.len(), 5);
}

#[test]
fn an_iterator_over_properties_sees_later_changes_behind_its_position() {
    let served = Served::transient();
    let set = served.set();
    fill(&set, 5);
    let (first, rest) = set.get_all_properties(1).unwrap();
    assert_eq!(first, [property("a", long(0))]);
    let rest: PropertiesIterator = rest.unwrap();
    assert_eq!(rest.next_one().unwrap(), (true, property("b", long(1))));
    set.delete_properties(&["b".to_owned(), "d".to_owned()]).unwrap();
    set.define_property("e", &long(50)).unwrap();
    set.define_property("f", &long(5)).unwrap();
    let (is_any, properties) = rest.next_n(10).unwrap();
    assert!(is_any);
    assert_eq!(properties, [property("c", long(2)), property("e", long(50)), property("f", long(5))]);
    assert!(!rest.next_one().unwrap().0);
}

#[test]
fn a_further_iterator_takes_the_place_of_the_one_called_least_recently() {
    let iterators = IteratorOptions { limit_of_client: 2, ..IteratorOptions::default() };
    let served = Served::with(PropertyOptions { iterators, ..PropertyOptions::default() });
    let set = served.set();
    fill(&set, 3);
    let iterator = || set.get_all_property_names(0).unwrap().1.unwrap();
    let [first, second] = [iterator(), iterator()];
    first.next_one().unwrap();
    let third = iterator();
    assert!(is_gone(second.next_one()));
    first.next_one().unwrap();
    third.next_one().unwrap();
}

#[test]
fn an_iterator_that_is_not_called_expires() {
    let iterators = IteratorOptions { expiry: Duration::ZERO, ..IteratorOptions::default() };
    let served = Served::with(PropertyOptions { iterators, ..PropertyOptions::default() });
    let set = served.set();
    fill(&set, 3);
    let first = set.get_all_property_names(0).unwrap().1.unwrap();
    wait_until("another iterator ends the expired one", || {
        set.get_all_property_names(0).unwrap();
        is_gone(first.next_one())
    });
}
