//! Socket addresses of datagram endpoints in their encoded form.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::io;

#[cfg(unix)]
pub(crate) use rustix::net::SocketAddrAny as Name;
#[cfg(windows)]
pub(crate) use socket2::SockAddr as Name;

/// The address of a datagram endpoint: the address type of one family, such as
/// [`inet::Addr`](crate::inet::Addr).
///
/// Families of this crate implement it; others cannot.
pub trait Address: Encode + Clone + Eq + Hash + Debug + Display + Send + Sync + 'static {}

/// Conversion to and from the socket addresses of the system calls.
pub trait Encode: Sized {
    /// The argument of a system call.
    ///
    /// # Errors
    /// When the address has no name, so that no datagram can be sent to it.
    fn encode(&self) -> io::Result<Name>;

    /// The address from the result of a system call; none for a sender without a name.
    ///
    /// # Errors
    /// When it is an address of another family.
    fn decode(name: Option<&Name>) -> io::Result<Self>;
}
