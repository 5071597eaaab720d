//! The lease of a peer's connection to one call, and the exceptions of calls that get none.

use std::ops::Deref;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::Arc;
use spandrel_transport::Deadline;

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

/// REBIND for a call without an open connection.
pub(crate) fn no_reconnecting() -> SystemException {
    SystemException::rebind(0, CompletionStatus::No)
        .with_detail("no connection to the server is open, and the rebind policy NO_RECONNECT forbids opening one (validate_connection opens one)")
}

/// TIMEOUT for a request that was not sent.
pub(crate) fn not_sent_in_time(deadline: Option<&Deadline>) -> SystemException {
    let is_for_sending = deadline.is_some_and(Deadline::limits_sending);
    let minor = if is_for_sending { minor::REQUEST_EXPIRED } else { minor::ROUND_TRIP_EXPIRED };
    SystemException::timeout(minor, CompletionStatus::No).with_detail(
        "the deadline passed before a connection could take the request (-ORBRequestTimeout, or the timeout policy)",
    )
}
