//! Object adapters and the ways to call an object: our client against our server, which ends and begins anew meanwhile.

use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use spandrel::{Endpoint, Orb};
use spandrel_interop::features::{build, client, server};

#[test]
fn all_features_in_one_process() {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let (sender, receiver) = mpsc::channel();
    let make = move || build(Orb::builder().listen(Endpoint::new("127.0.0.1", port)));
    let serving =
        thread::spawn(move || server::run(make, |reference| sender.send(reference.to_owned()).unwrap(), |_| {}));
    let orb = build(Orb::builder()).unwrap();
    let tally = client::run(&orb, &receiver.recv().unwrap(), "", &mut |_| {}).unwrap();
    assert!(tally.is_good() && tally.run > 30, "{tally:#?}");
    serving.join().unwrap().unwrap(); // the client's last case has told it to stop
}
