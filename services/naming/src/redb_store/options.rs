//! The settings of a store, and the errors of its opening.

use std::path::PathBuf;
use std::time::Duration;

use crate::redo_log::RedoLogError;

/// When changes are written to the disk.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Synchronization {
    /// Before they are acknowledged: they survive a loss of power.
    #[default]
    Always,
    /// At intervals: the changes since the last one are lost with the process.
    Every(Duration),
}

/// The settings of a [`RedbStore`](crate::RedbStore).
#[derive(Clone, Debug)]
pub struct RedbStoreOptions {
    /// When changes are written to the disk.
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

/// The reason why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the file open.
    #[error("cannot open the store {}: another process uses it", .0.display())]
    InUse(PathBuf),
    /// The file has another format.
    #[error("cannot open the store {}: its format is {found}, and this version reads formats 1 and 2", .file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// The format of the file.
        found: u64,
    },
    /// The file cannot be read or written, or is damaged.
    #[error("cannot open the store {}", .file.display())]
    Database {
        /// The file.
        file: PathBuf,
        /// The reason.
        #[source]
        cause: redb::Error,
    },
    /// The redo log cannot be read or written, is missing, or is damaged.
    #[error("cannot use the redo log {}", .file.display())]
    RedoLog {
        /// The file of the log.
        file: PathBuf,
        /// The reason.
        #[source]
        cause: RedoLogError,
    },
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
