//! Source text: its origin, and positions in it.
//!
//! Nothing else in this crate touches the file system.
//!
//! The limit on the octets of a file is here; those on tokens, inclusions and the sum of octets are in
//! `preprocess`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The index of a [`SourceFile`] in its [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(crate) u32);

/// A range of one source file, in octets of its [text](SourceFile::text).
///
/// The tokens of a macro expansion have the span of the macro's use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file that contains the whole range.
    pub file: FileId,
    /// The first octet, counted from 0.
    pub start: u32,
    /// The octet after the last.
    pub end: u32,
}

impl Span {
    /// From the start of `self` to the end of `last`, where both are in one file in this order; otherwise
    /// `self`.
    pub(crate) fn to(self, last: Span) -> Span {
        if self.file == last.file && last.end >= self.start { Span { end: last.end, ..self } } else { self }
    }
}

/// One file as it was read. A file read for two inclusions is listed twice; one with an include guard is read
/// once.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its path as found: the including file's folder or an include path, joined with the name in the
    /// directive.
    pub path: PathBuf,
    /// Its text. Octets that are not UTF-8 are taken as ISO 8859-1.
    pub text: Arc<str>,
    /// The `#include` that brought it in; `None` for the main file.
    pub included_from: Option<Span>,
    /// The compiler's built-in `orb.idl`, not read from a file.
    pub built_in: bool,
}

/// The files that were read, and positions in them.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
    /// The first file of each path.
    by_path: HashMap<PathBuf, FileId>,
    /// Files, and those that they include and that define nothing more there, since they were read before.
    again: BTreeSet<(FileId, FileId)>,
}

impl SourceMap {
    /// All files in the order in which they were opened; the main file is the first.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The text and the name of a file, to show a place in it.
    ///
    /// # Panics
    /// If `id` comes from another, larger map.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// The text of a span; empty if it is not inside its file.
    pub fn text(&self, span: Span) -> &str {
        let range = span.start as usize..span.end as usize;
        self.file(span.file).text.get(range).unwrap_or("")
    }

    /// The line and column (both from 1, the column in characters) where a span starts.
    pub fn line_column(&self, span: Span) -> (usize, usize) {
        let text = &self.file(span.file).text;
        let before = text.get(..span.start as usize).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|&octet| octet == b'\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }

    pub(crate) fn add(&mut self, file: SourceFile) -> FileId {
        let id = FileId(self.files.len() as u32);
        self.by_path.entry(file.path.clone()).or_insert(id);
        self.files.push(file);
        id
    }

    /// Records that `includer` includes a file that was read before and defines nothing more.
    pub(crate) fn include_again(&mut self, includer: FileId, path: &Path) {
        self.again.extend(self.by_path.get(path).map(|file| (includer, *file)));
    }

    /// Each file that includes another, with the other: also where that is not read again.
    pub(crate) fn inclusions(&self) -> impl Iterator<Item = (FileId, FileId)> {
        let files = self.files.iter().enumerate();
        let read = files.filter_map(|(nth, file)| Some((file.included_from?.file, FileId(nth as u32))));
        read.chain(self.again.iter().copied())
    }
}

/// The limit on the size of all source files of one run together, in octets; a file that is included twice counts twice.
pub const MAX_OCTETS: usize = 16 << 20;

/// Supplies the contents of IDL files to the front end: from the disk, or from memory.
pub trait SourceProvider {
    /// Reads a whole file, as octets.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] where the search continues with the next include path; any other error is
    /// reported.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The path by which the front end knows the file at `path`: the same for all paths of one file.
    fn name(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

/// The files of the operating system. A file with several paths (links, `..`) has one name: the first path for which the
/// [name](SourceProvider::name) was asked.
#[derive(Debug, Default)]
pub struct FileSystem {
    names: RefCell<HashMap<Identity, PathBuf>>,
}

/// The identity that all paths of one file share: device and inode on Unix, the canonical path elsewhere.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

fn identity(path: &Path) -> io::Result<Identity> {
    #[cfg(unix)]
    return fs::metadata(path).map(|metadata| {
        use std::os::unix::fs::MetadataExt;
        (metadata.dev(), metadata.ino())
    });
    #[cfg(not(unix))]
    return fs::canonicalize(path);
}

/// Two paths of one file, in the order in which they were given.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SameFile(pub [PathBuf; 2]);

impl fmt::Display for SameFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = &self.0;
        match first == second {
            true => write!(f, "{} is given twice", first.display()),
            false => write!(f, "{} and {} are one file: give it once", first.display(), second.display()),
        }
    }
}

impl std::error::Error for SameFile {}

impl FileSystem {
    /// The files of the operating system, with these under the given names.
    ///
    /// # Errors
    /// The first file that is given twice, also by different paths. A file that does not exist is no error here.
    pub fn with_names(files: &[impl AsRef<Path>]) -> Result<Self, SameFile> {
        let mut names: HashMap<Identity, PathBuf> = HashMap::new();
        for file in files.iter().map(AsRef::as_ref) {
            let Ok(identity) = identity(file) else { continue };
            if let Some(first) = names.insert(identity, file.to_owned()) {
                return Err(SameFile([first, file.to_owned()]));
            }
        }
        Ok(Self { names: RefCell::new(names) })
    }
}

/// Reads regular files of at most [`MAX_OCTETS`] only. Devices, pipes and directories are refused before they are opened:
/// a device may have no end, and opening a pipe waits for its writer.
impl SourceProvider for FileSystem {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut octets = Vec::new();
        // The size in the metadata may be out of date, and is 0 for the files of procfs.
        File::open(path)?.take(MAX_OCTETS as u64 + 1).read_to_end(&mut octets)?;
        if octets.len() > MAX_OCTETS {
            let message = format!("larger than {} MiB", MAX_OCTETS >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(octets)
    }

    fn name(&self, path: &Path) -> PathBuf {
        match identity(path) {
            Ok(identity) => self.names.borrow_mut().entry(identity).or_insert_with(|| path.to_owned()).clone(),
            Err(_) => path.to_owned(),
        }
    }
}

/// Files in memory, for tests and for tools with unsaved text.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl MemoryFiles {
    /// An empty set: each path is [`io::ErrorKind::NotFound`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces the one at this path.
    #[must_use]
    pub fn with(mut self, path: impl Into<PathBuf>, text: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }
}

impl SourceProvider for MemoryFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let contents = self.files.get(path);
        contents.cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}
