//! Adaptive demultiplexing: the next request of a connection most likely has the target and the operation of
//! the last one (paper 003).
//!
//! A prediction holds only indexes, into the adapter and into the table of operations. Its users
//! (`operation_lookup`; the active object map, `objects` of `spandrel-poa`) check that the entry there is the
//! one that the request names. So a stale prediction is useless but harmless.

use spandrel_sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The value of `target` without a prediction.
const NO_TARGET: u64 = u64::MAX;

/// The target and the operation of a connection's last request.
#[derive(Debug)]
pub(crate) struct Prediction {
    target: AtomicU64,
    operation: AtomicU32,
}

impl Default for Prediction {
    fn default() -> Self {
        Self { target: AtomicU64::new(NO_TARGET), operation: AtomicU32::new(0) }
    }
}

impl Prediction {
    /// The adapter's index of the last object.
    #[inline]
    pub(crate) fn target(&self) -> Option<u64> {
        Some(self.target.load(Ordering::Relaxed)).filter(|index| *index != NO_TARGET)
    }

    #[inline]
    pub(crate) fn set_target(&self, index: u64) {
        self.target.store(index, Ordering::Relaxed);
    }

    /// The index of the last operation, of any interface.
    #[inline]
    pub(crate) fn operation(&self) -> usize {
        self.operation.load(Ordering::Relaxed) as usize
    }

    #[inline]
    pub(crate) fn set_operation(&self, operation: usize) {
        // The index fits, because tables use 16 bits for indexes.
        self.operation.store(operation as u32, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_predicted_before_a_request() {
        let prediction = Prediction::default();
        assert_eq!(prediction.target(), None);
        prediction.set_target(0);
        prediction.set_operation(7);
        assert_eq!((prediction.target(), prediction.operation()), (Some(0), 7));
    }
}
