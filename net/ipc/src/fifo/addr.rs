//! The address of a FIFO.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// The path of a FIFO.
///
/// Displayed, and parsed, as the path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr(Box<Path>);

impl Addr {
    /// The address of the FIFO at this path, which need not exist yet.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an empty path or a NUL in it.
    pub fn path(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        if path.as_os_str().is_empty() || path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is empty or contains a NUL"));
        }
        Ok(Self(path.into()))
    }

    /// The path at which the FIFO is or will be.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

/// Creates a FIFO with these permissions (less the process's file mode creation mask), such as `0o600`. It is
/// a file, and stays until it is removed.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] and others of the operating system.
#[cfg(not(target_vendor = "apple"))]
pub fn create(addr: &Addr, mode: u32) -> io::Result<()> {
    use rustix::fs::{CWD, Mode, mkfifoat};
    Ok(mkfifoat(CWD, addr.as_path(), Mode::from_bits_truncate(mode))?)
}

impl FromStr for Addr {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        Self::path(text)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}
