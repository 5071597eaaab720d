//! The storage of a service's database, and of its redo log.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{Builder, Database, StorageBackend, WriteTransaction};

/// Opens a database with a cache of this size in octets.
type Open = dyn Fn(&mut Builder) -> Result<Database, redb::Error> + Send + Sync;

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
}

impl Storage {
    /// A file, which the first opening creates. Only the user of the process can read it.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let (file, log) = (path.clone(), log_of(&path));
        let open = move |builder: &mut Builder| {
            if !file.exists() {
                create_database(builder, &file)?;
            } else if fs::metadata(&file)?.len() == 0 {
                return Err(redb::Error::Corrupted("the file is empty".to_owned()));
            }
            Ok(builder.open(&file)?)
        };
        Self { path, open: Arc::new(open), open_log: Arc::new(move || open_log_file(&log)) }
    }

    /// Other storage than a file: `backend` returns it for each opening. For tests of failures.
    pub fn backend<B: StorageBackend>(backend: impl Fn() -> B + Send + Sync + 'static) -> Self {
        let open = move |builder: &mut Builder| Ok(builder.create_with_backend(backend())?);
        let open_log = || Err(io::Error::new(io::ErrorKind::Unsupported, "the storage has no redo log"));
        Self { path: PathBuf::new(), open: Arc::new(open), open_log: Arc::new(open_log) }
    }

    /// With a redo log in other storage than a file. For tests of failures.
    #[must_use]
    pub fn with_log<B: StorageBackend>(mut self, log: impl Fn() -> B + Send + Sync + 'static) -> Self {
        self.open_log = Arc::new(move || Ok(Box::new(log())));
        self
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

    /// Opens the database, or creates it, with this many octets of memory for pages.
    ///
    /// # Errors
    /// Storage that cannot be read or written, that another process uses, or that has other contents.
    pub fn open(&self, cache: usize) -> Result<Database, redb::Error> {
        (self.open)(Builder::new().set_cache_size(cache))
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

/// Creates a database, with another name until it is complete.
fn create_database(builder: &mut Builder, path: &Path) -> Result<(), redb::Error> {
    let log = log_of(path);
    if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        let reason = format!("it is missing, and its redo log {} is there (remove it to begin anew)", log.display());
        return Err(redb::Error::Corrupted(reason));
    }
    let part = tempfile::Builder::new().prefix(".new-").suffix(".redb").tempfile_in(folder_of(path))?;
    drop(builder.create(part.path())?);
    match part.persist_noclobber(path) {
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {} // another process was faster
        outcome => drop(outcome.map_err(|error| error.error)?),
    }
    Ok(synchronize_folder(path)?)
}

fn open_log_file(path: &Path) -> io::Result<Box<dyn StorageBackend>> {
    let is_new = !path.exists();
    let file = private_file().read(true).write(true).create(true).truncate(false).open(path)?;
    if is_new {
        synchronize_folder(path)?;
    }
    Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
}

/// Options for files that only the user of the process can read, if they are new (on Unix).
#[must_use]
pub fn private_file() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there is no mode"))]
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
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

/// Makes the entry of a new file in its folder durable.
///
/// # Errors
/// A folder that cannot be opened or written.
pub fn synchronize_folder(file: &Path) -> io::Result<()> {
    // Elsewhere folders cannot be opened as files, and their entries are durable with the files.
    if cfg!(unix) {
        File::open(folder_of(file))?.sync_all()?;
    }
    Ok(())
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
