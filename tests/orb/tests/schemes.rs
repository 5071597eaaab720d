//! The transport inside of the host that references to a server's object name.

use spandrel_giop::{IiopProfile, local_address::LocalAddress};
use spandrel_orb_tests::{SERVERS, Server};

#[test]
fn references_name_the_transport_inside_of_the_host() {
    let server = Server::start();
    let profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let addresses = profile.components.iter().filter_map(|component| LocalAddress::decode(component).unwrap());
    let schemes: Vec<_> = addresses.map(|address| address.scheme).collect();
    let servers = std::env::var(SERVERS).unwrap_or_default();
    assert_eq!(schemes, servers.strip_prefix("over_").as_slice());
}
