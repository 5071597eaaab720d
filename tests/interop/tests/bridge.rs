//! All cases through a bridge without generated code: dynamic servants receive, dynamic requests send.

use spandrel_interop::{bridge, client, server, valuetypes};

#[track_caller]
fn assert_all_cases_pass(version: &str, orders: [&str; 3]) {
    let orb = |order| server::orb(["-ORBGiopVersion", version, "-ORBByteOrder", order].map(str::to_owned)).unwrap();
    let [client, bridging, serving] = orders.map(orb);
    let hub = server::activate(&serving).unwrap();
    let bridged = bridge::activate(&bridging, &hub, bridge::TYPES).unwrap();
    let tally = client::run(&client, &bridged, "", &mut |_| {}).unwrap();
    assert!(tally.is_good() && tally.run > 120, "{tally:#?}");
    // The client's last case shuts both down.
    bridging.run();
    serving.run();
}

#[test]
fn every_type_passes_the_bridge_in_giop_1_2() {
    assert_all_cases_pass("1.2", ["little", "big", "little"]);
}

#[test]
fn every_type_passes_the_bridge_in_giop_1_0() {
    assert_all_cases_pass("1.0", ["big", "little", "big"]);
}

/// A limit of bridges: a value shared by several arguments arrives as several values.
const NOT_BRIDGEABLE: [&str; 2] = ["inheritance/inout", "box/text"];

#[test]
fn value_types_pass_the_bridge_except_values_shared_by_arguments() {
    assert_values_pass(["little", "little", "little"], &NOT_BRIDGEABLE);
}

#[test]
fn derived_values_are_not_truncated_where_the_byte_order_changes() {
    assert_values_pass(["little", "big", "little"], &NOT_BRIDGEABLE);
}

#[track_caller]
fn assert_values_pass(orders: [&str; 3], expected_failures: &[&str]) {
    let orbs = orders.map(|order| server::orb(["-ORBByteOrder", order].map(str::to_owned)).unwrap());
    let [client, bridging, serving] = &orbs;
    let exchange = valuetypes::server::activate(serving).unwrap();
    let bridged = bridge::activate(bridging, &exchange, bridge::VALUES).unwrap();
    let tally = valuetypes::client::run(client, &bridged, &mut |_| {}).unwrap();
    assert!(tally.run > 12, "only {tally}");
    let names: Vec<&str> = tally.failures.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, expected_failures, "{tally:#?}");
    orbs[1..].iter().for_each(|orb| orb.shutdown().unwrap());
}
