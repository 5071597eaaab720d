//! The place that a request has among those of its origin that are answered later.

use spandrel_giop::SystemException;
use spandrel_sync::Arc;

use super::{cancellation::Cancellation, origin::Origin};

/// A place among the deferred calls of an origin. A request that is deferred again while it is answered keeps it: it is not in its own way.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) origin: Arc<dyn Origin>,
    pub(super) key: u64,
    pub(super) is_one_way: bool,
    pub(super) cancellation: Arc<Cancellation>,
}

impl Place {
    /// A place for a message of so many octets.
    pub(super) fn enter(
        origin: Arc<dyn Origin>,
        request_id: u32,
        is_one_way: bool,
        octets: usize,
    ) -> Result<Arc<Self>, SystemException> {
        let cancellation = Arc::<Cancellation>::default();
        let key = origin.enter_deferred(request_id, is_one_way, octets, &cancellation)?;
        Ok(Arc::new(Self { origin, key, is_one_way, cancellation }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // In a copy of the process it is the original's.
        if !self.origin.orb().is_copied() {
            self.origin.leave_deferred(self.key);
        }
    }
}
