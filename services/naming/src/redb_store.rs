//! The store in a `redb` database with a [redo log](spandrel_store::RedoLog) and a header.
//!
//! | table | key | value |
//! | --- | --- | --- |
//! | `contexts` | id | path, in string form, with an octet 1 before it; an octet 0 alone without a path |
//! | `bindings` | id of the context, big-endian; identifier; NUL; kind | type, then an IOR or the id of a context |
//! | `meta` | `format` | 3, from which versions before the header of the store know that they cannot read it |
//!
//! Bindings are ordered, so that the size of a context concerns neither lookups nor pages of a listing. Identifiers and
//! kinds contain no NUL, because IDL's strings cannot.
//!
//! Ids of contexts are random: a reference to a context that was lost with its store's last changes, or that is younger
//! than a restored backup, leads to no other context.
//!
//! A batch of changes is applied in a transaction, is made durable as a record of the log, and is committed with
//! [`Durability::None`](redb::Durability::None). So readers, which have the state after the last commit, get no change
//! that is not durable, and do not wait for the disk. The batch after an opening, or for which the log has no room, is
//! committed durably in the database instead: this is the checkpoint of the log.
//!
//! After an error of input or output `redb` refuses all further work. The database is then opened again, before
//! the next operation, and the changes of the log are repeated.

mod change;
mod failure;
mod key_range;
mod opened;
mod options;
mod query;
mod shared;
mod tables;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use redb::ReadableTable as _;
use spandrel::net::sync::{Arc, RwLock};
use spandrel::services::cos_naming::{BindingType, NameComponent};
use spandrel_store::{Backup, GroupCommit, LogPolicy, OpenError, Storage, catch_damage};

use self::change::Change;
use self::failure::{damage, unavailable};
use self::opened::Opened;
pub use self::options::{RedbStoreOptions, Synchronization};
use self::query::{List, Lookup, PathOf};
use self::shared::Shared;
use crate::encoding::{corrupt, decode_target, encode_target, key, split_key};
use crate::store::{ContextId, Done, IfBound, Store, StoreError, Target};

/// A naming graph in a file, with a redo log beside it.
pub struct RedbStore {
    shared: Arc<Shared>,
    writer: Writer,
}

/// The thread that writes changes to the disk for others.
enum Writer {
    /// It commits the changes whose threads do not wait.
    Committer(Option<thread::JoinHandle<()>>),
    AtIntervals(Option<IntervalWriter>),
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore")
            .field("synchronization", &self.shared.options.synchronization)
            .finish_non_exhaustive()
    }
}

impl RedbStore {
    /// Opens the store in a file, or creates it. All of it is verified; a store of a version without a header is
    /// converted.
    ///
    /// # Errors
    /// A file that is in use, is damaged, is the store of another service or version, or cannot be read and written.
    pub fn open(file: &Path, options: &RedbStoreOptions) -> Result<Self, OpenError> {
        Self::open_in(Storage::file(file), options)
    }

    /// Opens the store in a file that exists. Neither the file nor its redo log is written; changes are lost.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(file: &Path) -> Result<Self, OpenError> {
        Self::open_in(Storage::read_only(file), &RedbStoreOptions::default())
    }

    /// Opens the store in a file that exists, also if its redo log is damaged or belongs to another store: the changes
    /// before the damage are repeated, and the others are dropped. A warning in the log has their number.
    ///
    /// # Errors
    /// As [`open`](Self::open), except for the redo log.
    pub fn recover(file: &Path, options: &RedbStoreOptions) -> Result<Self, OpenError> {
        Self::open_in(Storage::file(file).with_policy(LogPolicy::DropDamaged), options)
    }

    /// Opens the store in a file or in other storage, which is for tests of failures.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(storage: Storage, options: &RedbStoreOptions) -> Result<Self, OpenError> {
        let opened = Opened::open(&storage, options).map_err(|cause| storage.error(cause))?;
        // If it is opened again, its log is sound.
        let storage = storage.with_policy(LogPolicy::Refuse);
        let started = Self::start(opened, storage.clone(), options);
        started.map_err(|error| storage.error(redb::Error::Io(error).into()))
    }

    fn start(opened: Opened, storage: Storage, options: &RedbStoreOptions) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            opened: RwLock::new(Some(opened)),
            storage,
            options: options.clone(),
            commits: GroupCommit::default(),
        });
        let writer = match options.synchronization {
            Synchronization::Always => {
                let shared = Arc::clone(&shared);
                let commit = move || shared.commits.run_committer(|changes| shared.apply(&changes));
                let committer = thread::Builder::new().name("spandrel-commit".into()).spawn(commit);
                Writer::Committer(Some(committer?))
            }
            Synchronization::Every(interval) => Writer::AtIntervals(Some(IntervalWriter::start(&shared, interval))),
        };
        Ok(Self { shared, writer })
    }

    /// Writes all changes so far to the file of the database: those of a store that writes at intervals become durable,
    /// and a redo log is not needed any more, until the next change.
    ///
    /// # Errors
    /// A disk that cannot be written; the changes remain to be written.
    pub fn synchronize(&self) -> Result<(), StoreError> {
        self.shared.synchronize()
    }

    /// Verifies the file's structure and checksums, and that all entries can be read. Returns the number of bindings.
    ///
    /// # Errors
    /// `Corrupt` with the first part that is damaged; `Unavailable`.
    pub fn check(&mut self) -> Result<u64, StoreError> {
        catch_damage(|| Ok(self.check_entries())).map_err(damage)?
    }

    fn check_entries(&mut self) -> Result<u64, StoreError> {
        self.shared.synchronize()?;
        if let Some(opened) = &mut *self.shared.opened.write()
            && !opened.check_integrity().map_err(damage)?
        {
            return Err(corrupt("its checksums do not match, and it was repaired"));
        }
        self.shared.read_snapshot(|snapshot| {
            let mut count = 0;
            for entry in snapshot.bindings.iter()? {
                let (key, value) = entry?;
                let (context, name) = split_key(key.value()).ok_or_else(|| corrupt("a key of a binding"))?;
                decode_target(value.value())?;
                if snapshot.contexts.get(context.0)?.is_none() {
                    return Err(corrupt(&format!("{context} has the binding {} and does not exist", name.id)).into());
                }
                count += 1;
            }
            Ok(count)
        })
    }

    /// Copies the state after the last commit into a new file, while the store is in use. The copy is durable.
    ///
    /// # Errors
    /// `Unavailable`, also if the file exists or cannot be written.
    pub fn back_up(&self, file: &Path) -> Result<(), StoreError> {
        self.begin_backup()?.write(file).map_err(unavailable)
    }

    pub(crate) fn begin_backup(&self) -> Result<Backup, StoreError> {
        if self.shared.options.synchronization != Synchronization::Always {
            self.shared.synchronize()?; // it commits the changes
        }
        self.shared.begin_backup()
    }
}

impl Store for RedbStore {
    fn lookup(&self, context: ContextId, name: &NameComponent) -> Result<Target, StoreError> {
        self.shared.query(Lookup(context, name))
    }

    fn bind(
        &self,
        context: ContextId,
        name: &NameComponent,
        target: &Target,
        if_bound: IfBound,
    ) -> Result<(), StoreError> {
        let (key, value) = (key(context, name), encode_target(target)?);
        self.shared.submit(Change::Bind { context, key, value, if_bound }).map(drop)
    }

    fn unbind(&self, context: ContextId, name: &NameComponent) -> Result<(), StoreError> {
        self.shared.submit(Change::Unbind { context, key: key(context, name), value: None }).map(drop)
    }

    fn unbind_target(&self, context: ContextId, name: &NameComponent, target: &Target) -> Result<(), StoreError> {
        let (key, value) = (key(context, name), Some(encode_target(target)?));
        self.shared.submit(Change::Unbind { context, key, value }).map(drop)
    }

    fn defers(&self) -> bool {
        self.shared.options.synchronization == Synchronization::Always
    }

    fn bind_then(&self, context: ContextId, name: &NameComponent, target: &Target, if_bound: IfBound, done: Done) {
        let (key, value) = match encode_target(target) {
            Ok(value) => (key(context, name), value),
            Err(error) => return done(Err(error)),
        };
        let change = Change::Bind { context, key, value, if_bound };
        self.shared.submit_then(change, Box::new(|outcome| done(outcome.map(drop))));
    }

    fn unbind_then(&self, context: ContextId, name: &NameComponent, done: Done) {
        let change = Change::Unbind { context, key: key(context, name), value: None };
        self.shared.submit_then(change, Box::new(|outcome| done(outcome.map(drop))));
    }

    fn new_context(&self) -> Result<ContextId, StoreError> {
        self.created(Change::NewContext)
    }

    fn bind_new_context(&self, context: ContextId, name: &NameComponent) -> Result<ContextId, StoreError> {
        self.created(Change::BindNewContext { context, name: name.clone() })
    }

    fn destroy(&self, context: ContextId) -> Result<(), StoreError> {
        self.shared.submit(Change::Destroy { context }).map(drop)
    }

    fn list(
        &self,
        context: ContextId,
        after: Option<&NameComponent>,
        limit: usize,
    ) -> Result<Vec<(NameComponent, BindingType)>, StoreError> {
        self.shared.query(List { context, after, limit })
    }

    fn path(&self, context: ContextId) -> Result<Option<String>, StoreError> {
        self.shared.query(PathOf(context))
    }
}

impl RedbStore {
    fn created(&self, change: Change) -> Result<ContextId, StoreError> {
        self.shared.submit(change)?.ok_or_else(|| corrupt("a context was made without an id"))
    }
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        match &mut self.writer {
            Writer::Committer(committer) => {
                self.shared.commits.close();
                // The last user of the store may be a function that the committer calls.
                let current = thread::current().id();
                if let Some(committer) = committer.take().filter(|committer| committer.thread().id() != current) {
                    _ = committer.join();
                }
            }
            Writer::AtIntervals(writer) => {
                if let Some(writer) = writer.take() {
                    writer.stop();
                }
            }
        }
        self.shared.end();
    }
}

/// The thread that makes changes durable at intervals.
struct IntervalWriter {
    stop: mpsc::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl IntervalWriter {
    fn start(shared: &Arc<Shared>, interval: Duration) -> Self {
        let (stop, stopped) = mpsc::channel();
        let shared = Arc::clone(shared);
        let synchronize = move || {
            while stopped.recv_timeout(interval) == Err(mpsc::RecvTimeoutError::Timeout) {
                _ = shared.synchronize(); // logged; the next interval tries again
            }
        };
        let thread = thread::Builder::new().name("spandrel-sync".to_owned()).spawn(synchronize);
        let thread = thread.expect("the system has a thread left");
        Self { stop, thread }
    }

    fn stop(self) {
        drop(self.stop);
        _ = self.thread.join();
    }
}
