//! The suites that run over the transports of one host, and what references to such servers say.

#[path = "../asynchronous.rs"]
mod asynchronous;
#[path = "../calls.rs"]
mod calls;
#[path = "../code_sets.rs"]
mod code_sets;
#[path = "../dynamic.rs"]
mod dynamic;
#[path = "../findings.rs"]
mod findings;
#[path = "../hostile.rs"]
mod hostile;
#[path = "../interceptor_contexts.rs"]
mod interceptor_contexts;
#[path = "../policies.rs"]
mod policies;
#[path = "../review.rs"]
mod review;
#[path = "../server_interceptors.rs"]
mod server_interceptors;
#[path = "../shutdown.rs"]
mod shutdown;
#[path = "../slow.rs"]
mod slow;
#[path = "../threads.rs"]
mod threads;
#[path = "../waiting.rs"]
mod waiting;

use spandrel_giop::{IiopProfile, local_address::LocalAddress};
use spandrel_orb_tests::Server;

/// What the one address inside of the host is of, in references to a server's object.
pub(crate) fn scheme_in_references() -> String {
    let server = Server::start();
    let profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let mut addresses = profile.components.iter().filter_map(|component| LocalAddress::decode(component).unwrap());
    let address = addresses.next().expect("there is one");
    assert_eq!(addresses.next(), None);
    address.scheme
}
