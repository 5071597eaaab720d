//! An open database with its redo log.

use redb::{Database, Durability, ReadTransaction, ReadableDatabase as _, ReadableTable as _, WriteTransaction};
use spandrel::net::sync::{Arc, Mutex, RwLock};
use spandrel_store::{
    Backup, CheckpointError, EarlierLog, Layout, LogPolicy, OpenCause, RedoLog, RedoLogError, Replay, Service, Storage,
    begin_write, catch_damage, copy_table,
};

use super::change::{Change, Outcome, apply_changes};
use super::failure::Failure;
use super::options::{RedbStoreOptions, Synchronization};
use super::query::Query;
use super::tables::{BINDINGS, CONTEXTS, META, Snapshot, Tables};
use crate::encoding::encode_path;
use crate::store::{ContextId, StoreError};

/// The tables of this version.
static LAYOUT: Layout = Layout { service: Service::Naming, version: 3, create: create_tables, convert, copy };

/// The key of the table `meta` from which versions before the header know that they cannot read the store.
const FORMAT_KEY: &str = "format";
const SALT_KEY: &str = "salt";
const LOG_SIZE_KEY: &str = "log_size";

/// An open database, and its state after the last commit once a reader wants it.
pub(super) struct Opened {
    unwritten: Unwritten,
    snapshot: RwLock<Option<Arc<Snapshot>>>, // dropped first: it keeps the file open
    database: Database,
}

/// The changes that the file of the database has not.
enum Unwritten {
    /// They are in the log. It is locked within a transaction that writes, until the transaction has ended.
    Logged(Mutex<RedoLog>),
    /// They are in the transaction of a store that writes at intervals.
    Pending(Mutex<Option<Box<WriteTransaction>>>),
}

impl Opened {
    /// Opens the database, or creates it, and repeats the changes that its log alone has.
    pub(super) fn open(storage: &Storage, options: &RedbStoreOptions) -> Result<Self, OpenCause> {
        catch_damage(|| Self::open_undamaged(storage, options))
    }

    fn open_undamaged(storage: &Storage, options: &RedbStoreOptions) -> Result<Self, OpenCause> {
        let uses_log = options.synchronization == Synchronization::Always;
        let (database, header) = storage.open(&LAYOUT, options.cache)?;
        let log_error = |cause| OpenCause::RedoLog { file: storage.log_path(), cause };
        let mut unwritten = Unwritten::Pending(Mutex::default());
        let drops_damaged = storage.policy() == LogPolicy::DropDamaged;
        if uses_log || header.needs_log() || drops_damaged {
            let (mut log, replay) = RedoLog::open(storage, header, options.log_size).map_err(log_error)?;
            let goes_on = uses_log && !replay.is_partial;
            repeat(&database, &mut log, &replay, goes_on).map_err(|failure| match failure {
                Failure::Store(error) => log_error(RedoLogError::Contents(error.to_string())),
                Failure::Database(error) | Failure::Commit(error) => error.into(),
            })?;
            if uses_log {
                log.preallocate().map_err(|error| log_error(error.into()))?;
                unwritten = Unwritten::Logged(Mutex::new(log));
            }
        }
        Ok(Self { unwritten, snapshot: RwLock::default(), database })
    }

    /// Begins a copy of the state after the last commit.
    pub(super) fn begin_backup(&self) -> Result<Backup, redb::Error> {
        Backup::begin(&self.database, &LAYOUT)
    }

    /// The state after the last commit, or after a later one that ends meanwhile.
    pub(super) fn snapshot(&self) -> Result<Arc<Snapshot>, redb::Error> {
        if let Some(snapshot) = &*self.snapshot.read() {
            return Ok(Arc::clone(snapshot));
        }
        // Under the lock, so that no commit ends between the reading and the storing.
        let mut place = self.snapshot.write();
        let snapshot = match &*place {
            Some(snapshot) => Arc::clone(snapshot),
            None => Arc::new(Snapshot::of(&self.database)?),
        };
        *place = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// Verifies the file's structure and checksums. Returns whether it is sound.
    pub(super) fn check_integrity(&mut self) -> Result<bool, redb::Error> {
        self.snapshot = RwLock::default(); // a transaction, beside which there is no check
        Ok(self.database.check_integrity()?)
    }

    /// Answers a question from the state with all changes.
    pub(super) fn query<Q: Query>(&self, query: Q) -> Result<Q::Output, Failure> {
        if let Unwritten::Pending(pending) = &self.unwritten
            && let Some(txn) = &*pending.lock()
        {
            return query.run(&txn.open_table(CONTEXTS)?, &txn.open_table(BINDINGS)?);
        }
        let snapshot = self.snapshot()?;
        query.run(&snapshot.contexts, &snapshot.bindings)
    }

    /// Makes changes: durably, or so that the next synchronization makes them durable. Called by one thread at a time.
    pub(super) fn apply(&self, changes: &[Change]) -> Result<Vec<Outcome>, Failure> {
        match &self.unwritten {
            Unwritten::Logged(log) => self.commit(changes, log),
            Unwritten::Pending(pending) => self.add_to_pending(changes, pending),
        }
    }

    /// Makes changes in a transaction of their own, durably: by a record of the log, or by a checkpoint.
    fn commit(&self, changes: &[Change], log: &Mutex<RedoLog>) -> Result<Vec<Outcome>, Failure> {
        let txn = begin_write(&self.database)?;
        let (outcomes, writes) = apply_changes(&txn, changes)?;
        if outcomes.iter().all(Result::is_err) {
            txn.abort()?;
            return Ok(outcomes);
        }
        let mut log = log.lock();
        if log.has_room(writes.len()) {
            commit_in_log(txn, &writes, &mut log)?;
        } else {
            log.checkpoint(txn)?;
        }
        *self.snapshot.write() = None;
        Ok(outcomes)
    }

    /// Adds changes to those that are written at the next interval.
    fn add_to_pending(
        &self,
        changes: &[Change],
        pending: &Mutex<Option<Box<WriteTransaction>>>,
    ) -> Result<Vec<Outcome>, Failure> {
        loop {
            if let Some(txn) = &*pending.lock() {
                return Ok(apply_changes(txn, changes)?.0);
            }
            // Without the lock: the beginning waits for the end of a synchronization, and readers do not.
            let mut txn = begin_write(&self.database)?;
            txn.set_durability(Durability::None)?;
            *pending.lock() = Some(Box::new(txn));
        }
    }

    /// Makes the file of the database durable with all changes, so that it needs no log.
    pub(super) fn synchronize(&self) -> Result<(), Failure> {
        match &self.unwritten {
            Unwritten::Logged(log) => self.end_log(log),
            Unwritten::Pending(pending) => self.write_pending(pending),
        }
    }

    fn end_log(&self, log: &Mutex<RedoLog>) -> Result<(), Failure> {
        let txn = begin_write(&self.database)?;
        let mut log = log.lock();
        if log.store().needs_log() {
            log.finish(txn)?;
        } else {
            txn.abort()?;
        }
        Ok(())
    }

    fn write_pending(&self, pending: &Mutex<Option<Box<WriteTransaction>>>) -> Result<(), Failure> {
        {
            let mut pending = pending.lock();
            let Some(txn) = pending.take() else { return Ok(()) };
            txn.commit()?;
            *self.snapshot.write() = None;
        }
        Ok(begin_write(&self.database)?.commit()?) // it makes the commits before it durable
    }
}

impl Snapshot {
    fn of(database: &Database) -> Result<Self, redb::Error> {
        let txn = database.begin_read()?;
        Ok(Self { contexts: txn.open_table(CONTEXTS)?, bindings: txn.open_table(BINDINGS)? })
    }
}

/// Creates the tables and the root context.
fn create_tables(txn: &WriteTransaction) -> Result<(), redb::Error> {
    txn.open_table(META)?.insert(FORMAT_KEY, u64::from(LAYOUT.version))?;
    txn.open_table(CONTEXTS)?.insert(ContextId::ROOT.0, encode_path(Some("")).as_slice())?;
    txn.open_table(BINDINGS)?;
    Ok(())
}

fn copy(reading: &ReadTransaction, copy: &WriteTransaction) -> Result<(), redb::Error> {
    copy_table(META, reading, copy)?;
    copy_table(CONTEXTS, reading, copy)?;
    copy_table(BINDINGS, reading, copy)
}

/// Converts the formats of versions before the header. The tables are the same; `meta` had the version of the layout
/// (`format`): 1 if the database had all changes, 2 if its log might have others; then the salt of the records of the
/// log (`salt`) and the octets that it had at least (`log_size`).
fn convert(txn: &WriteTransaction, storage: &Storage) -> Result<(), OpenCause> {
    let expected = u64::from(LAYOUT.version);
    let mut meta = txn.open_table(META)?;
    let value = |key| -> Result<Option<u64>, redb::Error> { Ok(meta.get(key)?.map(|value| value.value())) };
    let (format, salt, size) = (value(FORMAT_KEY)?, value(SALT_KEY)?, value(LOG_SIZE_KEY)?);
    match format {
        Some(1 | 2) => {}
        None => return Err(OpenCause::NoStore("it has no format".to_owned())),
        Some(found) => return Err(OpenCause::Version { found, expected }),
    }
    if let Some(salt) = salt.filter(|_| format == Some(2)) {
        let log_error = |cause| OpenCause::RedoLog { file: storage.log_path(), cause };
        let records = EarlierLog::read(storage, salt, size).map_err(log_error)?;
        repeat_records(txn, &records).map_err(|failure| match failure {
            Failure::Store(error) => log_error(RedoLogError::Contents(error.to_string())),
            Failure::Database(error) | Failure::Commit(error) => error.into(),
        })?;
    }
    meta.insert(FORMAT_KEY, expected)?;
    meta.remove(SALT_KEY)?;
    meta.remove(LOG_SIZE_KEY)?;
    Ok(())
}

/// Repeats the changes of a log. A store that goes on with the log needs no checkpoint, and no space on the disk.
fn repeat(database: &Database, log: &mut RedoLog, replay: &Replay, goes_on: bool) -> Result<(), Failure> {
    let mut txn = begin_write(database)?;
    repeat_records(&txn, &replay.records)?;
    if goes_on {
        txn.set_durability(Durability::None)?;
        return Ok(txn.commit()?);
    }
    Ok(log.finish(txn)?)
}

fn repeat_records(txn: &WriteTransaction, records: &[Vec<u8>]) -> Result<(), Failure> {
    let mut tables = Tables::open(txn)?;
    records.iter().try_for_each(|record| tables.repeat(record))
}

/// Makes the changes of a transaction durable in the log, then visible.
fn commit_in_log(mut txn: WriteTransaction, writes: &[u8], log: &mut RedoLog) -> Result<(), Failure> {
    txn.set_durability(Durability::None)?;
    if let Err(error) = log.append(writes) {
        tracing::error!(error = %error.cause, "the redo log could not be written");
        return Err(match txn.abort() {
            Ok(()) => error.into(),
            Err(abort) => Failure::Commit(abort.into()),
        });
    }
    txn.commit().map_err(|error| match Failure::from(error) {
        // Otherwise the replay makes the changes.
        Failure::Database(error) if log.erase_last().is_err() => Failure::Commit(error),
        failure => failure,
    })
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        match error {
            CheckpointError::Before(error) => Self::Database(error),
            CheckpointError::Commit(error) => error.into(),
        }
    }
}

/// The error of a store that cannot be opened again.
pub(super) fn reopening(cause: OpenCause) -> StoreError {
    StoreError::Unavailable(Arc::new(cause))
}
