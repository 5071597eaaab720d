//! The reasons why a store cannot be opened or changed.

use std::io;
use std::path::PathBuf;

use spandrel::{CompletionStatus, SystemException};

use crate::service::Service;

/// A store that could not be opened, with its file.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the store {}: {cause}", .file.display())]
pub struct OpenError {
    /// The file of the database; empty for other storage.
    pub file: PathBuf,
    /// The obstacle, with a remedy if there is one.
    #[source]
    pub cause: OpenCause,
}

/// The reason why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenCause {
    /// Another process has the file open.
    #[error("another process uses it")]
    InUse,
    /// The store belongs to another service.
    #[error("it is the store of {0}")]
    OtherService(Service),
    /// Another version of the service wrote the store.
    #[error("its version is {found}, and this program reads version {expected}")]
    Version {
        /// The version of the tables.
        found: u64,
        /// The version that this program reads and writes.
        expected: u64,
    },
    /// A database that is no store, or a damaged header.
    #[error("{0}")]
    NoStore(String),
    /// A record that the service did not write.
    #[error("it is damaged: {0}")]
    Contents(String),
    /// The file cannot be read or written, or is damaged.
    #[error(transparent)]
    Database(redb::Error),
    /// The redo log cannot be read or written, is missing, is damaged, or belongs to another store.
    #[error("cannot use its redo log {}: {cause} (the command `recover` drops the changes that cannot be read)", .file.display())]
    RedoLog {
        /// The file of the log.
        file: PathBuf,
        /// The error of the redo log.
        #[source]
        cause: RedoLogError,
    },
}

/// The reason why a redo log cannot be replayed or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedoLogError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file does not exist, has no records, or has become shorter, and the store was not closed in order.
    #[error("it has {octets} of {size} octets, and the last changes of the store are missing")]
    Incomplete {
        /// The size of the file, without sectors of zeros at its end.
        octets: u64,
        /// The size that the file had.
        size: u64,
    },
    /// The file is no redo log, or its header is damaged.
    #[error("it is no redo log, or its header is damaged")]
    Header,
    /// The log is that of another store.
    #[error("it belongs to another store, and has {changes} changes")]
    OtherStore {
        /// The number of its records.
        changes: usize,
    },
    /// The store was replaced by an older copy.
    #[error("it is newer than the store, and has {changes} changes that the store has not")]
    Newer {
        /// The number of its records.
        changes: usize,
    },
    /// The log was replaced by an older copy.
    #[error("it is older than the store, whose last changes are missing")]
    Older,
    /// A record cannot be read.
    #[error("it is damaged at octet {offset}, after {sound} changes; {later} later ones can be read")]
    Damaged {
        /// The place of the first octets that cannot be read.
        offset: usize,
        /// The number of records before them.
        sound: usize,
        /// The number of records behind them.
        later: usize,
    },
    /// A record has contents that this version does not know.
    #[error("a record cannot be repeated: {0}")]
    Contents(String),
}

impl<E: Into<redb::Error>> From<E> for OpenCause {
    fn from(error: E) -> Self {
        match error.into() {
            redb::Error::DatabaseAlreadyOpen => Self::InUse,
            error => Self::Database(error),
        }
    }
}

/// The failure of an operation on a [`StoreFile`](crate::StoreFile). The next operation opens the store again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreFileError {
    /// The store could not be opened again after an earlier failure.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file cannot be used, and nothing was changed.
    #[error("cannot use the store {}: {cause}", .file.display())]
    Unavailable {
        /// The file of the database.
        file: PathBuf,
        /// The error of the database.
        #[source]
        cause: Box<redb::Error>,
    },
    /// The change was made or not.
    #[error("cannot use the store {}: {cause}; the change may be in the file", .file.display())]
    Uncertain {
        /// The file of the database.
        file: PathBuf,
        /// The error of the database.
        #[source]
        cause: Box<redb::Error>,
    },
}

/// The failure of a write, as a service answers it to each of the requests that shared the write.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreFailure {
    /// The file is as it was before.
    #[error("{0}")]
    Unchanged(String),
    /// The change may be in the file.
    #[error("{0}")]
    Uncertain(String),
}

impl From<StoreFailure> for SystemException {
    /// PERSIST_STORE, whose completion status says whether the file may have the change.
    fn from(failure: StoreFailure) -> Self {
        let (completed, text) = match failure {
            StoreFailure::Unchanged(text) => (CompletionStatus::No, text),
            StoreFailure::Uncertain(text) => (CompletionStatus::Maybe, text),
        };
        Self::persist_store(0, completed).with_detail(move || text)
    }
}

impl From<StoreFileError> for StoreFailure {
    fn from(error: StoreFileError) -> Self {
        let text = error.to_string();
        match error {
            StoreFileError::Uncertain { .. } => Self::Uncertain(text),
            _ => Self::Unchanged(text),
        }
    }
}
