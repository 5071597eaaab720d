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
