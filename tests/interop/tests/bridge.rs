//! All cases by way of a bridge that has no generated code: dynamic servants before, dynamic requests behind.

use spandrel_interop::{bridge, client, server};

#[track_caller]
fn agree(version: &str, orders: [&str; 3]) {
    let orb = |order| server::orb(["-ORBGiopVersion", version, "-ORBByteOrder", order].map(str::to_owned)).unwrap();
    let [client, between, beyond] = orders.map(orb);
    let hub = server::activate(&beyond).unwrap();
    let bridged = bridge::activate(&between, &hub, bridge::TYPES).unwrap();
    let mut failures = Vec::new();
    let mut say = |line: &str| {
        if !line.starts_with("ok ") {
            failures.push(line.to_owned());
        }
    };
    let tally = client::run(&client, &bridged, "", &mut say).unwrap();
    assert!(tally.is_good(), "{tally}:\n{}", failures.join("\n"));
    assert!(tally.run > 120, "only {tally}");
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
