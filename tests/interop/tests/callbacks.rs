//! Callbacks between our client and our server, in one process.

use spandrel::Endpoint;
use spandrel_interop::callbacks::{builder, client, server};

#[test]
fn servers_call_clients_that_do_not_listen() {
    let orb = builder().build().unwrap();
    let reference = server::serve(&orb).unwrap();
    let client_orb = builder().listen(Endpoint::nowhere()).build().unwrap();
    let tally = client::run(&client_orb, &reference, &mut |_| {}).unwrap();
    assert!(tally.is_good() && tally.run == 7, "{tally:#?}");
    client_orb.shutdown().unwrap();
    orb.shutdown().unwrap();
}
