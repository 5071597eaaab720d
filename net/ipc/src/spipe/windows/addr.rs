//! The address of an acceptor of STREAM pipes on Windows.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// The name of a pipe, `\\.\pipe\name`, or none for an end of a [`pair`](super::pair).
///
/// Displayed, and parsed, as the path. Windows ignores case in it; two addresses are equal when they are
/// spelled alike.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Addr(Option<Box<str>>);

/// The prefix of the path of every pipe of this machine.
const FOLDER: &str = r"\\.\pipe\";

/// The maximum length of a path (CreateNamedPipe), in UTF-16 units.
const LONGEST: usize = 256;

impl Addr {
    /// A path of the form `\\.\pipe\name`.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for any other path, a name that is empty or holds `\`, `/` or NUL, or
    /// is not Unicode, and a path of more than 256 characters (UTF-16 units). Pipes of other machines have no
    /// address here.
    pub fn path(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let Some((folder, name)) = path.to_str().and_then(|path| path.split_at_checked(FOLDER.len())) else {
            return Err(invalid(path.display(), r"it does not begin with `\\.\pipe\`"));
        };
        if !folder.eq_ignore_ascii_case(FOLDER) {
            return Err(invalid(path.display(), r"it does not begin with `\\.\pipe\`"));
        }
        Self::name(name)
    }

    /// The pipe of this name, which is the last part of its path.
    ///
    /// # Errors
    /// As [`path`](Self::path).
    pub fn name(name: &str) -> io::Result<Self> {
        if name.is_empty() || name.contains(['\\', '/', '\0']) {
            return Err(invalid(name, r"the name is empty or contains `\`, `/` or NUL"));
        }
        let path = format!("{FOLDER}{name}");
        if path.encode_utf16().count() > LONGEST {
            return Err(invalid(name, "it is too long for the name of a pipe"));
        }
        Ok(Self(Some(path.into())))
    }

    /// The address of a client of an acceptor, which has no name.
    #[must_use]
    pub fn unnamed() -> Self {
        Self::default()
    }

    /// The path, if there is one.
    #[must_use]
    pub fn as_path(&self) -> Option<&Path> {
        self.0.as_deref().map(Path::new)
    }

    /// The path for the system.
    pub(super) fn rendezvous(&self) -> io::Result<&str> {
        self.0
            .as_deref()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "an unnamed end of a pipe cannot be opened"))
    }
}

fn invalid(name: impl fmt::Display, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` is not the path of a pipe: {why}"))
}

impl FromStr for Addr {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        Self::path(text)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or_default())
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("(unnamed)"))
    }
}
