//! The place that a request has among those of its origin that are answered later.

use spandrel_orb::{cancellation::CancellationSource, deadlines::RequestDeadline};
use spandrel_sync::Arc;

use super::origin::RequestOrigin;

/// A place among the deferred calls of an origin. A request that is deferred again while it is answered keeps it: it is not in its own way.
#[derive(Debug)]
pub(super) struct DeferredSlot {
    pub(super) origin: Arc<dyn RequestOrigin>,
    pub(super) key: u64,
    pub(super) is_one_way: bool,
    pub(super) cancellation: Arc<CancellationSource>,
    /// Until when it is worth anything, if its client has said.
    pub(super) due: Option<RequestDeadline>,
}

impl Drop for DeferredSlot {
    fn drop(&mut self) {
        // In a copy of the process it is the original's.
        if !self.origin.orb().is_copied() {
            self.cancellation.mark_answered();
            self.origin.leave_deferred(self.key);
        }
    }
}
