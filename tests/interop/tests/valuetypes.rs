//! Values between our client and our server, in both byte orders.

use spandrel::Orb;
use spandrel_interop::valuetypes::{client, server};

fn orb(order: &str) -> Orb {
    Orb::init(["-ORBByteOrder", order].map(str::to_owned)).unwrap()
}

#[track_caller]
fn agree(client_order: &str, server_order: &str) {
    let serving = orb(server_order);
    let reference = server::activate(&serving).unwrap();
    let mut lines = Vec::new();
    let tally = client::run(&orb(client_order), &reference, &mut |line| lines.push(line.to_owned())).unwrap();
    assert!(tally.is_good(), "{tally}:\n{}", lines.join("\n"));
    assert!(tally.run > 15, "only {tally}");
    serving.run(); // the client's last case has told it to shut down
}

#[test]
fn values_cross_in_both_orders() {
    agree("little", "big");
    agree("big", "little");
}
