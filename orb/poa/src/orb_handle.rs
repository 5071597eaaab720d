//! The ORB that adapters and their managers belong to, until it has ended.

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::Orb;
use spandrel_sync::Mutex;

/// Shared by all adapters and managers of one ORB, which are known as such by having the same.
pub(crate) struct LiveOrb(Mutex<Option<Orb>>);

impl LiveOrb {
    pub(crate) fn new(orb: Orb) -> Self {
        Self(Mutex::new(Some(orb)))
    }

    /// The ORB; BAD_INV_ORDER once it has ended.
    pub(crate) fn get(&self) -> Result<Orb, SystemException> {
        let orb = self.0.lock().clone();
        orb.ok_or_else(|| SystemException::bad_inv_order(minor::ORB_HAS_SHUTDOWN, CompletionStatus::No))
    }

    /// The ORB has ended, and would otherwise keep itself.
    pub(crate) fn let_go(&self) {
        let orb = self.0.lock().take();
        drop(orb);
    }
}
