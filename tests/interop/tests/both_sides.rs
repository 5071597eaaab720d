//! Our client against our server, in one process: each version and byte order.

use spandrel_interop::{client, server};

fn arguments(version: &str, order: &str) -> Vec<String> {
    ["-ORBGiopVersion", version, "-ORBByteOrder", order].map(str::to_owned).to_vec()
}

#[track_caller]
fn agree(version: &str, client_order: &str, server_order: &str) {
    let server = server::orb(arguments(version, server_order)).unwrap();
    let reference = server::activate(&server).unwrap();
    let orb = server::orb(arguments(version, client_order)).unwrap();
    let tally = client::run(&orb, &reference, "", &mut |_| {}).unwrap();
    assert!(tally.is_good() && tally.run > 120, "{tally:#?}");
    server.run(); // the client's last case has told it to shut down
}

#[test]
fn giop_1_2_in_both_orders() {
    agree("1.2", "little", "big");
    agree("1.2", "big", "little");
}

#[test]
fn giop_1_1_in_both_orders() {
    agree("1.1", "little", "big");
    agree("1.1", "big", "little");
}

#[test]
fn giop_1_0_in_both_orders() {
    agree("1.0", "little", "big");
    agree("1.0", "big", "little");
}
