//! Addresses as the system calls take and give them.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::io;

#[cfg(unix)]
pub(crate) use rustix::net::SocketAddrAny as Name;
#[cfg(windows)]
pub(crate) use socket2::SockAddr as Name;

/// Where a datagram endpoint is: the address type of one family, such as [`inet::Addr`](crate::inet::Addr).
///
/// Families of this crate implement it; others cannot.
pub trait Address: Encode + Clone + Eq + Hash + Debug + Display + Send + Sync + 'static {}

/// To and from what the system calls take.
pub trait Encode: Sized {
    /// As an argument of a system call.
    ///
    /// # Errors
    /// When no datagram can be sent there, as the address has no name.
    fn encode(&self) -> io::Result<Name>;

    /// From what a system call gave; nothing for a sender without a name.
    ///
    /// # Errors
    /// When it is an address of another family.
    fn decode(name: Option<&Name>) -> io::Result<Self>;
}

/// What a sender of another family than the endpoint's is; the system does not let it happen.
pub(crate) fn other_family() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the system gave an address of another family")
}

impl Address for crate::inet::Addr {}

impl Encode for crate::inet::Addr {
    #[inline]
    fn encode(&self) -> io::Result<Name> {
        Ok(Name::from(std::net::SocketAddr::from(*self)))
    }

    #[inline]
    fn decode(name: Option<&Name>) -> io::Result<Self> {
        let name = name.ok_or_else(other_family)?;
        #[cfg(unix)]
        let addr = std::net::SocketAddr::try_from(name.clone()).ok();
        #[cfg(windows)]
        let addr = name.as_socket();
        addr.map(Self::from).ok_or_else(other_family)
    }
}

#[cfg(unix)]
impl Address for crate::unix::Addr {}

#[cfg(unix)]
impl Encode for crate::unix::Addr {
    fn encode(&self) -> io::Result<Name> {
        use rustix::net::SocketAddrUnix;
        if let Some(path) = self.as_path() {
            return Ok(SocketAddrUnix::new(path)?.into());
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = self.as_abstract_name() {
            return Ok(SocketAddrUnix::new_abstract_name(name)?.into());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "no datagram can be sent to an endpoint without a name"))
    }

    /// Never fails: a sender whose name is of no use, as it is longer than an address may be, has none.
    fn decode(name: Option<&Name>) -> io::Result<Self> {
        use std::os::unix::ffi::OsStrExt;
        // struct sockaddr_un: the family (and on some systems the length), then the path
        let path = name.and_then(|name| crate::sys::dgram::octets(name).get(2..)).unwrap_or_default();
        Ok(match path {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            [0, name @ ..] => Self::abstract_name(name),
            #[cfg(not(any(target_os = "linux", target_os = "android")))]
            [0, ..] => Ok(Self::unnamed()),
            [] => Ok(Self::unnamed()),
            path => {
                let end = path.iter().position(|octet| *octet == 0).unwrap_or(path.len());
                Self::path(std::ffi::OsStr::from_bytes(&path[..end]))
            }
        }
        .unwrap_or_default())
    }
}
