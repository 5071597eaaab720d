//! Endpoints at which nothing listens: their objects are reached only over connections that their own ORB has opened (bidirectional GIOP).

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
/// The port beside them. It means nothing; zero would mean that there is none.
const PORT: u16 = 1;

/// Whether no client can connect to a host of this name.
#[must_use]
pub fn is_bidirectional_only(host: &str) -> bool {
    host.ends_with(DOMAIN)
}

/// The protocol of [`Endpoint::nowhere`].
///
/// In references its endpoints look like addresses of IIOP, so that other ORBs find them among announced listen points, too.
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
        // The name must not be guessed: a peer that knows it may claim it.
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
