//! Adaptive demultiplexing: the next request of a connection is most likely for what the last one was for (paper 003).
//!
//! What is remembered are places only, in the adapter and in the table of operations. Whoever uses one looks whether what is there now
//! is what the request names, so that a prediction that has become stale is worth nothing, and does no harm.

use spandrel_sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Nothing is predicted.
const NOWHERE: u64 = u64::MAX;

/// What the last request of a connection was for.
#[derive(Debug)]
pub(crate) struct Prediction {
    target: AtomicU64,
    operation: AtomicU32,
}

impl Default for Prediction {
    fn default() -> Self {
        Self { target: AtomicU64::new(NOWHERE), operation: AtomicU32::new(0) }
    }
}

impl Prediction {
    /// The adapter's place of the last object.
    #[inline]
    pub(super) fn target(&self) -> Option<u64> {
        Some(self.target.load(Ordering::Relaxed)).filter(|index| *index != NOWHERE)
    }

    #[inline]
    pub(super) fn set_target(&self, index: u64) {
        self.target.store(index, Ordering::Relaxed);
    }

    /// The index of the last operation, of whatever interface.
    #[inline]
    pub(super) fn operation(&self) -> usize {
        self.operation.load(Ordering::Relaxed) as usize
    }

    #[inline]
    pub(super) fn set_operation(&self, operation: usize) {
        // Indexes fit: tables have 16 bits for them.
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
