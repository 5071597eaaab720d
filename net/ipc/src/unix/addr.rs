//! The address of a UNIX-domain endpoint.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

use socket2::SockAddr;

use crate::dgram::{self, Address, Encode};
use crate::sys::dgram::octets;

/// A UNIX-domain address: a path, on Linux also an abstract name, or none for an unnamed endpoint.
///
/// Displayed, and parsed, as the path, or as `@name` for an abstract name. (A path that begins with `@` is
/// displayed with a leading `./`.) The unnamed address is displayed as the empty text, and parsed from it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Addr(Name);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
enum Name {
    #[default]
    Unnamed,
    Path(Box<Path>),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    Abstract(Box<[u8]>),
}

impl Addr {
    /// A path in the file system.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an empty path, a NUL in it, or one that is too long for a socket
    /// address: Linux takes 107 octets, other systems about a hundred. A longer one may be reached by a
    /// shorter name, relative to the working directory.
    pub fn path(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let octets = path.as_os_str().as_bytes();
        if octets.is_empty() || octets.contains(&0) {
            return Err(invalid(path.display(), "the path is empty or contains a NUL"));
        }
        SockAddr::unix(path).map_err(|_| invalid(path.display(), "it is too long for the address of a socket"))?;
        Ok(Self(Name::Path(path.into())))
    }

    /// A name outside of the file system (unix(7)): it belongs to the network namespace and disappears with
    /// the endpoint.
    ///
    /// Any process of the namespace may connect to it: there are no permissions. See
    /// `Stream::peer_credentials`.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for more than 107 octets.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn abstract_name(name: impl AsRef<[u8]>) -> io::Result<Self> {
        let name = name.as_ref();
        let addr = Self(Name::Abstract(name.into()));
        addr.to_system().map_err(|_| invalid(name.escape_ascii(), "it is too long for the address of a socket"))?;
        Ok(addr)
    }

    /// No name: the address of a client that was not bound, and of both ends of a [`pair`](super::pair). An
    /// acceptor opened with it gets a free abstract name on Linux, as an Internet one with port 0 gets a free
    /// port, and fails elsewhere.
    #[must_use]
    pub fn unnamed() -> Self {
        Self::default()
    }

    /// The path, if there is one.
    #[must_use]
    pub fn as_path(&self) -> Option<&Path> {
        match &self.0 {
            Name::Path(path) => Some(path),
            _ => None,
        }
    }

    /// The abstract name, if there is one.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[must_use]
    pub fn as_abstract_name(&self) -> Option<&[u8]> {
        match &self.0 {
            Name::Abstract(name) => Some(name),
            _ => None,
        }
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        self.0 == Name::Unnamed
    }

    /// The address as a socket address of the system.
    pub(crate) fn to_system(&self) -> io::Result<SockAddr> {
        match &self.0 {
            Name::Unnamed => SockAddr::unix(""),
            Name::Path(path) => SockAddr::unix(path),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Name::Abstract(name) => SockAddr::unix(OsStr::from_bytes(&[&[0], &name[..]].concat())),
        }
    }

    /// The address from a socket address of the system.
    pub(crate) fn from_system(addr: &SockAddr) -> io::Result<Self> {
        if let Some(path) = addr.as_pathname() {
            return Ok(Self(Name::Path(path.into())));
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = addr.as_abstract_namespace() {
            return Ok(Self(Name::Abstract(name.into())));
        }
        // Systems represent an unnamed endpoint in several ways, some as an empty address of no family.
        Ok(Self::unnamed())
    }
}

fn invalid(name: impl fmt::Display, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` is not a UNIX-domain address: {why}"))
}

impl FromStr for Addr {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        match text.strip_prefix('@') {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Some(name) => Self::abstract_name(name),
            #[cfg(not(any(target_os = "linux", target_os = "android")))]
            Some(_) => Err(invalid(text, "this system has no abstract names")),
            None if text.is_empty() => Ok(Self::unnamed()),
            None => Self::path(OsStr::new(text)),
        }
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Name::Unnamed => Ok(()),
            Name::Path(path) => {
                let prefix = if path.as_os_str().as_bytes().starts_with(b"@") { "./" } else { "" };
                write!(f, "{prefix}{}", path.display())
            }
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Name::Abstract(name) => match std::str::from_utf8(name) {
                Ok(name) if !name.chars().any(char::is_control) => write!(f, "@{name}"),
                _ => write!(f, "@{}", name.escape_ascii()),
            },
        }
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Name::Unnamed => f.write_str("(unnamed)"),
            _ => fmt::Display::fmt(self, f),
        }
    }
}

impl Address for Addr {}

impl Encode for Addr {
    fn encode(&self) -> io::Result<dgram::Name> {
        use rustix::net::SocketAddrUnix;
        if let Some(path) = self.as_path() {
            return Ok(SocketAddrUnix::new(path)?.into());
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = self.as_abstract_name() {
            return Ok(SocketAddrUnix::new_abstract_name(name)?.into());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "no datagram can be sent to an unnamed endpoint"))
    }

    /// Never fails: a sender with an unusable name, longer than an address may be, counts as unnamed.
    fn decode(name: Option<&dgram::Name>) -> io::Result<Self> {
        // struct sockaddr_un: the family (and on some systems the length), then the path
        let path = name.and_then(|name| octets(name).get(2..)).unwrap_or_default();
        Ok(match path {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            [0, name @ ..] => Self::abstract_name(name),
            #[cfg(not(any(target_os = "linux", target_os = "android")))]
            [0, ..] => Ok(Self::unnamed()),
            [] => Ok(Self::unnamed()),
            path => {
                let end = path.iter().position(|octet| *octet == 0).unwrap_or(path.len());
                Self::path(OsStr::from_bytes(&path[..end]))
            }
        }
        .unwrap_or_default())
    }
}
