//! The service contexts that were sent on a connection, for those that are sent once.

use spandrel_sync::atomic::Ordering;

use super::ClientConnection;

/// The bit of the code sets.
pub(crate) const CODE_SETS: u8 = 1;
/// The bit of the listen points.
pub(crate) const LISTEN_POINTS: u8 = 2;

impl ClientConnection {
    /// The contexts that were sent: [`CODE_SETS`], [`LISTEN_POINTS`].
    pub(crate) fn sent_contexts(&self) -> u8 {
        self.sent_contexts.load(Ordering::Acquire)
    }

    /// Marks further contexts as sent.
    pub(crate) fn mark_sent(&self, contexts: u8) {
        self.sent_contexts.fetch_or(contexts, Ordering::Release);
    }

    /// Whether no context is left to be sent on the connection.
    #[inline]
    pub(crate) fn has_sent_contexts(&self) -> bool {
        self.sent_contexts() == CODE_SETS | LISTEN_POINTS
    }

    /// Marks the code sets as sent, after the reply to a request with that context.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn mark_code_sets_received(&self) {
        self.mark_sent(CODE_SETS);
    }

    /// Has the listen points sent again, because there are new ones.
    pub(crate) fn resend_listen_points(&self) {
        self.sent_contexts.fetch_and(!LISTEN_POINTS, Ordering::Release);
    }
}
