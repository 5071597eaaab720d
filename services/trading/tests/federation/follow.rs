//! Policies of a hop, and the order of the offers of several traders.

use spandrel::services::cos_trading::Property;
use spandrel_constraint::Limits;

use spandrel::services::cos_trading::lookup::{HowManyProps, SpecifiedProps};
use spandrel::services::cos_trading::{FollowOption, Offer, Policy};
use spandrel::types::Any;
use spandrel_constraint::Preference;
use spandrel_trading::federation::follow::{
    merge, policies_of_hop, policies_of_proxy, requested_properties, retain_wanted,
};
use spandrel_trading::federation::rules::Hop;

fn preference(text: &str) -> Preference {
    Preference::parse(text, Limits::default()).unwrap()
}

fn offer(queue: i32) -> Offer {
    let property = Property { name: "queue".to_owned(), value: Any::new(queue).unwrap() };
    Offer { reference: None, properties: vec![property] }
}

fn queues(offers: &[Offer]) -> Vec<i32> {
    offers.iter().map(|offer| offer.properties[0].value.extract().unwrap()).collect()
}

#[test]
fn offers_of_several_traders_are_in_the_order_of_the_preference() {
    let lists = || vec![vec![offer(3), offer(9)], vec![offer(1), offer(4)], vec![]];
    let merged = |text: &str, most| queues(&merge(lists(), &preference(text), most, || 0));
    assert_eq!(merged("min queue", 9), [1, 3, 4, 9]);
    assert_eq!(merged("max queue", 2), [9, 4]);
    assert_eq!(merged("with queue == 4", 9), [4, 3, 9, 1]);
    assert_eq!(merged("first", 3), [3, 9, 1]);
    assert_eq!(merged("min missing", 9), [3, 9, 1, 4]);
}

#[test]
fn the_properties_of_the_preference_are_requested_and_removed_again() {
    let some = |names: &[&str]| SpecifiedProps::PropNames(names.iter().map(|name| (*name).to_owned()).collect());
    let none = SpecifiedProps::Unlisted(HowManyProps::None);
    let all = SpecifiedProps::Unlisted(HowManyProps::All);
    let by = preference("min (queue + 2 * ppm) / queue");
    assert_eq!(requested_properties(&none, &preference("first")), none);
    assert_eq!(requested_properties(&all, &by), all);
    let SpecifiedProps::PropNames(mut names) = requested_properties(&some(&["name", "ppm"]), &by) else { panic!() };
    names.sort();
    assert_eq!(names, ["name", "ppm", "queue"]);
    let mut offers = [offer(1)];
    retain_wanted(&some(&["queue"]), &mut offers);
    assert_eq!(offers[0].properties.len(), 1);
    retain_wanted(&none, &mut offers);
    assert_eq!(offers[0].properties, []);
}

#[test]
fn a_hop_replaces_the_policies_of_the_federation_alone() {
    let policy = |name: &str| Policy { name: name.to_owned(), value: Any::new(7_u32).unwrap() };
    let importer = ["search_card", "hop_count", "starting_trader", "request_id"].map(policy);
    let hop = Hop { hop_count: 1, follow_rule: FollowOption::IfNoLocal };
    let passed = policies_of_hop(&importer, hop, b"id", &[]).unwrap();
    let names: Vec<&str> = passed.iter().map(|policy| &*policy.name).collect();
    assert_eq!(names, ["search_card", "hop_count", "link_follow_rule", "request_id"]);
    assert_eq!(passed[1].value.extract::<u32>().unwrap(), 1);
    assert_eq!(passed[2].value.extract::<FollowOption>().unwrap(), FollowOption::IfNoLocal);
    assert_eq!(passed[3].value.extract::<Vec<u8>>().unwrap(), b"id");
    let passed = policies_of_hop(&importer, hop, b"id", &["annex".to_owned()]).unwrap();
    assert_eq!(passed[4].value.extract::<Vec<String>>().unwrap(), ["annex"]);
}

#[test]
fn policies_of_a_proxy_offer_replace_others_but_not_the_ends_of_cycles() {
    let policy = |name: &str, value: u32| Policy { name: name.to_owned(), value: Any::new(value).unwrap() };
    let importer = [policy("search_card", 1), policy("match_card", 2)];
    let passed_on = ["match_card", "hop_count", "request_id", "own"].map(|name| policy(name, 9));
    let hop = Hop { hop_count: 1, follow_rule: FollowOption::IfNoLocal };
    let policies = policies_of_proxy(&importer, hop, b"id", &passed_on).unwrap();
    let names: Vec<&str> = policies.iter().map(|policy| &*policy.name).collect();
    assert_eq!(names, ["search_card", "hop_count", "link_follow_rule", "request_id", "match_card", "own"]);
    assert_eq!(policies[1].value.extract::<u32>().unwrap(), 1);
    assert_eq!(policies[3].value.extract::<Vec<u8>>().unwrap(), b"id");
    assert_eq!(policies[4].value.extract::<u32>().unwrap(), 9);
}
