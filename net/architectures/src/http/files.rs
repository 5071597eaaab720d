//! The files of a folder, which no path and no symbolic link leads out of.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::request::{Range, Request};
use super::response::{Response, Status};

/// The file that stands for a folder.
const INDEX: &str = "index.html";
/// The characters of a segment that are encoded in a `Location`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The files below a folder.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    #[cfg(target_os = "linux")]
    handle: File,
}

impl Files {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        if !folder.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            #[cfg(target_os = "linux")]
            handle: File::open(&folder)?,
            folder,
        })
    }

    pub(super) fn folder(&self) -> &PathBuf {
        &self.folder
    }

    #[cfg(target_os = "linux")]
    pub(super) fn handle(&self) -> spandrel_ipc::Handle<'_> {
        std::os::fd::AsFd::as_fd(&self.handle)
    }

    /// Opens a file or a folder below this one, without a wait. An error if a symbolic link leads out of the folder.
    #[cfg(target_os = "linux")]
    fn open_below(&self, path: &Path) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
        // Without a wait for the other end of a named pipe.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.handle, path, flags, Mode::empty(), resolve) {
            Ok(file) => Ok(file.into()),
            Err(rustix::io::Errno::NOSYS) => self.open_canonical(path),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open_below(&self, path: &Path) -> io::Result<File> {
        self.open_canonical(path)
    }

    /// Opens a file by its path without symbolic links. A link that is made in the meantime is followed.
    fn open_canonical(&self, path: &Path) -> io::Result<File> {
        let path = self.folder.join(path).canonicalize()?;
        if !path.starts_with(&self.folder) || !(path.is_file() || cfg!(unix) && path.is_dir()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        File::open(path)
    }

    /// The response to a GET or HEAD.
    pub(super) fn respond(&self, request: &Request) -> Response {
        match self.find(request) {
            Ok(response) => response,
            Err(error) if is_shortage(&error) => {
                tracing::warn!(%error, "a file cannot be opened");
                Response::of(Status::InternalError)
            }
            Err(_) => Response::of(Status::NotFound),
        }
    }

    fn find(&self, request: &Request) -> io::Result<Response> {
        let Some(mut path) = path(&request.segments) else { return Ok(Response::of(Status::NotFound)) };
        if request.is_folder {
            path.push(INDEX);
        }
        let file = self.open_below(&path);
        let metadata = file.as_ref().ok().and_then(|file| file.metadata().ok());
        if !request.is_folder && metadata.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            let encode = |segment: &Vec<u8>| format!("/{}", percent_encode(segment, ENCODED));
            let location: String = request.segments.iter().map(encode).collect();
            return Ok(Response { location: Some(location + "/"), ..Response::of(Status::MovedPermanently) });
        }
        let (file, metadata) = (file?, metadata.ok_or(io::ErrorKind::NotFound)?);
        if !metadata.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let modified = metadata.modified().ok().map(whole_seconds);
        let response = Response { modified, content_type: content_type(&path), ..Response::of(Status::Ok) };
        match request.conditions.status(modified) {
            None => {}
            Some(Status::NotModified) => return Ok(Response { status: Status::NotModified, ..response }),
            Some(failed) => return Ok(Response::of(failed)),
        }
        // RFC 9110, 13.2.2, step 5.
        let is_current = request.if_range.is_none_or(|version| version.valid().is_some_and(|it| Some(it) == modified));
        match request.range.filter(|_| is_current) {
            Some(range) => part(file, metadata.len(), range, response),
            None => Ok(Response { file: Some((file, metadata.len())), ..response }),
        }
    }
}

/// A part of a file of `len` octets.
fn part(mut file: File, len: u64, range: Range, response: Response) -> io::Result<Response> {
    let octets = match range {
        Range::From(first, last) => first..last.map_or(len, |last| last.saturating_add(1).min(len)),
        Range::Last(count) => len.saturating_sub(count)..len,
    };
    if octets.start >= octets.end {
        let content_range = Some(format!("bytes */{len}"));
        return Ok(Response { content_range, ..Response::of(Status::RangeNotSatisfiable) });
    }
    file.seek(SeekFrom::Start(octets.start))?;
    let content_range = Some(format!("bytes {}-{}/{len}", octets.start, octets.end - 1));
    let file = Some((file, octets.end - octets.start));
    Ok(Response { status: Status::PartialContent, content_range, file, ..response })
}

/// Whether it is the server's failure, not that of the path.
fn is_shortage(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, ResourceBusy};
    #[cfg(unix)]
    let has_no_descriptors = {
        let number = error.raw_os_error();
        [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(|error| Some(error.raw_os_error())).contains(&number)
    };
    #[cfg(not(unix))]
    let has_no_descriptors = false;
    has_no_descriptors || matches!(error.kind(), Interrupted | OutOfMemory | QuotaExceeded | ResourceBusy)
}

/// The path of segments below the folder; none if the system could understand a segment as more than a name.
fn path(segments: &[Vec<u8>]) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for segment in segments {
        #[cfg(unix)]
        let name: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(segment);
        #[cfg(not(unix))]
        let name = std::str::from_utf8(segment).ok()?;
        // Separators, drives and streams; and dots and blanks at the end, which the system ignores.
        #[cfg(not(unix))]
        if name.contains(['\\', ':']) || name.ends_with(['.', ' ']) {
            return None;
        }
        path.push(name);
    }
    Some(if path.as_os_str().is_empty() { PathBuf::from(".") } else { path })
}

/// Times in header fields have whole seconds.
fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

/// The media type of a file, by the end of its name.
fn content_type(path: &Path) -> &'static str {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    match &*extension {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "txt" | "md" => "text/plain; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "pdf" => "application/pdf",
        "wasm" => "application/wasm",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}
