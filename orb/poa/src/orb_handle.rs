//! The ORB of adapters and managers, until its end.

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::Orb;
use spandrel_sync::Mutex;

/// Shared by all adapters and managers of one ORB; equal pointers mean the same ORB.
pub(crate) struct OrbHandle(Mutex<Option<Orb>>);

impl OrbHandle {
    pub(crate) fn new(orb: Orb) -> Self {
        Self(Mutex::new(Some(orb)))
    }

    /// The ORB; BAD_INV_ORDER after its end.
    pub(crate) fn get(&self) -> Result<Orb, SystemException> {
        let orb = self.0.lock().clone();
        orb.ok_or_else(|| SystemException::bad_inv_order(minor::ORB_HAS_SHUTDOWN, CompletionStatus::No))
    }

    /// Releases the ORB at its end; otherwise it would keep itself alive.
    pub(crate) fn release(&self) {
        let orb = self.0.lock().take();
        drop(orb);
    }
}
