//! Bidirectional GIOP: requests of both sides over one connection, for clients that nobody can connect to (CORBA 3.3 Part 2, 9.8 and 9.9).
//!
//! An ORB that is bidirectional says in the first request of each connection that it opens which addresses its references name, and takes requests
//! over it ([`connection_contexts`](crate::connection_contexts)). As a server it remembers what is [announced], as far as that is [credible](trust), and sends requests to such an
//! address over the connection on which it was said. One setting is for both: [`OrbBuilder::bidirectional`](crate::OrbBuilder::bidirectional).
//!
//! How a connection carries requests of both sides belongs to `client` and `server`.

mod announced_addresses;
mod policy;
mod trust;

use spandrel_giop::{ListenPoint, ServiceContext};
use spandrel_sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use spandrel_transport::{Address, PublishedAddresses};

use announced_addresses::AnnouncedAddresses;
pub use policy::BidirectionalPolicy;

use crate::client::ClientConnection;

/// What an ORB has of it.
#[derive(Debug)]
pub(crate) struct Bidirectional {
    /// Connections are used by both sides.
    is_on: AtomicBool,
    /// By those adapters, too, that have no policy of their own.
    is_default: AtomicBool,
    /// What is announced is believed, whatever it is.
    is_credulous: bool,
    announced: AnnouncedAddresses,
}

impl Bidirectional {
    pub(crate) fn new(is_on: bool, is_credulous: bool) -> Self {
        Self {
            is_on: AtomicBool::new(is_on),
            is_default: AtomicBool::new(is_on),
            is_credulous,
            announced: AnnouncedAddresses::default(),
        }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Whether those adapters use it, too, that have no policy of their own.
    pub(crate) fn is_default(&self) -> bool {
        self.is_default.load(Ordering::Relaxed)
    }

    /// Connections are used by both sides from now on: for the sake of an adapter, or `for_all`. True if they were not before.
    pub(crate) fn begin(&self, for_all: bool) -> bool {
        self.is_default.fetch_or(for_all, Ordering::Relaxed);
        !self.is_on.swap(true, Ordering::SeqCst)
    }

    /// A client has announced these points on a connection from `address`: requests to those that are credible will go by `adopt`. `own`: where
    /// this ORB listens itself.
    pub(crate) fn note(
        &self,
        points: &[ListenPoint],
        from: &Address,
        own: Option<&PublishedAddresses>,
        adopt: impl Fn() -> Arc<ClientConnection>,
    ) {
        for point in points {
            let doubt = match self.is_credulous {
                true => None,
                false => trust::doubt(&point.host, from),
            };
            for address in addresses(point, from) {
                let is_own = own.is_some_and(|own| own.addresses.contains(&address));
                let doubt = doubt.or(is_own.then_some("it is this ORB's own"));
                let entered = match doubt {
                    Some(doubt) => Err(doubt),
                    None => self.announced.enter(&address, &adopt(), from),
                };
                match entered {
                    Ok(()) => tracing::debug!(%address, %from, "reached over its client's own connection"),
                    Err(reason) => tracing::warn!(%address, %from, reason, "a listen point is not believed"),
                }
            }
        }
    }

    /// A connection that the peer at this place has opened itself.
    pub(crate) fn find(&self, address: &Address, code_sets: Option<&ServiceContext>) -> Option<Arc<ClientConnection>> {
        self.announced.find(address, code_sets)
    }

    /// An adopted connection has ended.
    pub(crate) fn forget(&self, connection: &Arc<ClientConnection>) {
        self.announced.forget(connection);
    }
}

/// The places that references with this address may mean.
fn addresses(point: &ListenPoint, from: &Address) -> Vec<Address> {
    let mut addresses = vec![Address::at_port(spandrel_transport::IIOP, &point.host, point.port)];
    if from.host_and_port().is_some() && from.scheme() != spandrel_transport::IIOP {
        // The context does not say which protocol listens there (9.8.1.1).
        addresses.push(Address::at_port(from.scheme().to_owned(), &point.host, point.port));
    }
    addresses
}
