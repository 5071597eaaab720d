//! The settings of a store.

use std::time::Duration;

/// The time at which changes are on the disk: a choice between speed and the loss of the last ones.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Synchronization {
    /// Before they are acknowledged: they survive a loss of power.
    #[default]
    Always,
    /// At intervals: the changes since the last one are lost with the process.
    Every(Duration),
}

/// The durability, the cache and the redo log of a [`RedbStore`](crate::RedbStore).
#[derive(Clone, Debug)]
pub struct RedbStoreOptions {
    /// The time at which changes are on the disk.
    pub synchronization: Synchronization,
    /// The memory for pages that were read or are to be written, in octets.
    pub cache: usize,
    /// The size of the redo log in octets. Its changes are repeated at the next opening after a failure.
    pub log_size: u64,
}

impl Default for RedbStoreOptions {
    fn default() -> Self {
        Self { synchronization: Synchronization::Always, cache: 256 << 20, log_size: 128 << 10 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_durable_by_default_with_a_log_of_128_kib() {
        let RedbStoreOptions { synchronization, cache, log_size } = RedbStoreOptions::default();
        assert_eq!((synchronization, cache, log_size), (Synchronization::Always, 268_435_456, 131_072));
    }
}
