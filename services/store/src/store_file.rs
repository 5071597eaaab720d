//! A database file, which is opened again after an error, and whose changes may go to a redo log first.

use std::io;

use redb::{Database, ReadTransaction, ReadableDatabase as _, WriteTransaction};

use crate::backup::Backup;
use crate::damage::catch_damage;
use crate::error::{OpenCause, OpenError, RedoLogError, StoreFileError};
use crate::redo_log::{AppendError, CheckpointError, RedoLog};
use crate::storage::{Layout, Storage, begin_write};

/// A database whose changes are durable one by one. After an error, `redb` refuses all further work; the database is
/// then opened again by the next operation.
///
/// A store that was [opened with a redo log](Self::open_logged) makes small changes durable as records of it
/// ([`append`](Self::append)). The caller keeps these changes in memory, also after an error, and makes them in the
/// database by its next [`change`](Self::change), which is the checkpoint of the log.
#[derive(Debug)]
pub struct StoreFile {
    storage: Storage,
    layout: &'static Layout,
    cache: usize,
    /// The octets of the redo log; `None` for a store without one.
    log_size: Option<u64>,
    /// `None` after an error.
    opened: Option<Opened>,
}

/// An open database, and its redo log.
#[derive(Debug)]
struct Opened {
    database: Database,
    log: Option<RedoLog>,
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

impl Failure {
    fn of_commit(error: redb::CommitError) -> Self {
        match error.into() {
            // The file is enlarged before the transaction becomes valid.
            redb::Error::Io(error) if error.kind() == io::ErrorKind::StorageFull => Self::Before(error.into()),
            error => Self::Commit(error),
        }
    }

    fn of_checkpoint(error: CheckpointError) -> Self {
        match error {
            CheckpointError::Before(error) => Self::Before(error),
            CheckpointError::Commit(error) => Self::of_commit(error),
        }
    }
}

impl Opened {
    /// Commits a transaction durably. It begins a generation of the redo log, unless the disk has no room for the log.
    fn commit(&mut self, transaction: WriteTransaction) -> Result<(), Failure> {
        let Some(log) = &mut self.log else { return transaction.commit().map_err(Failure::of_commit) };
        match log.preallocate() {
            Ok(()) => log.checkpoint(transaction),
            Err(error) => {
                tracing::warn!(%error, "the redo log could not be written, and is not used");
                log.finish(transaction)
            }
        }
        .map_err(Failure::of_checkpoint)
    }

    /// Commits a transaction durably. The database needs no redo log then.
    fn commit_all(&mut self, transaction: WriteTransaction) -> Result<(), Failure> {
        match &mut self.log {
            Some(log) => log.finish(transaction).map_err(Failure::of_checkpoint),
            None => transaction.commit().map_err(Failure::of_commit),
        }
    }
}

impl StoreFile {
    /// Opens a store, or creates it, with this many octets of memory for pages.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn open(storage: Storage, layout: &'static Layout, cache: usize) -> Result<Self, OpenError> {
        let mut file = Self { storage, layout, cache, log_size: None, opened: None };
        file.opened = Some(file.open_database()?.0);
        Ok(file)
    }

    /// Opens a store, or creates it, with a redo log of this many octets. Returns the records of the log, in their order,
    /// whose changes the database has not: the next change has to make them. Storage without a log has no records.
    ///
    /// # Errors
    /// As [`open`](Self::open); a redo log that cannot be used.
    pub fn open_logged(
        storage: Storage,
        layout: &'static Layout,
        cache: usize,
        log_size: u64,
    ) -> Result<(Self, Vec<Vec<u8>>), OpenError> {
        let mut file = Self { storage, layout, cache, log_size: Some(log_size), opened: None };
        let (opened, records) = file.open_database()?;
        file.opened = Some(opened);
        Ok((file, records))
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
        self.with(|opened| Ok(work(&opened.database.begin_read()?)?))
    }

    /// Appends a record to the redo log, durably. Returns false without an effect if the log has no room, or there is
    /// none: then a change has to make all changes.
    ///
    /// # Errors
    /// A log that cannot be written.
    pub fn append(&mut self, record: &[u8]) -> Result<bool, StoreFileError> {
        let Some(log) = self.opened.as_mut().and_then(|opened| opened.log.as_mut()) else { return Ok(false) };
        if !log.has_room(record.len()) {
            return Ok(false);
        }
        let appended = log.append(record);
        appended.map(|()| true).map_err(|AppendError { cause, is_erased }| {
            let (file, cause) = (self.storage.log_path(), Box::new(redb::Error::Io(cause)));
            if is_erased {
                StoreFileError::Unavailable { file, cause }
            } else {
                StoreFileError::Uncertain { file, cause }
            }
        })
    }

    /// Runs a function in a write transaction, and commits it durably. The records of the redo log have no effect then:
    /// the function has to make their changes, too.
    ///
    /// # Errors
    /// A store that cannot be opened or written.
    pub fn change<T>(
        &mut self,
        work: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, StoreFileError> {
        self.with(|opened| {
            let transaction = begin_write(&opened.database)?;
            let outcome = work(&transaction)?;
            opened.commit(transaction)?;
            Ok(outcome)
        })
    }

    /// As [`change`](Self::change). The file of the database is complete then, without a redo log, until the next change.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn complete(
        &mut self,
        work: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), StoreFileError> {
        self.with(|opened| {
            let transaction = begin_write(&opened.database)?;
            work(&transaction)?;
            opened.commit_all(transaction)
        })
    }

    /// Begins a copy of the state after the last change. Further changes do not wait for it.
    ///
    /// # Errors
    /// A store that cannot be opened or read.
    pub fn begin_backup(&mut self) -> Result<Backup, StoreFileError> {
        let layout = self.layout;
        self.with(|opened| Ok(Backup::begin(&opened.database, layout)?))
    }

    fn with<T>(&mut self, work: impl FnOnce(&mut Opened) -> Result<T, Failure>) -> Result<T, StoreFileError> {
        let mut opened = match self.opened.take() {
            Some(opened) => opened,
            // The caller has the changes of the records in memory.
            None => self.open_database()?.0,
        };
        // A panic drops the database, too.
        let outcome = catch_damage(|| {
            let outcome = work(&mut opened)?;
            Ok::<_, Failure>((opened, outcome))
        });
        let file = || self.storage.path().to_owned();
        match outcome {
            Ok((opened, outcome)) => {
                self.opened = Some(opened);
                Ok(outcome)
            }
            Err(Failure::Before(cause)) => Err(StoreFileError::Unavailable { file: file(), cause: Box::new(cause) }),
            Err(Failure::Commit(cause)) => Err(StoreFileError::Uncertain { file: file(), cause: Box::new(cause) }),
        }
    }

    fn open_database(&self) -> Result<(Opened, Vec<Vec<u8>>), OpenError> {
        let opened = catch_damage(|| {
            let (database, header) = self.storage.open(self.layout, self.cache)?;
            let Some(size) = self.log_size else { return Ok((Opened { database, log: None }, Vec::new())) };
            let needs_log = header.needs_log();
            match RedoLog::open(&self.storage, header, size) {
                Ok((log, replay)) => Ok((Opened { database, log: Some(log) }, replay.records)),
                // Other storage than files may have none.
                Err(RedoLogError::Io(error)) if error.kind() == io::ErrorKind::Unsupported && !needs_log => {
                    Ok((Opened { database, log: None }, Vec::new()))
                }
                Err(cause) => Err(OpenCause::RedoLog { file: self.storage.log_path(), cause }),
            }
        });
        opened.map_err(|cause| self.storage.error(cause))
    }
}
