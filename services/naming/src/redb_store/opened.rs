//! An open database with its redo log.

use std::io;

use redb::{Database, Durability, ReadableDatabase as _, ReadableTable as _, WriteTransaction};
use spandrel::net::sync::{Arc, Mutex, RwLock};
use spandrel_daemon::{Storage, begin_write, catch_damage};

use super::change::{Change, Outcome, apply_changes};
use super::failure::{Failure, StartFailure};
use super::options::{RedbStoreOptions, Synchronization};
use super::query::Query;
use super::tables::{BINDINGS, CONTEXTS, META, Snapshot, Tables};
use crate::encoding::encode_path;
use crate::redo_log::RedoLog;
use crate::store::ContextId;

/// The version of the layout of a database that has all changes.
pub(super) const FORMAT: u64 = 1;

/// The version of the layout of a database whose redo log may have changes that the database has not.
const FORMAT_WITH_LOG: u64 = 2;

/// The keys of the table `meta`.
pub(super) const FORMAT_KEY: &str = "format";
const SALT_KEY: &str = "salt";
const LOG_SIZE_KEY: &str = "log_size";

/// The log that a database needs.
struct NeededLog {
    salt: u64,
    /// Its least size in octets, unless a version before this wrote the database.
    size: Option<u64>,
}

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
    pub(super) fn open(storage: &Storage, options: &RedbStoreOptions) -> Result<Self, StartFailure> {
        catch_damage(|| Self::open_undamaged(storage, options))
    }

    fn open_undamaged(storage: &Storage, options: &RedbStoreOptions) -> Result<Self, StartFailure> {
        let uses_log = options.synchronization == Synchronization::Always;
        let database = storage.open(options.cache)?;
        let needed = prepare(&database)?;
        let log = if uses_log || needed.is_some() { Some(open_log(storage, options.log_size)?) } else { None };
        if let (Some(log), Some(needed)) = (&log, needed) {
            let records = log.replay(needed.salt, needed.size).map_err(StartFailure::Log)?;
            repeat(&database, &records, uses_log)?;
        }
        let unwritten = match log.filter(|_| uses_log) {
            Some(log) => {
                log.preallocate().map_err(|error| StartFailure::Log(error.into()))?;
                Unwritten::Logged(Mutex::new(log))
            }
            None => Unwritten::Pending(Mutex::default()),
        };
        Ok(Self { unwritten, snapshot: RwLock::default(), database })
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
            let salt = checkpoint(txn, log.size())?;
            log.restart(salt);
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
        if remove_salt(&txn)? {
            txn.commit()?;
            log.stop();
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

/// Creates the tables and the root context, unless they exist. Returns the log that the database needs.
fn prepare(database: &Database) -> Result<Option<NeededLog>, StartFailure> {
    let txn = begin_write(database)?;
    let (is_new, needed) = {
        let mut meta = txn.open_table(META)?;
        let format = meta.get(FORMAT_KEY)?.map(|format| format.value());
        match format {
            Some(FORMAT) => (false, None),
            Some(FORMAT_WITH_LOG) => {
                let size = meta.get(LOG_SIZE_KEY)?.map(|size| size.value());
                (false, meta.get(SALT_KEY)?.map(|salt| NeededLog { salt: salt.value(), size }))
            }
            Some(other) => return Err(StartFailure::Format(other)),
            None => {
                meta.insert(FORMAT_KEY, FORMAT)?;
                txn.open_table(CONTEXTS)?.insert(ContextId::ROOT.0, encode_path(Some("")).as_slice())?;
                txn.open_table(BINDINGS)?;
                (true, None)
            }
        }
    };
    if is_new {
        txn.commit()?;
    } else {
        txn.abort()?;
    }
    Ok(needed)
}

fn open_log(storage: &Storage, size: u64) -> Result<RedoLog, StartFailure> {
    let file = storage.open_log().map_err(|error| StartFailure::Log(error.into()))?;
    Ok(RedoLog::new(file, size))
}

/// Repeats the changes of a log. A store that goes on with the log needs no checkpoint, and no space on the disk.
fn repeat(database: &Database, records: &[Vec<u8>], uses_log: bool) -> Result<(), StartFailure> {
    let mut txn = begin_write(database)?;
    {
        let mut tables = Tables::open(&txn)?;
        for record in records {
            tables.repeat(record)?;
        }
    }
    if uses_log {
        txn.set_durability(Durability::None)?;
    } else {
        remove_salt(&txn)?;
    }
    Ok(txn.commit()?)
}

/// Makes the changes of a transaction durable in the log, then visible.
fn commit_in_log(mut txn: WriteTransaction, writes: &[u8], log: &mut RedoLog) -> Result<(), Failure> {
    txn.set_durability(Durability::None)?;
    if let Err(error) = log.append(writes) {
        tracing::error!(error = %error.cause, "the redo log could not be written");
        return Err(match txn.abort() {
            Ok(()) => error.into(),
            Err(abort) if error.is_erased => abort.into(),
            Err(abort) => Failure::Commit(abort.into()),
        });
    }
    txn.commit().map_err(|error| match Failure::from(error) {
        // Otherwise the replay makes the changes.
        Failure::Database(error) if log.erase_last().is_err() => Failure::Commit(error),
        failure => failure,
    })
}

/// Makes the changes of a transaction and those before it durable in the database. Returns the salt of the next records.
/// `log_size`: the octets that the log has at least.
fn checkpoint(txn: WriteTransaction, log_size: u64) -> Result<u64, Failure> {
    // Clients must not guess it, since their names are in the records.
    let salt = getrandom::u64().map_err(|error| redb::Error::Io(io::Error::other(error.to_string())))?.max(1);
    {
        let mut meta = txn.open_table(META)?;
        meta.insert(FORMAT_KEY, FORMAT_WITH_LOG)?;
        meta.insert(SALT_KEY, salt)?;
        meta.insert(LOG_SIZE_KEY, log_size)?;
    }
    txn.commit()?;
    Ok(salt)
}

/// Removes the salt of the log, which the database does not need any more. Returns whether there was one.
fn remove_salt(txn: &WriteTransaction) -> Result<bool, redb::Error> {
    let mut meta = txn.open_table(META)?;
    meta.insert(FORMAT_KEY, FORMAT)?;
    Ok(meta.remove(SALT_KEY)?.is_some())
}
