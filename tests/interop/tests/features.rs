//! Object adapters and the kinds of invocation: our client against our server, which restarts in between.

use std::sync::mpsc;
use std::thread;

use spandrel::{Endpoint, Orb};
use spandrel_interop::features::{build, client, server};
use spandrel_test_support::free_port;

#[test]
fn every_feature_case_passes() {
    let port = free_port();
    let (sender, receiver) = mpsc::channel();
    let make = move || build(Orb::builder().listen(Endpoint::new("127.0.0.1", port)));
    let serving =
        thread::spawn(move || server::run(make, |reference| sender.send(reference.to_owned()).unwrap(), |_| {}));
    let orb = build(Orb::builder()).unwrap();
    let tally = client::run(&orb, &receiver.recv().unwrap(), "", &mut |_| {}).unwrap();
    assert!(tally.is_good() && tally.run > 30, "{tally:#?}");
    serving.join().unwrap().unwrap(); // the client's last case shuts it down
}
