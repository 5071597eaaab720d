//! What a call has of a peer while it uses one of its connections.

use std::ops::Deref;

use spandrel_sync::Arc;

use super::{ClientConnection, Peer};

/// A connection for the time of one call.
#[derive(Debug)]
pub(crate) struct Lease<P: Deref<Target = Peer>> {
    pub(super) peer: P,
    pub(super) connection: Arc<ClientConnection>,
    /// True if it was opened for this lease, so that it cannot have been closed while it lay idle.
    pub(crate) fresh: bool,
}

#[cfg_attr(not(feature = "server"), allow(dead_code, reason = "only servers adopt connections"))]
impl<P: Deref<Target = Peer>> Lease<P> {
    /// A connection that is not the peer's to count: it has opened it itself.
    pub(crate) fn of(peer: P, connection: Arc<ClientConnection>) -> Self {
        Self { peer, connection, fresh: false }
    }
}

/// What an asynchronous call gets that asks for a connection.
#[cfg(feature = "asynchronous")]
#[derive(Debug)]
pub(crate) enum LeaseResult {
    Leased(Lease<Arc<Peer>>),
    /// It is told when one may be there.
    Parked,
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
        if self.peer.cache.is_watched()
            && let Some(limits) = self.peer.settings.limits
        {
            (limits.note_release)(&self.peer, &self.connection);
        }
    }
}
