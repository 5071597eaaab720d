//! The state of a store that its threads share: the open database, and the changes that wait for it.

use spandrel::net::sync::{Arc, RwLock};
use spandrel_store::{Backup, Done, GroupCommit, Storage, catch_damage};

use super::change::{Change, Outcome};
use super::failure::{Failure, unavailable};
use super::opened::{Opened, reopening};
use super::options::{RedbStoreOptions, Synchronization};
use super::query::Query;
use super::tables::Snapshot;
use crate::store::StoreError;

/// The parts of a store that its threads share.
pub(super) struct Shared {
    /// `None` after an error, until the database has been opened again.
    pub(super) opened: RwLock<Option<Opened>>,
    pub(super) storage: Storage,
    pub(super) options: RedbStoreOptions,
    pub(super) commits: GroupCommit<Change, Outcome>,
}

impl Shared {
    /// Runs an operation on the open database, which is opened again if necessary.
    fn with<T>(&self, operation: impl FnOnce(&Opened) -> Result<T, Failure>) -> Result<T, StoreError> {
        let outcome = {
            let mut opened = self.opened.read();
            if opened.is_none() {
                drop(opened);
                self.reopen()?;
                opened = self.opened.read();
            }
            match &*opened {
                // A file that was damaged while it was open may make `redb` panic.
                Some(opened) => catch_damage(|| operation(opened)),
                None => return Err(unavailable(redb::Error::PreviousIo)), // it failed again meanwhile
            }
        };
        outcome.map_err(|failure| match failure {
            Failure::Store(error) => error,
            Failure::Database(error) => unavailable(self.close(error)),
            Failure::Commit(error) => StoreError::Uncertain(Arc::new(self.close(error))),
        })
    }

    /// Closes the database after an error; the next operation opens it again.
    fn close(&self, error: redb::Error) -> redb::Error {
        let opened = self.opened.write().take();
        _ = catch_damage(|| {
            drop(opened);
            Ok::<_, redb::Error>(())
        });
        tracing::error!(%error, "the naming store failed, and is opened again");
        error
    }

    fn reopen(&self) -> Result<(), StoreError> {
        let mut opened = self.opened.write();
        if opened.is_none() {
            *opened = Some(Opened::open(&self.storage, &self.options).map_err(reopening)?);
        }
        Ok(())
    }

    /// Runs a query on the state with all changes.
    pub(super) fn query<Q: Query>(&self, query: Q) -> Result<Q::Output, StoreError> {
        self.with(|opened| opened.query(query))
    }

    /// Begins a copy of the state after the last commit.
    pub(super) fn begin_backup(&self) -> Result<Backup, StoreError> {
        self.with(|opened| Ok(opened.begin_backup()?))
    }

    /// Runs an operation on the state after the last commit.
    pub(super) fn read_snapshot<T>(
        &self,
        operation: impl FnOnce(&Arc<Snapshot>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.with(|opened| operation(&opened.snapshot()?))
    }

    pub(super) fn submit(&self, change: Change) -> Outcome {
        self.commits.submit(change, |changes| self.apply(&changes))
    }

    /// As [`submit`](Self::submit), and calls `done` with the outcome. Does not wait for the commit of another thread.
    pub(super) fn submit_then(&self, change: Change, done: Done<Outcome>) {
        self.commits.submit_then(change, done, |changes| self.apply(&changes));
    }

    /// Applies changes in one transaction. If it fails, all are made or none.
    pub(super) fn apply(&self, changes: &[Change]) -> Vec<Outcome> {
        let applied = self.with(|opened| {
            // After a panic it is unknown whether the changes were made.
            catch_damage(|| Ok::<_, redb::Error>(opened.apply(changes)))
                .unwrap_or_else(|error| Err(Failure::Commit(error)))
        });
        applied.unwrap_or_else(|error| changes.iter().map(|_| Err(error.clone())).collect())
    }

    /// Writes all changes to the file of the database.
    pub(super) fn synchronize(&self) -> Result<(), StoreError> {
        self.with(Opened::synchronize)
    }

    /// As [`synchronize`](Self::synchronize), for the last time.
    pub(super) fn end(&self) {
        let is_open = self.opened.read().is_some();
        if let Some(Err(error)) = is_open.then(|| self.synchronize()) {
            match self.options.synchronization {
                Synchronization::Always => tracing::warn!(%error, "the redo log of the naming store remains in use"),
                Synchronization::Every(_) => {
                    tracing::error!(%error, "the last changes of the naming store could not be written");
                }
            }
        }
    }
}
