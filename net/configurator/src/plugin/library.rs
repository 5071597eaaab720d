//! Shared libraries: finding, mapping of a private copy, and unmapping.

use std::collections::HashSet;
use std::env;
#[cfg(target_os = "linux")]
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf, absolute};
use std::time::SystemTime;

use spandrel_sync::atomic::{AtomicU64, Ordering};
use spandrel_sync::{Arc, Weak};

use super::abi::{ABI_SYMBOL, Abi, MAGIC, RawService, VERSION};

/// The content of a file, as far as its metadata shows that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    length: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    inode: u64,
}

impl FileStamp {
    fn of(file: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(file)?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        Ok(Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(&metadata),
        })
    }
}

/// The folders of libraries: those of the system's variable for them, and that of the executable.
pub(crate) fn standard_folders() -> Vec<PathBuf> {
    let variable = if cfg!(windows) {
        "PATH"
    } else if cfg!(target_os = "macos") {
        "DYLD_LIBRARY_PATH"
    } else {
        "LD_LIBRARY_PATH"
    };
    let mut folders: Vec<PathBuf> =
        env::var_os(variable).map(|paths| env::split_paths(&paths).collect()).unwrap_or_default();
    folders.extend(env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned())));
    folders
}

/// Finds the file of a library: with or without the prefix and the extension of the system, first in the folder of the
/// configuration file. A name with a path is relative to that folder, then to the current one.
pub(crate) fn find_library(name: &str, folder: &Path, folders: &[PathBuf]) -> Result<(PathBuf, FileStamp), String> {
    let path = Path::new(name);
    let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let names = [file_name.to_owned(), format!("{prefix}{file_name}{suffix}"), format!("{file_name}{suffix}")];
    let parent = path.parent().unwrap_or(Path::new(""));
    let has_path = parent != Path::new("");
    let mut places = vec![folder.join(parent)];
    if has_path {
        places.push(parent.to_owned());
    } else {
        places.extend(folders.iter().cloned());
    }
    for place in &places {
        for name in &names {
            let file = place.join(name);
            if let Ok(stamp) = FileStamp::of(&file) {
                return Ok((file, stamp));
            }
        }
    }
    // The configuration's folder may be the current one, and that of the libraries.
    let (mut searched, mut named) = (HashSet::new(), Vec::new());
    for place in places {
        let place = if place.as_os_str().is_empty() { PathBuf::from(".") } else { place };
        if searched.insert(place.canonicalize().or_else(|_| absolute(&place)).unwrap_or_else(|_| place.clone())) {
            let without_end: PathBuf = place.components().collect(); // of `folder/`
            named.push(without_end.display().to_string());
        }
    }
    Err(format!("there is no library `{name}` (nor {}) in {}", names[1], named.join(", ")))
}

/// The libraries that are mapped.
#[derive(Default)]
pub(crate) struct Libraries {
    mapped: Vec<(PathBuf, FileStamp, Weak<Library>)>,
}

impl Libraries {
    /// Maps a private copy of a library, unless the same file is mapped already.
    pub(crate) fn open(&mut self, file: &Path, stamp: &FileStamp) -> Result<Arc<Library>, String> {
        self.mapped.retain(|(.., library)| library.strong_count() > 0);
        let entry = self.mapped.iter().find(|(other, of, _)| other == file && of == stamp);
        if let Some(library) = entry.and_then(|(.., library)| library.upgrade()) {
            return Ok(library);
        }
        let library = Arc::new(Library::map(file, stamp)?);
        self.mapped.push((file.to_owned(), stamp.clone(), Arc::downgrade(&library)));
        Ok(library)
    }
}

/// A mapped library. The last reference unmaps it.
pub(crate) struct Library {
    file: PathBuf,
    /// `None` after it was closed.
    library: Option<libloading::Library>,
    copy: Option<PrivateCopy>,
}

/// Reads a file that has the length and the time of its stamp before and after the reading: a library that is being written
/// at the moment is read again when it is complete.
fn read_unchanged(file: &Path, stamp: &FileStamp) -> Result<Vec<u8>, String> {
    let content = std::fs::read(file).map_err(|error| error.to_string())?;
    let present = FileStamp::of(file).map_err(|error| error.to_string())?;
    if present != *stamp || content.len() as u64 != stamp.length {
        return Err("the file has changed while it was read".to_owned());
    }
    Ok(content)
}

impl Library {
    fn map(file: &Path, stamp: &FileStamp) -> Result<Self, String> {
        let failed = |text: String| format!("cannot map the library {}: {text}", file.display());
        let content = read_unchanged(file, stamp).map_err(failed)?;
        // Windows and macOS compare a library with the length of its file themselves.
        #[cfg(not(any(windows, target_vendor = "apple")))]
        super::elf::check_complete(&content).map_err(failed)?;
        let copy = PrivateCopy::of(file, &content).map_err(|error| failed(error.to_string()))?;
        drop(content);
        // SAFETY: the initialization code of the library runs. The configuration names libraries that the operator trusts as
        // much as the program; nothing that a peer sends chooses one.
        let library = unsafe { libloading::Library::new(copy.path()) };
        let library = library.map_err(|error| failed(spandrel_error::report_in_line(&error)))?;
        let library = Self { file: file.to_owned(), library: Some(library), copy: Some(copy) };
        library.check_version()?;
        Ok(library)
    }

    /// Its file, from which it was copied.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    pub(super) fn library(&self) -> &libloading::Library {
        self.library.as_ref().expect("the library is closed by its destructor only")
    }

    fn check_version(&self) -> Result<(), String> {
        let file = self.file.display();
        // SAFETY: only the address of the symbol is taken; its content is compared with the magic octets below.
        let abi = unsafe { self.library().get::<*const Abi>(ABI_SYMBOL.as_bytes()) };
        let Ok(abi) = abi else {
            return Err(format!("the library {file} contains no services: it has no variable `{ABI_SYMBOL}`"));
        };
        // SAFETY: a variable of that name is an `Abi`, by the contract of the header. Its first octets are compared before
        // the rest counts.
        let Abi { magic, version, service_size } = unsafe { std::ptr::read_unaligned(*abi) };
        if magic != MAGIC {
            return Err(format!("the library {file} contains no services: its `{ABI_SYMBOL}` has other content"));
        }
        let expected = size_of::<RawService>() as u32;
        if version != VERSION || service_size != expected {
            return Err(format!(
                "the library {file} was built for version {version} of the interface of services (structure of {service_size} octets); this program has version {VERSION} ({expected} octets): build it again"
            ));
        }
        Ok(())
    }

    pub(crate) fn usage(self: &Arc<Self>) -> LibraryUse {
        LibraryUse {
            file: self.file.clone(),
            mark: self.copy.as_ref().and_then(PrivateCopy::mark),
            library: Arc::downgrade(self),
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let mark = self.copy.as_ref().and_then(PrivateCopy::mark);
        if let Some(library) = self.library.take()
            && let Err(error) = library.close()
        {
            tracing::warn!(file = %self.file.display(), %error, "a library cannot be unmapped");
        }
        if mark.is_some_and(|mark| is_mapped(&mark)) {
            tracing::warn!(file = %self.file.display(), "a library stays mapped: something in it has not ended");
            // The name of the copy must not be used for another one.
            std::mem::forget(self.copy.take());
        }
    }
}

/// The use of a library after the end of its service.
pub(crate) struct LibraryUse {
    file: PathBuf,
    mark: Option<String>,
    library: Weak<Library>,
}

impl LibraryUse {
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether both are uses of one library.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Weak::ptr_eq(&self.library, &other.library)
    }

    /// The number of references to the library; 1 if it is mapped without any.
    pub(crate) fn users(&self) -> usize {
        match self.library.strong_count() {
            0 => usize::from(self.mark.as_deref().is_some_and(is_mapped)),
            users => users,
        }
    }
}

/// A copy of a library's file, under a name that no mapped library has: the system's loader would take the mapped one for
/// the same file otherwise.
struct PrivateCopy {
    path: PathBuf,
    mark: String,
    /// In memory, so that no folder need be writable; open as long as its name is used.
    #[cfg(target_os = "linux")]
    _file: File,
}

static COPIES: AtomicU64 = AtomicU64::new(0);

impl PrivateCopy {
    #[cfg(target_os = "linux")]
    fn of(file: &Path, content: &[u8]) -> io::Result<Self> {
        use std::io::Write as _;
        use std::os::fd::AsRawFd as _;

        use rustix::fs::{MemfdFlags, memfd_create};

        let number = COPIES.fetch_add(1, Ordering::Relaxed);
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or("library");
        let name: String = name.chars().filter(char::is_ascii_graphic).take(100).collect();
        let mark = format!("spandrel-{number}-{name}");
        let mut copy = File::from(memfd_create(mark.as_str(), MemfdFlags::CLOEXEC)?);
        copy.write_all(content)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", copy.as_raw_fd()));
        Ok(Self { path, mark, _file: copy })
    }

    #[cfg(not(target_os = "linux"))]
    fn of(file: &Path, content: &[u8]) -> io::Result<Self> {
        let number = COPIES.fetch_add(1, Ordering::Relaxed);
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or("library");
        let mark = format!("spandrel-{}-{number}-{name}", std::process::id());
        let path = env::temp_dir().join(&mark);
        std::io::Write::write_all(&mut std::fs::File::create_new(&path)?, content)?;
        Ok(Self { path, mark })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// The text by which the process's list of mappings shows it, where there is such a list.
    fn mark(&self) -> Option<String> {
        cfg!(target_os = "linux").then(|| self.mark.clone())
    }
}

#[cfg(not(target_os = "linux"))]
impl Drop for PrivateCopy {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(file = %self.path.display(), mark = self.mark, %error, "a copy of a library cannot be removed");
        }
    }
}

/// Whether the code of the copy is mapped. (A backtrace may have mapped its symbols, which the standard library keeps.)
fn is_mapped(mark: &str) -> bool {
    let is_code = |line: &str| line.contains(mark) && line.split(' ').nth(1).is_some_and(|rights| rights.contains('x'));
    std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.lines().any(is_code))
}
