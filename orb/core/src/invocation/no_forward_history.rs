//! Where one call has been sent to, in a program that says nothing of it: how often is enough.

use spandrel_cdr::Ior;
use spandrel_giop::{CompletionStatus, SystemException, ids};

/// Forwardings in a row before a call gives up: as good as a circle. Other addressing dispositions count as well.
const MAX_FORWARDS: u32 = 16;

#[derive(Debug, Default)]
pub(crate) struct ForwardHistory(u32);

impl ForwardHistory {
    /// One more forwarding.
    ///
    /// # Errors
    /// TRANSIENT if there were too many.
    pub(crate) fn record_forward<'i>(&mut self, _from: impl FnOnce() -> &'i Ior, _to: &Ior) -> Result<(), SystemException> {
        if self.readdress() {
            return Ok(());
        }
        Err(SystemException::transient(ids::TRANSIENT_FORWARD_LOOP, CompletionStatus::No))
    }

    pub(super) fn readdress(&mut self) -> bool {
        self.0 += 1;
        self.0 <= MAX_FORWARDS
    }
}
