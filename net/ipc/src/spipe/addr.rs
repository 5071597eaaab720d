//! The address of an acceptor of STREAM pipes.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use socket2::SockAddr;

use crate::unix;

/// The path of a process that accepts STREAM pipes, or no name for an end of a pipe.
///
/// Displayed, and parsed, as the path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Addr(unix::Addr);

impl Addr {
    /// The address of the pipe at this path, which need not exist yet.
    ///
    /// # Errors
    /// As [`unix::Addr::path`].
    pub fn path(path: impl AsRef<Path>) -> io::Result<Self> {
        unix::Addr::path(path).map(Self)
    }

    /// The unnamed address of an end of a pipe.
    #[must_use]
    pub fn unnamed() -> Self {
        Self::default()
    }

    /// The path in the file system; `None` for an address without one.
    #[must_use]
    pub fn as_path(&self) -> Option<&Path> {
        self.0.as_path()
    }

    /// The address of the listening socket.
    pub(super) fn rendezvous(&self) -> io::Result<&unix::Addr> {
        match self.as_path() {
            Some(_) => Ok(&self.0),
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, "an unnamed end of a pipe cannot be opened")),
        }
    }

    pub(super) fn from_system(addr: &SockAddr) -> io::Result<Self> {
        unix::Addr::from_system(addr).map(Self)
    }
}

impl FromStr for Addr {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        Self::path(text)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
