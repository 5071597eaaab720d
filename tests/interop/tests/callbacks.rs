//! Call-backs: our client against our server, in one process.

use spandrel::Endpoint;
use spandrel_interop::callbacks::{builder, client, server};

#[test]
fn servers_call_clients_that_listen_nowhere() {
    let orb = builder().build();
    let reference = server::serve(&orb).unwrap();
    let client_orb = builder().listen(Endpoint::nowhere()).build();
    let mut failures = Vec::new();
    let mut say = |line: &str| {
        if !line.starts_with("ok ") {
            failures.push(line.to_owned());
        }
    };
    let tally = client::run(&client_orb, &reference, &mut say).unwrap();
    assert!(tally.is_good() && tally.run == 7, "{tally}:\n{}", failures.join("\n"));
    client_orb.shutdown(true).unwrap();
    orb.shutdown(true).unwrap();
}
