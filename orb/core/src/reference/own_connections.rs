//! Connections that only some references use.
//!
//! References share the connections of their ORB to a server's address, unless they have a group of their own
//! ([`ConnectionGroup`]). Binding policies give them one, such as those of Real-time CORBA for private connections and for
//! bands of priorities. The connections of a group count against the same limits, and close after the same idle time.

use spandrel_giop::SystemException;
use spandrel_sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{ObjectRef, Orb, client::destination::Destination, orb::WeakOrb};

/// Gives the calls of a reference connections of their own. A program without such references does not contain them.
pub(crate) trait OwnConnections: Send + Sync + std::fmt::Debug {
    /// The destinations with the group's own connections.
    ///
    /// # Errors
    /// The exception of calls that the group does not permit.
    fn adopt(&self, orb: &Orb, destinations: Vec<Destination>) -> Result<Vec<Destination>, SystemException>;
}

/// Connections that the references of one group share: at most one to each address. They close when the last reference
/// is dropped.
#[derive(Debug)]
pub struct ConnectionGroup {
    orb: WeakOrb,
    /// Unique among the groups of this process.
    number: u64,
}

impl ConnectionGroup {
    /// A group without references.
    #[must_use]
    pub fn new(orb: &Orb) -> Arc<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self { orb: WeakOrb::of(orb), number: LAST.fetch_add(1, Ordering::Relaxed) + 1 })
    }
}

impl OwnConnections for ConnectionGroup {
    fn adopt(&self, orb: &Orb, mut destinations: Vec<Destination>) -> Result<Vec<Destination>, SystemException> {
        for destination in &mut destinations {
            destination.peer = orb.peers().own_peer(&destination.peer, destination.text.chosen(), self.number);
        }
        Ok(destinations)
    }
}

impl Drop for ConnectionGroup {
    fn drop(&mut self) {
        if let Some(orb) = self.orb.upgrade() {
            orb.peers().remove_group(self.number);
        }
    }
}

impl ObjectRef {
    /// A reference to the same object whose calls use the connections of this group. It has the same policies, is not
    /// bound yet, and inherits no forwarding.
    #[must_use]
    pub fn with_connections(&self, group: &Arc<ConnectionGroup>) -> Self {
        self.with_own_connections(Arc::clone(group) as Arc<dyn OwnConnections>)
    }
}
