//! The traits common to all families of endpoints, for code that is generic over them.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::io;
use std::time::Duration;

use crate::{Pollable, Transfer};

/// A family of connection-oriented endpoints, such as [`inet::Inet`](crate::inet::Inet).
///
/// The types of a family belong together: an address of one family does not fit the connector of another. A
/// value of the family type holds the options of its endpoints; the default suits most. A program that takes
/// `F: Family` runs over any of them:
///
/// ```
/// use spandrel_ipc::{Accept, Family, Transmit, inet};
///
/// fn greet_once<F: Family>(family: &F, acceptor: &F::Acceptor) -> std::io::Result<()> {
///     let (stream, _from) = acceptor.accept()?;
///     Ok(stream.send_n(b"hello")?)
/// }
/// # let family = inet::Inet::default();
/// # let acceptor = family.open(&inet::Addr::loopback(0))?;
/// # let client = family.connect(&acceptor.local_addr()?, None)?;
/// # greet_once(&family, &acceptor)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Family: Clone + Debug + Send + Sync + 'static {
    /// The address of an endpoint of this family.
    type Addr: Clone + Eq + Hash + Debug + Display + Send + Sync + 'static;
    /// The type that waits for connections.
    type Acceptor: Accept<Addr = Self::Addr, Stream = Self::Stream>;
    /// The type of a pending connection.
    type Connecting: Connecting<Stream = Self::Stream>;
    /// The type of a connection.
    type Stream: Transfer;

    /// Starts to listen at `addr`.
    ///
    /// # Errors
    /// Any error of the operating system, such as [`io::ErrorKind::AddrInUse`].
    fn open(&self, addr: &Self::Addr) -> io::Result<Self::Acceptor>;

    /// Connects to `addr`, within `timeout` if there is one.
    ///
    /// # Errors
    /// Any error of the operating system; [`io::ErrorKind::TimedOut`] on a timeout.
    fn connect(&self, addr: &Self::Addr, timeout: Option<Duration>) -> io::Result<Self::Stream> {
        self.start(addr)?.complete(timeout)
    }

    /// Starts to connect to `addr` without waiting.
    ///
    /// # Errors
    /// Errors of the operating system that are known at once; the others are returned on completion.
    fn start(&self, addr: &Self::Addr) -> io::Result<Self::Connecting>;
}

/// Waits for connections at an address; carries no octets itself.
pub trait Accept: Pollable + Debug + Send + Sync + 'static {
    /// The address type of the family.
    type Addr: Clone + Debug + Display + Send + Sync + 'static;
    /// The type of an accepted connection.
    type Stream: Transfer;

    /// Waits for one connection and returns it with the peer's address.
    ///
    /// # Errors
    /// Any error of the operating system; [`io::ErrorKind::NotConnected`] after [`shutdown`](Self::shutdown);
    /// [`io::ErrorKind::WouldBlock`] when it is nonblocking ([`set_nonblocking`](Self::set_nonblocking)) and
    /// no connection is queued.
    fn accept(&self) -> io::Result<(Self::Stream, Self::Addr)>;

    /// Whether `accept` waits for a connection or fails at once with [`io::ErrorKind::WouldBlock`]. Accepted
    /// streams wait in any case.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn set_nonblocking(&self, on: bool) -> io::Result<()>;

    /// Makes `accept` fail from now on, also in threads that already wait in it.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn shutdown(&self) -> io::Result<()>;

    /// The address at which it listens.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn local_addr(&self) -> io::Result<Self::Addr>;
}

/// A pending connection.
///
/// A reactor registers it for [`OUTPUT`](crate::Interest::OUTPUT) and then calls
/// [`try_complete`](Self::try_complete); others call [`complete`](Self::complete). Dropping it gives the
/// attempt up.
pub trait Connecting: Pollable + Debug + Send + Sync + Sized + 'static {
    /// The type of the completed connection.
    type Stream: Transfer;

    /// The connection, once it is established; `None` while it is pending.
    ///
    /// # Errors
    /// The reason of the failure, such as [`io::ErrorKind::ConnectionRefused`]. The attempt has ended then.
    fn try_complete(&mut self) -> io::Result<Option<Self::Stream>>;

    /// Waits until the connection is established.
    ///
    /// # Errors
    /// As [`try_complete`](Self::try_complete); [`io::ErrorKind::TimedOut`] on a timeout.
    fn complete(mut self, timeout: Option<Duration>) -> io::Result<Self::Stream> {
        let deadline = spandrel_sync::time::Deadline::after(timeout);
        loop {
            if let Some(stream) = self.try_complete()? {
                return Ok(stream);
            }
            let left = deadline.remaining();
            if left.is_some_and(|left| left.is_zero()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            crate::wait_ready(&self, crate::Interest::OUTPUT, left)?;
        }
    }
}
