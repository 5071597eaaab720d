//! What the requests on a connection have said of it.

use spandrel_sync::atomic::Ordering;

use super::ClientConnection;

/// Which code sets are in force.
pub(crate) const CODE_SETS: u8 = 1;
/// Which listen points are reached by this connection, or that none will be.
pub(crate) const LISTEN_POINTS: u8 = 2;

impl ClientConnection {
    /// What was said: [`CODE_SETS`], [`LISTEN_POINTS`].
    pub(crate) fn sent(&self) -> u8 {
        self.sent.load(Ordering::Acquire)
    }

    /// This has been said, too.
    pub(crate) fn mark_sent(&self, what: u8) {
        self.sent.fetch_or(what, Ordering::Release);
    }

    /// True if there is nothing that a request has to say of the connection.
    #[inline]
    pub(crate) fn has_sent_contexts(&self) -> bool {
        self.sent() == CODE_SETS | LISTEN_POINTS
    }

    /// A request that says which code sets are in force has been answered.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn mark_code_sets_received(&self) {
        self.mark_sent(CODE_SETS);
    }

    /// There is something to say of listen points that there was not before.
    #[cfg(feature = "server")]
    pub(crate) fn resend_listen_points(&self) {
        self.sent.fetch_and(!LISTEN_POINTS, Ordering::Release);
    }
}
