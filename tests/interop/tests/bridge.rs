//! All cases by way of a bridge that has no generated code: dynamic servants before, dynamic requests behind.

use spandrel_interop::{bridge, client, server, valuetypes};

#[track_caller]
fn agree(version: &str, orders: [&str; 3]) {
    let orb = |order| server::orb(["-ORBGiopVersion", version, "-ORBByteOrder", order].map(str::to_owned)).unwrap();
    let [client, between, beyond] = orders.map(orb);
    let hub = server::activate(&beyond).unwrap();
    let bridged = bridge::activate(&between, &hub, bridge::TYPES).unwrap();
    let tally = client::run(&client, &bridged, "", &mut |_| {}).unwrap();
    assert!(tally.is_good() && tally.run > 120, "{tally:#?}");
    // The client's last case has told them to shut down.
    between.run();
    beyond.run();
}

#[test]
fn every_type_goes_through_it_in_giop_1_2() {
    agree("1.2", ["little", "big", "little"]);
}

#[test]
fn every_type_goes_through_it_in_giop_1_0() {
    agree("1.0", ["big", "little", "big"]);
}

/// A limit of bridges: they cannot keep a value one that several arguments share.
const BEYOND_A_BRIDGE: [&str; 2] = ["inheritance/inout", "box/text"];

#[test]
fn value_types_go_through_it_but_for_what_arguments_share() {
    values_go_through(["little", "little", "little"], &BEYOND_A_BRIDGE);
}

#[test]
fn derived_values_stay_whole_where_the_byte_order_changes() {
    values_go_through(["little", "big", "little"], &BEYOND_A_BRIDGE);
}

#[track_caller]
fn values_go_through(orders: [&str; 3], beyond_it: &[&str]) {
    let orbs = orders.map(|order| server::orb(["-ORBByteOrder", order].map(str::to_owned)).unwrap());
    let [client, between, beyond] = &orbs;
    let exchange = valuetypes::server::activate(beyond).unwrap();
    let bridged = bridge::activate(between, &exchange, bridge::VALUES).unwrap();
    let tally = valuetypes::client::run(client, &bridged, &mut |_| {}).unwrap();
    assert!(tally.run > 12, "only {tally}");
    let names: Vec<&str> = tally.failures.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, beyond_it, "{tally:#?}");
    orbs[1..].iter().for_each(|orb| orb.shutdown(true).unwrap());
}
