//! References in files: `file://` with a path, as TAO and JacORB read them.

use std::{fs, io::Read as _, path::PathBuf};

use spandrel_giop::{CompletionStatus, SystemException, minor, percent::unescape_leniently};

/// The scheme of such references.
const SCHEME: &str = "file://";

/// The largest file that is read as a reference, in octets.
const MAX_OCTETS: u64 = 1 << 20;

/// Whether a text is the URL of a file.
pub(crate) fn is_file_url(text: &str) -> bool {
    text.get(..SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
}

/// The content of the file of a URL: `file:///path`, `file://localhost/path`, or a path below the current folder behind
/// `file://`, as in TAO. `%` and two digits are an octet.
///
/// # Errors
/// BAD_PARAM for a file that cannot be read, is no regular file, has more than a mebibyte, or is not UTF-8. The error
/// has nothing of the content.
pub(crate) fn read(url: &str) -> Result<String, SystemException> {
    let path = path(&url[SCHEME.len()..]);
    let unusable = |reason: &str| {
        SystemException::bad_param(minor::BAD_SCHEME_SPECIFIC_PART, CompletionStatus::No)
            .with_detail(format!("cannot read the reference in {}: {reason}", path.display()))
    };
    let metadata = fs::metadata(&path).map_err(|error| unusable(&error.to_string()))?;
    if !metadata.is_file() {
        return Err(unusable("it is no regular file"));
    }
    let file = fs::File::open(&path).map_err(|error| unusable(&error.to_string()))?;
    let mut content = Vec::new();
    file.take(MAX_OCTETS + 1).read_to_end(&mut content).map_err(|error| unusable(&error.to_string()))?;
    if content.len() as u64 > MAX_OCTETS {
        return Err(unusable("it has more than a mebibyte"));
    }
    String::from_utf8(content).map_err(|_| unusable("it is no text"))
}

fn path(text: &str) -> PathBuf {
    let text = text.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(text);
    // `/C:/…` on Windows.
    let text = match text.as_bytes() {
        [b'/', drive, b':', ..] if cfg!(windows) && drive.is_ascii_alphabetic() => &text[1..],
        _ => text,
    };
    // A name that is no UTF-8 is not found.
    PathBuf::from(String::from_utf8_lossy(&unescape_leniently(text)).into_owned())
}
