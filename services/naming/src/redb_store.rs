//! The store in one file, a `redb` database.
//!
//! | table | key | value |
//! | --- | --- | --- |
//! | `contexts` | id | path, in string form, with an octet 1 before it; an octet 0 alone without a path |
//! | `bindings` | id of the context, big-endian; identifier; NUL; kind | type, then an IOR or the id of a context |
//! | `meta` | `format` | version of this layout |
//!
//! Bindings are ordered, so that the size of a context concerns neither lookups nor pages of a listing. Identifiers and
//! kinds contain no NUL, because IDL's strings cannot.
//!
//! Ids of contexts are random: a reference to a context that was lost with its store's last changes, or that is younger
//! than a restored backup, leads to no other context.
//!
//! After an error of input or output `redb` refuses all further work. The database is then opened again, before
//! the next operation.

use std::fmt;
use std::fs;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use redb::{
    Builder, Database, Durability, ReadOnlyTable, ReadableDatabase as _, ReadableTable, Table, TableDefinition,
    WriteTransaction,
};
use spandrel::net::sync::{Arc, Mutex, RwLock};
use spandrel::services::cos_naming::{BindingType, NameComponent};
use spandrel_daemon::{Storage, synchronize_folder};

use crate::encoding::{corrupt, decode_path, decode_target, encode_path, encode_target, join, key, split_key, type_of};
use crate::group_commit::{Done as CommitDone, GroupCommit};
use crate::store::{ContextId, Done, IfBound, Store, StoreError, Target};

const CONTEXTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("contexts");
const BINDINGS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("bindings");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// The version of the layout.
const FORMAT: u64 = 1;

/// When changes are written to the disk.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Synchronization {
    /// Before they are acknowledged: they survive a loss of power.
    #[default]
    Always,
    /// At intervals: the changes since the last one are lost with the process.
    Every(Duration),
}

/// The settings of a [`RedbStore`].
#[derive(Clone, Debug)]
pub struct RedbStoreOptions {
    /// When changes are written to the disk.
    pub synchronization: Synchronization,
    /// The memory for pages that were read or are to be written, in octets.
    pub cache: usize,
}

impl Default for RedbStoreOptions {
    fn default() -> Self {
        Self { synchronization: Synchronization::Always, cache: 256 << 20 }
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
    #[error("cannot open the store {}: its format is {found}, and this version reads format {FORMAT}", .file.display())]
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
}

/// A naming graph in one file.
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

struct Shared {
    /// `None` after an error, until the database has been opened again.
    opened: RwLock<Option<Opened>>,
    storage: Storage,
    /// The memory for pages, in octets.
    cache: usize,
    commits: GroupCommit<Change, Result<Option<ContextId>, StoreError>>,
    synchronization: Synchronization,
}

/// An open database, and its state after the last commit once a reader wants it.
struct Opened {
    /// The transaction of a store that writes at intervals, with all changes since the last write.
    pending: Mutex<Option<WriteTransaction>>,
    snapshot: RwLock<Option<Arc<Snapshot>>>, // dropped first: it keeps the file open
    database: Database,
}

/// A state of the tables. It saves readers a transaction each.
struct Snapshot {
    contexts: ReadOnlyTable<u64, &'static [u8]>,
    bindings: ReadOnlyTable<&'static [u8], &'static [u8]>,
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore").field("synchronization", &self.shared.synchronization).finish_non_exhaustive()
    }
}

impl RedbStore {
    /// Opens the store in a file, or creates it.
    ///
    /// # Errors
    /// A file that is in use, has another format, or cannot be read and written.
    pub fn open(file: &Path, options: &RedbStoreOptions) -> Result<Self, OpenError> {
        Self::open_in(Storage::file(file), options)
    }

    /// Opens the store in a file or in other storage, which is for tests of failures.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(storage: Storage, options: &RedbStoreOptions) -> Result<Self, OpenError> {
        let file = storage.path().to_owned();
        Self::start(storage, options).map_err(|failure| match failure {
            StartFailure::Format(found) => OpenError::Format { file, found },
            StartFailure::Database(redb::Error::DatabaseAlreadyOpen) => OpenError::InUse(file),
            StartFailure::Database(cause) => OpenError::Database { file, cause },
        })
    }

    fn start(storage: Storage, options: &RedbStoreOptions) -> Result<Self, StartFailure> {
        let opened = Opened::prepare(storage.open(options.cache)?)?;
        let shared = Arc::new(Shared {
            opened: RwLock::new(Some(opened)),
            storage,
            cache: options.cache,
            commits: GroupCommit::default(),
            synchronization: options.synchronization,
        });
        let writer = match options.synchronization {
            Synchronization::Always => {
                let shared = Arc::clone(&shared);
                let commit = move || shared.commits.run_committer(|changes| shared.apply(&changes));
                let committer = thread::Builder::new().name("spandrel-commit".into()).spawn(commit);
                Writer::Committer(Some(committer.map_err(redb::Error::Io)?))
            }
            Synchronization::Every(interval) => Writer::AtIntervals(Some(IntervalWriter::start(&shared, interval))),
        };
        Ok(Self { shared, writer })
    }

    /// Writes all changes so far to the disk. Only stores that write at intervals have any left.
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
        self.shared.synchronize()?;
        if let Some(opened) = &mut *self.shared.opened.write() {
            opened.snapshot = RwLock::default(); // a transaction, beside which there is no check
            let is_sound = opened.database.check_integrity().map_err(|error| damage(error.into()))?;
            if !is_sound {
                return Err(corrupt("its checksums do not match, and it was repaired"));
            }
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
        fs::File::create_new(file).map_err(|error| unavailable(error.into()))?;
        let copied = self.copy_to(file);
        if copied.is_err() {
            _ = fs::remove_file(file); // a part is no backup
        }
        copied
    }

    fn copy_to(&self, file: &Path) -> Result<(), StoreError> {
        let copy = Builder::new().create(file).map_err(|error| unavailable(error.into()))?;
        self.shared.synchronize()?;
        let snapshot = self.shared.read_snapshot(|snapshot| Ok(Arc::clone(snapshot)))?;
        let copy_tables = || -> Result<(), redb::Error> {
            let txn = copy.begin_write()?;
            {
                let mut contexts = txn.open_table(CONTEXTS)?;
                for entry in snapshot.contexts.iter()? {
                    let (id, path) = entry?;
                    contexts.insert(id.value(), path.value())?;
                }
                let mut bindings = txn.open_table(BINDINGS)?;
                for entry in snapshot.bindings.iter()? {
                    let (key, value) = entry?;
                    bindings.insert(key.value(), value.value())?;
                }
                txn.open_table(META)?.insert("format", FORMAT)?;
            }
            txn.commit()?;
            Ok(synchronize_folder(file)?)
        };
        copy_tables().map_err(unavailable)
    }
}

/// The reason why a database is not a store.
enum StartFailure {
    Format(u64),
    Database(redb::Error),
}

impl<E: Into<redb::Error>> From<E> for StartFailure {
    fn from(error: E) -> Self {
        Self::Database(error.into())
    }
}

impl Opened {
    /// Creates the tables and the root context, unless they exist.
    fn prepare(database: Database) -> Result<Self, StartFailure> {
        let txn = database.begin_write()?;
        let is_new = {
            let mut meta = txn.open_table(META)?;
            let format = meta.get("format")?.map(|format| format.value());
            match format {
                Some(FORMAT) => false,
                Some(other) => return Err(StartFailure::Format(other)),
                None => {
                    meta.insert("format", FORMAT)?;
                    txn.open_table(CONTEXTS)?.insert(ContextId::ROOT.0, encode_path(Some("")).as_slice())?;
                    txn.open_table(BINDINGS)?;
                    true
                }
            }
        };
        if is_new {
            txn.commit()?
        } else {
            txn.abort()?
        }
        Ok(Self { pending: Mutex::default(), snapshot: RwLock::default(), database })
    }

    /// The state after the last commit, or after a later one that ends meanwhile.
    fn snapshot(&self) -> Result<Arc<Snapshot>, redb::Error> {
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
}

impl Snapshot {
    fn of(database: &Database) -> Result<Self, redb::Error> {
        let txn = database.begin_read()?;
        Ok(Self { contexts: txn.open_table(CONTEXTS)?, bindings: txn.open_table(BINDINGS)? })
    }
}

/// The end of an operation on the database: an error of the store, or one of `redb`.
enum Failure {
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

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Self {
        Self::Database(error)
    }
}

fn unavailable(error: redb::Error) -> StoreError {
    StoreError::Unavailable(Arc::new(error))
}

/// An error of the verification.
fn damage(error: redb::Error) -> StoreError {
    match error {
        redb::Error::Corrupted(reason) => StoreError::Corrupt(reason),
        error => unavailable(error),
    }
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
                Some(opened) => operation(opened),
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
        *self.opened.write() = None;
        tracing::error!(%error, "the naming store failed, and is opened again");
        error
    }

    fn reopen(&self) -> Result<(), StoreError> {
        let mut opened = self.opened.write();
        if opened.is_none() {
            let database = self.storage.open(self.cache).map_err(unavailable)?;
            *opened = Some(Opened::prepare(database).map_err(|failure| match failure {
                StartFailure::Format(found) => corrupt(&format!("its format is {found} now")),
                StartFailure::Database(error) => unavailable(error),
            })?);
        }
        Ok(())
    }

    /// Runs a query on the state with all changes.
    fn query<Q: Query>(&self, query: Q) -> Result<Q::Output, StoreError> {
        self.with(|opened| {
            if self.synchronization != Synchronization::Always
                && let Some(pending) = &*opened.pending.lock()
            {
                return query.run(&pending.open_table(CONTEXTS)?, &pending.open_table(BINDINGS)?);
            }
            let snapshot = opened.snapshot()?;
            query.run(&snapshot.contexts, &snapshot.bindings)
        })
    }

    /// Runs an operation on the state after the last commit.
    fn read_snapshot<T>(&self, operation: impl FnOnce(&Arc<Snapshot>) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.with(|opened| operation(&opened.snapshot()?))
    }

    fn submit(&self, change: Change) -> Result<Option<ContextId>, StoreError> {
        self.commits.submit(change, |changes| self.apply(&changes))
    }

    /// As [`submit`](Self::submit), and calls `done` with the outcome. Does not wait for the commit of another thread.
    fn submit_then(&self, change: Change, done: CommitDone<Result<Option<ContextId>, StoreError>>) {
        self.commits.submit_then(change, done, |changes| self.apply(&changes));
    }

    /// Applies changes in one transaction. If it fails, all are made or none.
    fn apply(&self, changes: &[Change]) -> Vec<Result<Option<ContextId>, StoreError>> {
        let applied = self.with(|opened| match self.synchronization {
            Synchronization::Always => opened.commit(changes),
            Synchronization::Every(_) => opened.add_to_pending(changes),
        });
        applied.unwrap_or_else(|error| changes.iter().map(|_| Err(error.clone())).collect())
    }

    /// Makes pending changes durable.
    fn synchronize(&self) -> Result<(), StoreError> {
        self.with(Opened::synchronize)
    }
}

type Outcomes = Vec<Result<Option<ContextId>, StoreError>>;

impl Opened {
    /// Makes changes in a transaction of their own, durably.
    fn commit(&self, changes: &[Change]) -> Result<Outcomes, Failure> {
        let txn = self.database.begin_write()?;
        let outcomes = apply_changes(&txn, changes)?;
        if outcomes.iter().all(Result::is_err) {
            txn.abort()?;
            return Ok(outcomes);
        }
        txn.commit()?;
        *self.snapshot.write() = None;
        Ok(outcomes)
    }

    /// Adds changes to those that are written at the next interval. Called by one thread at a time.
    fn add_to_pending(&self, changes: &[Change]) -> Result<Outcomes, Failure> {
        loop {
            if let Some(txn) = &*self.pending.lock() {
                return apply_changes(txn, changes);
            }
            // Without the lock: the beginning waits for the end of a synchronization, and readers do not.
            let mut txn = self.database.begin_write()?;
            txn.set_durability(Durability::None)?;
            *self.pending.lock() = Some(txn);
        }
    }

    fn synchronize(&self) -> Result<(), Failure> {
        {
            let mut pending = self.pending.lock();
            let Some(txn) = pending.take() else { return Ok(()) };
            txn.commit()?;
            *self.snapshot.write() = None;
        }
        Ok(self.database.begin_write()?.commit()?) // it makes the commits before it durable
    }
}

/// A question about the graph.
trait Query {
    type Output;

    fn run(
        self,
        contexts: &impl ReadableTable<u64, &'static [u8]>,
        bindings: &impl ReadableTable<&'static [u8], &'static [u8]>,
    ) -> Result<Self::Output, Failure>;
}

/// The target of a name.
struct Lookup<'n>(ContextId, &'n NameComponent);

impl Query for Lookup<'_> {
    type Output = Target;

    fn run(
        self,
        contexts: &impl ReadableTable<u64, &'static [u8]>,
        bindings: &impl ReadableTable<&'static [u8], &'static [u8]>,
    ) -> Result<Target, Failure> {
        let Self(context, name) = self;
        match bindings.get(key(context, name).as_slice())? {
            Some(value) => Ok(decode_target(value.value())?),
            None if contexts.get(context.0)?.is_some() => Err(StoreError::NotBound.into()),
            None => Err(StoreError::NoContext(context).into()),
        }
    }
}

/// A page of a listing.
struct List<'n> {
    context: ContextId,
    after: Option<&'n NameComponent>,
    limit: usize,
}

impl Query for List<'_> {
    type Output = Vec<(NameComponent, BindingType)>;

    fn run(
        self,
        contexts: &impl ReadableTable<u64, &'static [u8]>,
        bindings: &impl ReadableTable<&'static [u8], &'static [u8]>,
    ) -> Result<Self::Output, Failure> {
        if contexts.get(self.context.0)?.is_none() {
            return Err(StoreError::NoContext(self.context).into());
        }
        let range = range_of(self.context);
        let after = self.after.map(|name| key(self.context, name));
        let start = after.as_deref().map_or(Bound::Included(range.first.as_slice()), Bound::Excluded);
        let mut page = Vec::new();
        for entry in bindings.range::<&[u8]>((start, range.end()))?.take(self.limit) {
            let (key, value) = entry?;
            let (_, name) = split_key(key.value()).ok_or_else(|| corrupt("a key of a binding"))?;
            page.push((name, type_of(value.value())?));
        }
        Ok(page)
    }
}

/// The path by which a context was made.
struct PathOf(ContextId);

impl Query for PathOf {
    type Output = Option<String>;

    fn run(
        self,
        contexts: &impl ReadableTable<u64, &'static [u8]>,
        _: &impl ReadableTable<&'static [u8], &'static [u8]>,
    ) -> Result<Option<String>, Failure> {
        let record = contexts.get(self.0.0)?.ok_or(StoreError::NoContext(self.0))?;
        Ok(decode_path(record.value())?)
    }
}

/// A step that changes the graph.
enum Change {
    Bind {
        context: ContextId,
        key: Vec<u8>,
        value: Vec<u8>,
        if_bound: IfBound,
    },
    /// With a value, only a binding that has it is removed.
    Unbind {
        context: ContextId,
        key: Vec<u8>,
        value: Option<Vec<u8>>,
    },
    NewContext,
    BindNewContext {
        context: ContextId,
        name: NameComponent,
    },
    Destroy {
        context: ContextId,
    },
}

/// The tables in a transaction that writes.
struct Tables<'t> {
    contexts: Table<'t, u64, &'static [u8]>,
    bindings: Table<'t, &'static [u8], &'static [u8]>,
}

/// The outcome of each change, each of which sees those before it.
fn apply_changes(
    txn: &WriteTransaction,
    changes: &[Change],
) -> Result<Vec<Result<Option<ContextId>, StoreError>>, Failure> {
    let mut tables = Tables { contexts: txn.open_table(CONTEXTS)?, bindings: txn.open_table(BINDINGS)? };
    let mut outcomes = Vec::with_capacity(changes.len());
    for change in changes {
        match tables.apply(change) {
            Ok(created) => outcomes.push(Ok(created)),
            Err(Failure::Store(error)) => outcomes.push(Err(error)),
            Err(failure) => return Err(failure),
        }
    }
    Ok(outcomes)
}

impl Tables<'_> {
    fn apply(&mut self, change: &Change) -> Result<Option<ContextId>, Failure> {
        match change {
            Change::Bind { context, key, value, if_bound } => {
                self.require(*context)?;
                let present = self.bindings.get(key.as_slice())?.map(|present| type_of(present.value())).transpose()?;
                match (present, if_bound) {
                    (None, _) => {}
                    (Some(_), IfBound::Fail) => return Err(StoreError::AlreadyBound.into()),
                    (Some(present), IfBound::Replace) if present == type_of(value)? => {}
                    (Some(present), IfBound::Replace) => return Err(StoreError::OtherType(present).into()),
                }
                self.bindings.insert(key.as_slice(), value.as_slice())?;
                Ok(None)
            }
            Change::Unbind { context, key, value } => {
                self.require(*context)?;
                let present = self.bindings.get(key.as_slice())?;
                if let (Some(value), Some(present)) = (value, present)
                    && present.value() != value.as_slice()
                {
                    return Err(StoreError::NotBound.into());
                }
                if self.bindings.remove(key.as_slice())?.is_none() {
                    return Err(StoreError::NotBound.into());
                }
                Ok(None)
            }
            Change::NewContext => self.create(None).map(Some),
            Change::BindNewContext { context, name } => {
                let parent = self.require(*context)?;
                let key = key(*context, name);
                if self.bindings.get(key.as_slice())?.is_some() {
                    return Err(StoreError::AlreadyBound.into());
                }
                let path = parent.map(|parent| join(&parent, name));
                let created = self.create(path.as_deref())?;
                self.bindings.insert(key.as_slice(), encode_target(&Target::Context(created))?.as_slice())?;
                Ok(Some(created))
            }
            Change::Destroy { context } => {
                self.require(*context)?;
                if self.bindings.range::<&[u8]>(range_of(*context).as_tuple())?.next().transpose()?.is_some() {
                    return Err(StoreError::NotEmpty(*context).into());
                }
                if *context == ContextId::ROOT {
                    return Err(StoreError::Root.into());
                }
                self.contexts.remove(context.0)?;
                Ok(None)
            }
        }
    }

    /// The path of a context that must exist.
    fn require(&self, context: ContextId) -> Result<Option<String>, Failure> {
        let record = self.contexts.get(context.0)?.ok_or(StoreError::NoContext(context))?;
        Ok(decode_path(record.value())?)
    }

    fn create(&mut self, path: Option<&str>) -> Result<ContextId, Failure> {
        let mut id = fastrand::u64(1..);
        while self.contexts.get(id)?.is_some() {
            id = fastrand::u64(1..);
        }
        self.contexts.insert(id, encode_path(path).as_slice())?;
        Ok(ContextId(id))
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
        self.shared.synchronization == Synchronization::Always
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
                if let Err(error) = self.shared.synchronize() {
                    tracing::error!(%error, "the last changes of the naming store could not be written");
                }
            }
        }
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
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(interval) == Err(mpsc::RecvTimeoutError::Timeout) {
                _ = shared.synchronize(); // logged; the next interval tries again
            }
        });
        Self { stop, thread }
    }

    fn stop(self) {
        drop(self.stop);
        _ = self.thread.join();
    }
}

/// The keys of one context's bindings.
struct KeyRange {
    first: Vec<u8>,
    /// `None` for the largest id.
    end: Option<Vec<u8>>,
}

fn range_of(context: ContextId) -> KeyRange {
    let end = context.0.checked_add(1).map(|next| next.to_be_bytes().to_vec());
    KeyRange { first: context.0.to_be_bytes().to_vec(), end }
}

impl KeyRange {
    fn end(&self) -> Bound<&[u8]> {
        self.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded)
    }

    fn as_tuple(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(&self.first), self.end())
    }
}
