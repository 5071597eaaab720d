//! Bidirectional use of an ORB's connections.

use spandrel_giop::ListenPoint;
use spandrel_sync::Arc;
use spandrel_transport::Address;

use super::Orb;
use crate::{BidirectionalPolicy, client::ClientConnection};

impl Orb {
    /// Whether connections carry requests of both sides, if the peer agrees.
    #[must_use]
    #[inline]
    pub fn is_bidirectional(&self) -> bool {
        self.bidirectional().is_on()
    }

    /// Records the policy of an adapter; `Both` enables bidirectional connections for it.
    pub fn note_bidirectional_policy(&self, policy: BidirectionalPolicy) {
        if policy == BidirectionalPolicy::Both {
            self.enable_bidirectional(false);
        }
    }

    /// Enables bidirectional connections for an adapter or, if `for_all`, for all adapters without a policy
    /// of their own.
    pub(crate) fn enable_bidirectional(&self, for_all: bool) {
        if self.bidirectional().enable(for_all) {
            // Open connections have announced themselves as unidirectional.
            self.peers().resend_contexts();
        }
    }

    /// Whether the object may be called over connections that this side has opened.
    pub(crate) fn takes_callbacks(&self, object_key: &[u8]) -> bool {
        let own = self.adapter().and_then(|adapter| adapter.bidirectional_policy(object_key));
        own.map_or(self.bidirectional().is_default(), |own| own == BidirectionalPolicy::Both)
    }

    /// Records the listen points that a client has announced on a connection from `from`. Requests to the
    /// trusted ones use the connection that `adopt` returns.
    pub(crate) fn note_listen_points(
        &self,
        points: &[ListenPoint],
        from: &Address,
        adopt: impl Fn() -> Arc<ClientConnection>,
    ) {
        self.bidirectional().record_listen_points(points, from, self.published_already().as_ref(), adopt);
    }
}
