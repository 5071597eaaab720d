//! The bounds of filters, and the memory of all their constraints.

use spandrel::net::sync::Arc;
use spandrel::{CompletionStatus, SystemException};
use spandrel_delivery::{EventMemory, MemoryCharge};

use crate::limits::Limits;

/// The bounds that filters share.
#[derive(Clone, Debug)]
pub(crate) struct FilterBounds {
    pub(crate) limits: Limits,
    pub(crate) memory: Arc<EventMemory>,
}

impl FilterBounds {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, memory: EventMemory::new(limits.filter_octets) }
    }

    /// Charges the memory for constraints and results.
    ///
    /// # Errors
    /// IMP_LIMIT if all filters together take too much.
    pub(crate) fn charge(&self, octets: usize) -> Result<MemoryCharge, SystemException> {
        self.memory.charge(octets).ok_or_else(|| {
            let bound = self.limits.filter_octets;
            let detail = move || format!("all filters together have more than {bound} octets");
            SystemException::imp_limit(0, CompletionStatus::No).with_detail(detail)
        })
    }
}
