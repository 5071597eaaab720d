//! Whether an ORB's connections carry requests of both sides.

use spandrel_giop::ListenPoint;
use spandrel_sync::Arc;
use spandrel_transport::Address;

use super::Orb;
use crate::{BidirectionalPolicy, client::ClientConnection};

impl Orb {
    /// Whether requests of both sides go over one connection where the peer agrees.
    #[must_use]
    #[inline]
    pub fn is_bidirectional(&self) -> bool {
        self.bidirectional().is_on()
    }

    /// An adapter has this policy, and its references are to be good for it.
    pub fn note_bidirectional_policy(&self, policy: BidirectionalPolicy) {
        if policy == BidirectionalPolicy::Both {
            self.enable_bidirectional(false);
        }
    }

    /// Has connections be used by both sides from now on, for the sake of an adapter or, `for_all`, of those that have no policy of their own.
    pub(crate) fn enable_bidirectional(&self, for_all: bool) {
        if self.bidirectional().begin(for_all) {
            // They were introduced as connections of one way.
            self.peers().resend_contexts();
        }
    }

    /// Whether the object may be called over connections that this side has opened.
    pub(crate) fn takes_callbacks(&self, object_key: &[u8]) -> bool {
        let own = self.adapter().and_then(|adapter| adapter.bidirectional_policy(object_key));
        own.map_or(self.bidirectional().is_default(), |own| own == BidirectionalPolicy::Both)
    }

    /// A client has announced these points on a connection from `place`: requests to those that are credible will go by `adopt`.
    pub(crate) fn note_listen_points(
        &self,
        points: &[ListenPoint],
        from: &Address,
        adopt: impl Fn() -> Arc<ClientConnection>,
    ) {
        self.bidirectional().note(points, from, self.published_already().as_ref(), adopt);
    }
}
