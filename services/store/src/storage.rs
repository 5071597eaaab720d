//! The storage of a service's database, and of its redo log.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{
    Builder, Database, ReadTransaction, ReadableDatabase as _, StorageBackend, TableHandle as _, WriteTransaction,
};

use crate::error::{OpenCause, OpenError};
use crate::files::{folder_of, private_file, synchronize_folder};
use crate::header::{LogState, StoreHeader};
use crate::overlay::Overlay;
use crate::service::Service;

/// Opens a database of a layout, or creates it.
type Open = dyn Fn(&mut Builder, &Layout) -> Result<Database, OpenCause> + Send + Sync;

/// Opens a redo log.
type OpenLog = dyn Fn() -> io::Result<Box<dyn StorageBackend>> + Send + Sync;

/// The storage of a service's database: a file, or in tests of failures other storage.
///
/// A service keeps it, because after an error of input or output `redb` refuses all further work: the database has to
/// be opened again.
#[derive(Clone)]
pub struct Storage {
    path: PathBuf,
    open: Arc<Open>,
    open_log: Arc<OpenLog>,
    policy: LogPolicy,
}

/// The treatment of a redo log whose records are damaged or missing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LogPolicy {
    /// It is an error.
    #[default]
    Refuse,
    /// The changes before the damage are repeated, and the others are dropped with a warning.
    DropDamaged,
}

/// The tables that a service keeps in its database, and the functions that create and convert them.
#[derive(Debug)]
pub struct Layout {
    /// The service that the tables belong to.
    pub service: Service,
    /// The version of these tables that the program writes. It reads no others.
    pub version: u32,
    /// Creates the tables of a new store, in the transaction that writes its header.
    pub create: fn(&WriteTransaction) -> Result<(), redb::Error>,
    /// Converts the tables of a store without a header, in the transaction that writes it. The changes that only its
    /// redo log has become part of the transaction, too.
    pub convert: fn(&WriteTransaction, &Storage) -> Result<(), OpenCause>,
    /// Copies all tables into a new store, in the transaction that writes its header: [`copy_table`](crate::copy_table).
    pub copy: fn(&ReadTransaction, &WriteTransaction) -> Result<(), redb::Error>,
}

impl Storage {
    /// A file, which the first opening creates. Only the user of the process can read it.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let (file, log) = (path.clone(), log_of(&path));
        let open = move |builder: &mut Builder, layout: &Layout| {
            if !file.exists() {
                create_database(builder, &file, layout)?;
            }
            check_length(&file)?;
            Ok(builder.open(&file)?)
        };
        Self::new(path, open, move || open_log_file(&log))
    }

    /// A file that exists, and that is only read, as its redo log is. Changes of the store stay in memory.
    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let (file, log) = (path.clone(), log_of(&path));
        let open = move |builder: &mut Builder, _: &Layout| {
            check_length(&file)?;
            let overlay = Overlay::open(&file).map_err(|error| match error.kind() {
                io::ErrorKind::ResourceBusy => OpenCause::InUse,
                _ => error.into(),
            })?;
            Ok(builder.create_with_backend(overlay)?)
        };
        let open_log = move || -> io::Result<Box<dyn StorageBackend>> {
            match Overlay::open(&log) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Box::new(Overlay::empty())),
                outcome => Ok(Box::new(outcome?)),
            }
        };
        Self::new(path, open, open_log)
    }

    /// Other storage than a file: `backend` returns it for each opening. For tests of failures.
    pub fn backend<B: StorageBackend>(backend: impl Fn() -> B + Send + Sync + 'static) -> Self {
        let open = move |builder: &mut Builder, layout: &Layout| {
            let backend = backend();
            let is_new = StorageBackend::len(&backend)? == 0;
            let database = builder.create_with_backend(backend)?;
            if is_new {
                create_store(&database, layout)?;
            }
            Ok(database)
        };
        let open_log = || Err(io::Error::new(io::ErrorKind::Unsupported, "the storage has no redo log"));
        Self::new(PathBuf::new(), open, open_log)
    }

    fn new(
        path: PathBuf,
        open: impl Fn(&mut Builder, &Layout) -> Result<Database, OpenCause> + Send + Sync + 'static,
        open_log: impl Fn() -> io::Result<Box<dyn StorageBackend>> + Send + Sync + 'static,
    ) -> Self {
        Self { path, open: Arc::new(open), open_log: Arc::new(open_log), policy: LogPolicy::Refuse }
    }

    /// Keeps the redo log in other storage than a file. For tests of failures.
    #[must_use]
    pub fn with_log<B: StorageBackend>(mut self, log: impl Fn() -> B + Send + Sync + 'static) -> Self {
        self.open_log = Arc::new(move || Ok(Box::new(log())));
        self
    }

    /// Sets the treatment of a redo log that cannot be trusted; by default it is an error.
    #[must_use]
    pub fn with_policy(mut self, policy: LogPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The treatment of a damaged redo log ([`with_policy`](Self::with_policy)).
    #[must_use]
    pub fn policy(&self) -> LogPolicy {
        self.policy
    }

    /// The file, for messages; empty for other storage.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the redo log, for messages: `FILE.log`.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        log_of(&self.path)
    }

    /// The failure to open this storage.
    #[must_use]
    pub fn error(&self, cause: OpenCause) -> OpenError {
        OpenError { file: self.path.clone(), cause }
    }

    /// Opens the database, or creates it, with this many octets of memory for pages. All pages in use are read, and
    /// compared with their checksums. A store without a header is converted. To be called in
    /// [`catch_damage`](crate::catch_damage).
    ///
    /// # Errors
    /// Storage that cannot be read or written, that another process uses, that is damaged, or that is the store of
    /// another service or version.
    pub fn open(&self, layout: &Layout, cache: usize) -> Result<(Database, StoreHeader), OpenCause> {
        let mut database = (self.open)(Builder::new().set_cache_size(cache), layout)?;
        // The trees are sound if it succeeds. Its answer is about free pages, which it counts anew.
        database.check_integrity()?;
        let header = self.header(&database, layout)?;
        Ok((database, header))
    }

    /// Reads the header of a database. One without a header is converted if it has the tables of the service.
    fn header(&self, database: &Database, layout: &Layout) -> Result<StoreHeader, OpenCause> {
        let reading = database.begin_read()?;
        if let Some(header) = StoreHeader::read(&reading, layout.service, layout.version)? {
            return Ok(header);
        }
        let mut tables: Vec<String> = reading.list_tables()?.map(|table| table.name().to_owned()).collect();
        tables.sort_unstable();
        drop(reading);
        match Service::ALL.into_iter().find(|service| tables == service.tables()) {
            Some(service) if service == layout.service => self.convert(database, layout),
            Some(service) => Err(OpenCause::OtherService(service)),
            None if tables.is_empty() => {
                Err(OpenCause::NoStore("it has no tables, and so is no store (remove it to begin anew)".to_owned()))
            }
            None => Err(OpenCause::NoStore(format!("it is no store of {}: it has other tables", layout.service))),
        }
    }

    fn convert(&self, database: &Database, layout: &Layout) -> Result<StoreHeader, OpenCause> {
        let transaction = begin_write(database)?;
        (layout.convert)(&transaction, self)?;
        let mut header = StoreHeader::new(layout.service, layout.version)?;
        header.log = LogState::Earlier;
        header.write(&transaction)?;
        transaction.commit()?;
        Ok(header)
    }

    /// Opens the redo log, or creates it without octets. Only for the program that has the database open.
    ///
    /// # Errors
    /// Storage that cannot be read or written.
    pub fn open_log(&self) -> io::Result<Box<dyn StorageBackend>> {
        (self.open_log)()
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("path", &self.path).finish_non_exhaustive()
    }
}

fn log_of(file: &Path) -> PathBuf {
    let mut log = file.as_os_str().to_owned();
    log.push(".log");
    log.into()
}

fn check_length(file: &Path) -> Result<(), OpenCause> {
    if fs::metadata(file)?.len() == 0 {
        return Err(OpenCause::NoStore("the file is empty".to_owned()));
    }
    Ok(())
}

/// Creates a store, with another name until it is complete.
fn create_database(builder: &mut Builder, path: &Path, layout: &Layout) -> Result<(), OpenCause> {
    let log = log_of(path);
    if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        let reason = format!("it is missing, and its redo log {} is there (remove it to begin anew)", log.display());
        return Err(OpenCause::NoStore(reason));
    }
    match create_file(builder, path, |database| create_store(database, layout)) {
        // Another process was faster.
        Err(redb::Error::Io(error)) if error.kind() == io::ErrorKind::AlreadyExists => Ok(synchronize_folder(path)?),
        outcome => Ok(outcome?),
    }
}

/// Creates the file of a database durably, with another name until `fill` has given it its contents.
pub(crate) fn create_file(
    builder: &mut Builder,
    path: &Path,
    fill: impl FnOnce(&Database) -> Result<(), redb::Error>,
) -> Result<(), redb::Error> {
    if path.try_exists()? {
        return Err(io::Error::from(io::ErrorKind::AlreadyExists).into());
    }
    let part = tempfile::Builder::new().prefix(".new-").suffix(".redb").tempfile_in(folder_of(path))?;
    fill(&builder.create(part.path())?)?;
    part.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(synchronize_folder(path)?)
}

/// Creates the tables and the header of a new store.
fn create_store(database: &Database, layout: &Layout) -> Result<(), redb::Error> {
    let transaction = begin_write(database)?;
    (layout.create)(&transaction)?;
    StoreHeader::new(layout.service, layout.version)?.write(&transaction)?;
    Ok(transaction.commit()?)
}

fn open_log_file(path: &Path) -> io::Result<Box<dyn StorageBackend>> {
    let is_new = !path.exists();
    let file = private_file().read(true).write(true).create(true).truncate(false).open(path)?;
    if is_new {
        synchronize_folder(path)?;
    }
    Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
}

/// Begins a transaction that commits in two phases. After the end of the process at any instant, a damaged state is then
/// an error of the opening: with one phase, `redb` takes it for an interrupted commit, and opens the state before.
///
/// # Errors
/// Those of `redb`.
pub fn begin_write(database: &Database) -> Result<WriteTransaction, redb::TransactionError> {
    let mut transaction = database.begin_write()?;
    transaction.set_two_phase_commit(true);
    Ok(transaction)
}
