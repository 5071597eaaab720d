//! An endpoint at which nothing listens: objects behind it are reached only over connections that their own ORB has opened.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io,
    time::Duration,
};

use spandrel_giop::IiopProfile;
use spandrel_ipc::{Interest, Pollable};
use spandrel_reactor::EventHandler;
use spandrel_sync::Arc;

use super::{Endpoint, IIOP, Listener, Place, PlaceError, Protocol, Published, SocketSettings, Transport};

/// What the names end with that stand in the references: nobody can have such a name (RFC 2606).
const DOMAIN: &str = ".bidir.invalid";
/// The port that stands there beside them. It means nothing; zero would mean that there is none.
const PORT: u16 = 1;

/// True if nobody can connect to a host of this name.
pub(crate) fn is_nowhere(host: &str) -> bool {
    host.ends_with(DOMAIN)
}

/// Listens nowhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nowhere;

impl Protocol for Nowhere {
    fn scheme(&self) -> &'static str {
        "bidir"
    }

    fn parse_place(&self, text: &str) -> Result<Place, PlaceError> {
        Err(PlaceError::new(self.scheme(), text, "nothing can be connected to there"))
    }

    /// None: in references it looks like an address of IIOP, so that other ORBs find it among what was announced, too.
    fn places(&self, _profile: &IiopProfile) -> Vec<Place> {
        Vec::new()
    }

    fn connect(&self, _: &Place, _: Option<Duration>, _: &SocketSettings) -> io::Result<Arc<dyn Transport>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn listen(&self, endpoint: &Endpoint, _settings: &SocketSettings) -> io::Result<Listener> {
        if !endpoint.address().is_empty() {
            return Err(endpoint.invalid("it has no address"));
        }
        // Nobody is to guess it: who knows the name may claim it.
        let [one, other] = [(); 2].map(|()| RandomState::new().build_hasher().finish());
        let host = format!("spandrel-{one:016x}{other:016x}{DOMAIN}");
        let place = Place::at_port(IIOP, &host, PORT);
        let published =
            Published { places: vec![place.clone()], addresses: vec![(host, PORT)], ..Published::default() };
        Ok(Listener::new(place, published, |registry, _welcome| registry.register(Nobody, Interest::NONE)))
    }
}

/// Nobody ever comes.
struct Nobody;

impl EventHandler for Nobody {
    fn pollable(&self) -> Option<&dyn Pollable> {
        None
    }
}
