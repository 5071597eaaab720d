//! The number of forwardings of one call, in a program without descriptions of forwarding loops.

use spandrel_cdr::Ior;
use spandrel_giop::{CompletionStatus, SystemException, ids};

/// The maximum number of forwardings of a call, beyond which they count as a loop. NEEDS_ADDRESSING_MODE
/// replies count as well.
const MAX_FORWARDS: u32 = 16;

#[derive(Debug, Default)]
pub(crate) struct ForwardHistory(u32);

impl ForwardHistory {
    /// Records a forwarding.
    ///
    /// # Errors
    /// TRANSIENT for too many forwardings.
    pub(crate) fn record_forward<'i>(
        &mut self,
        _from: impl FnOnce() -> &'i Ior,
        _to: &Ior,
    ) -> Result<(), SystemException> {
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
