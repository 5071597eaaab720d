//! Bidirectional GIOP: requests of both sides over one connection, for clients behind firewalls (CORBA 3.3
//! Part 2, 9.8 and 9.9).
//!
//! A bidirectional ORB announces the addresses in its references with the first request on each connection
//! that it opens, and accepts requests over it (`connection_contexts`). As a server it records [announced
//! addresses](announced_addresses) that it [trusts](trust), and sends requests for such an address over the
//! connection that announced it. One setting serves both sides:
//! [`OrbBuilder::bidirectional`](crate::OrbBuilder::bidirectional).
//!
//! The exchange of both sides' requests on a connection belongs to `client` and `server`.

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

/// An ORB's state of bidirectional GIOP.
#[derive(Debug)]
pub(crate) struct Bidirectional {
    /// Whether connections are used by both sides.
    is_on: AtomicBool,
    /// Whether adapters without a policy use it.
    is_default: AtomicBool,
    /// Whether all announced addresses are trusted.
    trusts_all: bool,
    announced: AnnouncedAddresses,
}

impl Bidirectional {
    pub(crate) fn new(is_on: bool, trusts_all: bool) -> Self {
        Self {
            is_on: AtomicBool::new(is_on),
            is_default: AtomicBool::new(is_on),
            trusts_all,
            announced: AnnouncedAddresses::default(),
        }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Whether adapters without a policy use it.
    pub(crate) fn is_default(&self) -> bool {
        self.is_default.load(Ordering::Relaxed)
    }

    /// Switches bidirectional use on: for an adapter, or `for_all`. Returns true if it was off.
    pub(crate) fn enable(&self, for_all: bool) -> bool {
        self.is_default.fetch_or(for_all, Ordering::Relaxed);
        !self.is_on.swap(true, Ordering::SeqCst)
    }

    /// Records the points that a client has announced on a connection from `from`. Requests to trusted ones
    /// are sent by `adopt`. `own`: the addresses of this ORB.
    pub(crate) fn record_listen_points(
        &self,
        points: &[ListenPoint],
        from: &Address,
        own: Option<&PublishedAddresses>,
        adopt: impl Fn() -> Arc<ClientConnection>,
    ) {
        for point in points {
            let distrust_reason = match self.trusts_all {
                true => None,
                false => trust::distrust_reason(&point.host, from),
            };
            for address in addresses(point, from) {
                let is_own = own.is_some_and(|own| own.addresses.contains(&address));
                let distrust_reason = distrust_reason.or(is_own.then_some("it is an address of this ORB"));
                let entered = match distrust_reason {
                    Some(distrust_reason) => Err(distrust_reason),
                    None => self.announced.insert(&address, &adopt(), from),
                };
                match entered {
                    Ok(()) => {
                        tracing::debug!(%address, %from, "a listen point is reached over its client's connection")
                    }
                    Err(reason) => tracing::warn!(%address, %from, reason, "a listen point is not trusted"),
                }
            }
        }
    }

    /// Returns a connection that the peer at this address has opened.
    pub(crate) fn find(&self, address: &Address, code_sets: Option<&ServiceContext>) -> Option<Arc<ClientConnection>> {
        self.announced.find(address, code_sets)
    }

    /// Removes an adopted connection that has ended.
    pub(crate) fn remove(&self, connection: &Arc<ClientConnection>) {
        self.announced.remove(connection);
    }
}

/// The addresses in references that the point may stand for.
fn addresses(point: &ListenPoint, from: &Address) -> Vec<Address> {
    let mut addresses = vec![Address::at_port(spandrel_transport::IIOP, &point.host, point.port)];
    if from.host_and_port().is_some() && from.scheme() != spandrel_transport::IIOP {
        // The context does not name the protocol (9.8.1.1).
        addresses.push(Address::at_port(from.scheme().to_owned(), &point.host, point.port));
    }
    addresses
}
