//! Anys, texts and asynchronous calls between our client and our server, in both byte orders.

use spandrel::Orb;
use spandrel_interop::anything::client::{self, Narrow};
use spandrel_interop::anything::server;

#[track_caller]
fn assert_all_cases_pass(version: &str, client_order: &str, server_order: &str) {
    let orb = |order: &str| Orb::init(["-ORBGiopVersion", version, "-ORBByteOrder", order].map(str::to_owned)).unwrap();
    let serving = orb(server_order);
    let reference = server::activate(&serving).unwrap();
    let tally = client::run(&orb(client_order), &reference, Narrow::Unicode, &mut |_| {}).unwrap();
    assert!(tally.is_good() && tally.run > 100, "{tally:#?}");
    serving.run(); // the client's last case shuts it down
}

#[test]
fn giop_1_2_in_both_byte_orders() {
    assert_all_cases_pass("1.2", "little", "big");
    assert_all_cases_pass("1.2", "big", "little");
}

#[test]
fn giop_1_1_in_both_byte_orders() {
    assert_all_cases_pass("1.1", "little", "big");
    assert_all_cases_pass("1.1", "big", "little");
}
