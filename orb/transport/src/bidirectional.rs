//! Endpoints without a listening socket: their objects are called only over connections that their own ORB
//! opened (bidirectional GIOP).

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io,
};

use crate::{
    address::{Address, IIOP},
    endpoint::Endpoint,
    listener::{Listener, ListenerSource, PublishedAddresses},
    protocol::{ServerProtocol, SocketSettings},
};

/// The end of the host names in such references: no host can have such a name (RFC 2606).
const DOMAIN: &str = ".bidir.invalid";
/// The port of such references. Any number but zero, which would mean that there is none.
const PORT: u16 = 1;

/// Whether `host` is the name of an endpoint without a listening socket.
#[must_use]
pub fn is_bidirectional_only(host: &str) -> bool {
    host.ends_with(DOMAIN)
}

/// The protocol of [`Endpoint::nowhere`].
///
/// In references its endpoints look like IIOP addresses, so that other ORBs too find them among listen
/// points.
#[derive(Clone, Copy, Debug, Default)]
pub struct BidirectionalOnly;

impl ServerProtocol for BidirectionalOnly {
    fn scheme(&self) -> &'static str {
        "bidir"
    }

    fn listen(&self, endpoint: &Endpoint, _settings: &SocketSettings) -> io::Result<Listener> {
        if !endpoint.address().is_empty() {
            return Err(endpoint.invalid("it has no address"));
        }
        // The name must be unpredictable: a peer that knows it may claim it.
        let [one, other] = [(); 2].map(|()| RandomState::new().build_hasher().finish());
        let host = format!("spandrel-{one:016x}{other:016x}{DOMAIN}");
        let address = Address::at_port(IIOP, &host, PORT);
        let published = PublishedAddresses {
            addresses: vec![address.clone()],
            hosts: vec![(host, PORT)],
            ..PublishedAddresses::default()
        };
        Ok(Listener::new(address, published, ListenerSource::Nothing))
    }
}
