//! A database file without a redo log, which is opened again after an error.

use std::io;

use redb::{Database, ReadTransaction, ReadableDatabase as _, WriteTransaction};

use crate::backup::Backup;
use crate::damage::catch_damage;
use crate::error::{OpenError, StoreFileError};
use crate::storage::{Layout, Storage, begin_write};

/// A database whose changes are durable one by one. After an error, `redb` refuses all further work; the database is
/// then opened again by the next operation.
#[derive(Debug)]
pub struct StoreFile {
    storage: Storage,
    layout: &'static Layout,
    cache: usize,
    /// `None` after an error.
    database: Option<Database>,
}

/// The failure of a transaction.
enum Failure {
    Before(redb::Error),
    /// A part of the transaction may have been written.
    Commit(redb::Error),
}

impl<E: Into<redb::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Before(error.into())
    }
}

impl StoreFile {
    /// Opens a store, or creates it, with this many octets of memory for pages.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn open(storage: Storage, layout: &'static Layout, cache: usize) -> Result<Self, OpenError> {
        let mut file = Self { storage, layout, cache, database: None };
        file.database = Some(file.open_database()?);
        Ok(file)
    }

    /// The database file, or the memory in its place, that was opened.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Reads the state after the last change.
    ///
    /// # Errors
    /// A store that cannot be opened or read.
    pub fn read<T>(
        &mut self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreFileError> {
        self.with(|database| Ok(work(&database.begin_read()?)?))
    }

    /// Runs a function in a write transaction, and commits it durably.
    ///
    /// # Errors
    /// A store that cannot be opened or written.
    pub fn change<T>(
        &mut self,
        work: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreFileError> {
        self.with(|database| {
            let transaction = begin_write(database)?;
            let outcome = work(&transaction)?;
            transaction.commit().map_err(|error| match error.into() {
                // The file is enlarged before the transaction becomes valid.
                redb::Error::Io(error) if error.kind() == io::ErrorKind::StorageFull => Failure::Before(error.into()),
                error => Failure::Commit(error),
            })?;
            Ok(outcome)
        })
    }

    /// Begins a copy of the state after the last change. Further changes do not wait for it.
    ///
    /// # Errors
    /// A store that cannot be opened or read.
    pub fn begin_backup(&mut self) -> Result<Backup, StoreFileError> {
        let layout = self.layout;
        self.with(|database| Ok(Backup::begin(database, layout)?))
    }

    fn with<T>(&mut self, work: impl FnOnce(&Database) -> Result<T, Failure>) -> Result<T, StoreFileError> {
        let database = match self.database.take() {
            Some(database) => database,
            None => self.open_database()?,
        };
        // A panic drops the database, too.
        let outcome = catch_damage(|| {
            let outcome = work(&database)?;
            Ok::<_, Failure>((database, outcome))
        });
        let file = || self.storage.path().to_owned();
        match outcome {
            Ok((database, outcome)) => {
                self.database = Some(database);
                Ok(outcome)
            }
            Err(Failure::Before(cause)) => Err(StoreFileError::Unavailable { file: file(), cause: Box::new(cause) }),
            Err(Failure::Commit(cause)) => Err(StoreFileError::Uncertain { file: file(), cause: Box::new(cause) }),
        }
    }

    fn open_database(&self) -> Result<Database, OpenError> {
        let opened = catch_damage(|| self.storage.open(self.layout, self.cache));
        let (database, _) = opened.map_err(|cause| self.storage.error(cause))?;
        Ok(database)
    }
}
