//! The operations during which replies to earlier requests may wait: the quick ones.

use spandrel_demux::perfect;
use spandrel_sync::atomic::{AtomicU32, Ordering};

/// The operations of a server that were quick when they were last measured, by the hash of their name. Two operations
/// of one name are one.
#[derive(Debug)]
pub(crate) struct QuickOperations([AtomicU32; Self::PLACES]);

impl QuickOperations {
    /// The number of places. Operations that share one forget each other.
    const PLACES: usize = 256;

    /// The hash of an operation's name.
    pub(crate) fn hash(name: &str) -> u32 {
        perfect::hash(0, name.as_bytes()) as u32
    }

    fn slot(&self, operation: u32) -> &AtomicU32 {
        &self.0[operation as usize % Self::PLACES]
    }

    /// Whether the operation was quick when it was last measured.
    pub(crate) fn contains(&self, operation: u32) -> bool {
        self.slot(operation).load(Ordering::Relaxed) == operation
    }

    /// Records whether an operation was quick.
    pub(crate) fn record(&self, operation: u32, is_quick: bool) {
        if self.contains(operation) != is_quick {
            self.slot(operation).store(if is_quick { operation } else { !operation }, Ordering::Relaxed);
        }
    }
}

impl Default for QuickOperations {
    fn default() -> Self {
        // A value that no operation of that place has.
        Self(std::array::from_fn(|index| AtomicU32::new(!(index as u32))))
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_quick_after_a_quick_call_until_a_slow_one() {
        let quick = QuickOperations::default();
        assert!((0..1024).all(|operation| !quick.contains(operation)), "none was measured");
        quick.record(7, true);
        assert!(quick.contains(7));
        quick.record(7, false);
        assert!(!quick.contains(7));
        quick.record(7, true);
        quick.record(7 + QuickOperations::PLACES as u32, true);
        assert!(!quick.contains(7), "it has to be measured again");
    }
}
