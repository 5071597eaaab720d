//! The failures of operations on the database.

use std::io;
use std::sync::Arc;

use spandrel_store::AppendError;

use crate::store::StoreError;

/// The end of an operation on the database: an error of the store, or one of `redb`.
pub(super) enum Failure {
    Store(StoreError),
    Database(redb::Error),
    /// As `Database`, when a part of the transaction may have been written.
    Commit(redb::Error),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

macro_rules! failures_of_redb {
    ($($error:ident),*) => {
        $(impl From<redb::$error> for Failure {
            fn from(error: redb::$error) -> Self {
                Self::Database(error.into())
            }
        })*
    };
}
failures_of_redb!(StorageError, TableError, TransactionError, SetDurabilityError);

impl From<redb::CommitError> for Failure {
    fn from(error: redb::CommitError) -> Self {
        match error.into() {
            // The file is enlarged before the transaction becomes valid.
            redb::Error::Io(error) if error.kind() == io::ErrorKind::StorageFull => Self::Database(error.into()),
            error => Self::Commit(error),
        }
    }
}

impl From<AppendError> for Failure {
    fn from(AppendError { cause, is_erased }: AppendError) -> Self {
        // The database is as before.
        Self::Store(if is_erased { unavailable(cause.into()) } else { StoreError::Uncertain(Arc::new(cause)) })
    }
}

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Self {
        Self::Database(error)
    }
}

pub(super) fn unavailable(error: redb::Error) -> StoreError {
    StoreError::Unavailable(Arc::new(error))
}

/// An error of the verification.
pub(super) fn damage(error: redb::Error) -> StoreError {
    match error {
        redb::Error::Corrupted(reason) => StoreError::Corrupt(reason),
        error => unavailable(error),
    }
}
