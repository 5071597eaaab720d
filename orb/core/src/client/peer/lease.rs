//! The lease of a peer's connection to one call.

use std::ops::Deref;

use spandrel_sync::Arc;

use super::{ClientConnection, Peer};

/// A connection for the time of one call.
#[derive(Debug)]
pub(crate) struct Lease<P: Deref<Target = Peer>> {
    pub(super) peer: P,
    pub(super) connection: Arc<ClientConnection>,
    /// Whether it was opened for this lease, so that it cannot have been closed while it was idle.
    pub(crate) fresh: bool,
}

impl<P: Deref<Target = Peer>> Lease<P> {
    /// Leases a connection that the peer has opened, and that the pool does not count.
    pub(crate) fn of(peer: P, connection: Arc<ClientConnection>) -> Self {
        Self { peer, connection, fresh: false }
    }
}

impl<P: Deref<Target = Peer>> Deref for Lease<P> {
    type Target = Arc<ClientConnection>;

    fn deref(&self) -> &Arc<ClientConnection> {
        &self.connection
    }
}

impl<P: Deref<Target = Peer>> Drop for Lease<P> {
    fn drop(&mut self) {
        self.peer.pool.lock().release(&self.connection);
        if self.peer.cache.tracks_releases()
            && let Some(limits) = self.peer.settings.limits
        {
            (limits.record_release)(&self.peer, &self.connection);
        }
    }
}
