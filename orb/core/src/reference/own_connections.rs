//! Connections that only some references use.
//!
//! References share the connections of their ORB to a server's address, unless they have a group of their own
//! ([`ConnectionGroup`]). Binding policies give them one, such as those of Real-time CORBA for private connections and for
//! bands of priorities. The connections of a group count against the same limits, and close after the same idle time.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering}; // numbers, on which no model decides

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::Arc;

use spandrel_transport::{DIOP, SocketSettings};

use crate::{ObjectRef, Orb, client::destination::Destination, orb::WeakOrb};

/// The part of binding policies in a reference: connections of its own, or the state that the policies keep for it. A
/// program without binding policies contains neither.
pub(crate) trait ReferenceBinding: Any + Send + Sync {
    /// Whether it gives the reference connections of its own.
    fn has_connections(&self) -> bool;

    /// The destinations with the reference's own connections, if it has some.
    ///
    /// # Errors
    /// The exception of calls that the connections do not permit.
    fn adopt(&self, orb: &Orb, destinations: Vec<Destination>) -> Result<Vec<Destination>, SystemException>;
}

/// The state that binding policies keep for a reference.
pub(crate) struct BindingState<T>(pub(crate) T);

impl<T: Any + Send + Sync> ReferenceBinding for BindingState<T> {
    fn has_connections(&self) -> bool {
        false
    }

    fn adopt(&self, _: &Orb, destinations: Vec<Destination>) -> Result<Vec<Destination>, SystemException> {
        Ok(destinations)
    }
}

/// Connections that the references of one group share: at most one to each address. They close when the last reference
/// is dropped.
#[derive(Debug)]
pub struct ConnectionGroup {
    orb: WeakOrb,
    /// Unique among the groups of this process.
    number: u64,
    /// The protocols that connections may have, the preferred one first; `None` for those of the ORB.
    protocols: Option<Vec<GroupProtocol>>,
}

/// A protocol of a group's connections, with their sockets.
#[derive(Clone, Copy, Debug)]
pub struct GroupProtocol {
    /// The scheme of its addresses, such as `iiop`. That of datagrams permits them for one-ways.
    pub scheme: &'static str,
    /// The buffer sizes and other options of sockets of this protocol.
    pub sockets: SocketSettings,
}

impl ConnectionGroup {
    /// A group whose connections may have any of the ORB's protocols. No reference uses it yet.
    #[must_use]
    pub fn new(orb: &Orb) -> Arc<Self> {
        Self::with_protocols(orb, None)
    }

    /// A group whose connections have only these protocols, the preferred one first; `None` for those of the ORB.
    #[must_use]
    pub fn with_protocols(orb: &Orb, protocols: Option<Vec<GroupProtocol>>) -> Arc<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(Self { orb: WeakOrb::of(orb), number, protocols })
    }
}

impl ReferenceBinding for Arc<ConnectionGroup> {
    fn has_connections(&self) -> bool {
        true
    }

    fn adopt(&self, orb: &Orb, mut destinations: Vec<Destination>) -> Result<Vec<Destination>, SystemException> {
        let Some(protocols) = &self.protocols else {
            destinations.iter_mut().for_each(|destination| self.give_peer(orb, destination, None));
            return Ok(destinations);
        };
        let mut permitted = Vec::new();
        let sends_datagrams = protocols.iter().any(|protocol| protocol.scheme == DIOP);
        for GroupProtocol { scheme, sockets } in protocols {
            for mut destination in
                destinations.extract_if(.., |destination| destination.peer.address().scheme() == *scheme)
            {
                self.give_peer(orb, &mut destination, Some(sockets));
                if !sends_datagrams {
                    destination.forbid_datagrams();
                }
                permitted.push(destination);
            }
        }
        if permitted.is_empty() {
            return Err(SystemException::inv_policy(minor::POLICY_CONFLICT, CompletionStatus::No)
                .with_detail("the reference has no address of the protocols that the policies permit"));
        }
        Ok(permitted)
    }
}

impl ConnectionGroup {
    fn give_peer(&self, orb: &Orb, destination: &mut Destination, sockets: Option<&SocketSettings>) {
        let peer = orb.peers().own_peer(&destination.peer, destination.text.chosen(), self.number, sockets);
        destination.peer = peer;
    }
}

impl Drop for ConnectionGroup {
    fn drop(&mut self) {
        if let Some(orb) = self.orb.upgrade() {
            orb.peers().remove_group(self.number);
        }
    }
}

impl Orb {
    /// The settings of the sockets of this ORB's calls.
    #[doc(hidden)]
    #[must_use]
    pub fn socket_settings(&self) -> SocketSettings {
        self.peers().socket_settings()
    }
}

impl ObjectRef {
    /// A reference to the same object whose calls use the connections of this group. It has the same policies, is not
    /// bound yet, and inherits no forwarding.
    #[must_use]
    pub fn with_connections(&self, group: &Arc<ConnectionGroup>) -> Self {
        self.with_own_connections(Box::new(Arc::clone(group)))
    }
}
