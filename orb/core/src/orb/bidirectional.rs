//! Bidirectional use of an ORB's connections.

use super::Orb;
use crate::BidirectionalPolicy;

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
}
