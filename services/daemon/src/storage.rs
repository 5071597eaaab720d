//! The storage of a service's database.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Builder, Database, StorageBackend};

/// Opens a database with a cache of this size in octets.
type Open = dyn Fn(&mut Builder) -> Result<Database, redb::Error> + Send + Sync;

/// The storage of a service's database: a file, or in tests of failures other storage.
///
/// A service keeps it, because after an error of input or output `redb` refuses all further work: the database has to
/// be opened again.
#[derive(Clone)]
pub struct Storage {
    path: PathBuf,
    open: Arc<Open>,
}

impl Storage {
    /// A file, which the first opening creates.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let file = path.clone();
        let open = move |builder: &mut Builder| {
            let is_new = !file.exists();
            let database = builder.create(&file)?;
            if is_new {
                synchronize_folder(&file)?;
            }
            Ok(database)
        };
        Self { path, open: Arc::new(open) }
    }

    /// Other storage than a file: `backend` returns it for each opening. For tests of failures.
    pub fn backend<B: StorageBackend>(backend: impl Fn() -> B + Send + Sync + 'static) -> Self {
        let open = move |builder: &mut Builder| Ok(builder.create_with_backend(backend())?);
        Self { path: PathBuf::new(), open: Arc::new(open) }
    }

    /// The file, for messages; empty for other storage.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the database, or creates it, with this many octets of memory for pages.
    ///
    /// # Errors
    /// Storage that cannot be read or written, that another process uses, or that has other contents.
    pub fn open(&self, cache: usize) -> Result<Database, redb::Error> {
        (self.open)(Builder::new().set_cache_size(cache))
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Makes the entry of a new file in its folder durable.
///
/// # Errors
/// A folder that cannot be opened or written.
pub fn synchronize_folder(file: &Path) -> io::Result<()> {
    // Elsewhere folders cannot be opened as files, and their entries are durable with the files.
    if cfg!(unix) {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
