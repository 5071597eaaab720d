//! The same-host components of a server's references.

use spandrel_giop::{IiopProfile, local_address::LocalAddress};
use spandrel_orb_tests::{SERVERS, Server};

#[test]
fn a_reference_has_a_component_for_each_same_host_transport() {
    let server = Server::start();
    let profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let addresses = profile.components.iter().filter_map(|component| LocalAddress::decode(component).unwrap());
    let schemes: Vec<_> = addresses.map(|address| address.scheme).collect();
    let servers = std::env::var(SERVERS).unwrap_or_default();
    assert_eq!(schemes, servers.strip_prefix("over_").as_slice());
}
