//! The type suite between our client and our server, in one process: each version and byte order.

use spandrel_interop::{client, server};

fn arguments(version: &str, order: &str) -> Vec<String> {
    ["-ORBGiopVersion", version, "-ORBByteOrder", order].map(str::to_owned).to_vec()
}

#[track_caller]
fn assert_all_cases_pass(version: &str, client_order: &str, server_order: &str) {
    let server = server::orb(arguments(version, server_order)).unwrap();
    let reference = server::activate(&server).unwrap();
    let orb = server::orb(arguments(version, client_order)).unwrap();
    let tally = client::run(&orb, &reference, "", &mut |_| {}).unwrap();
    assert!(tally.is_good() && tally.run > 120, "{tally:#?}");
    server.run(); // the client's last case shuts it down
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

#[test]
fn giop_1_0_in_both_byte_orders() {
    assert_all_cases_pass("1.0", "little", "big");
    assert_all_cases_pass("1.0", "big", "little");
}
