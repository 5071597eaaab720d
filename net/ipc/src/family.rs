//! What all families of endpoints have in common, for code that is generic over them.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::io;
use std::time::Duration;

use crate::{Pollable, Transfer};

/// A family of connection-oriented endpoints, such as [`inet::Inet`](crate::inet::Inet).
///
/// Its types belong together: an address of one family does not fit the connector of another. Its value holds the settings with
/// which endpoints are made; the default is right for most. A program that takes `F: Family` runs over any of them:
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
    /// Where an endpoint is.
    type Addr: Clone + Eq + Hash + Debug + Display + Send + Sync + 'static;
    /// Waits for connections.
    type Acceptor: Accept<Addr = Self::Addr, Stream = Self::Stream>;
    /// A connection that is being made.
    type Connecting: Connecting<Stream = Self::Stream>;
    /// Carries octets both ways.
    type Stream: Transfer;

    /// Starts to listen at `addr`.
    ///
    /// # Errors
    /// Those of the operating system, such as [`io::ErrorKind::AddrInUse`].
    fn open(&self, addr: &Self::Addr) -> io::Result<Self::Acceptor>;

    /// Connects to `addr`, within `timeout` if there is one.
    ///
    /// # Errors
    /// Those of the operating system; [`io::ErrorKind::TimedOut`] when the time ran out.
    fn connect(&self, addr: &Self::Addr, timeout: Option<Duration>) -> io::Result<Self::Stream> {
        self.start(addr)?.complete(timeout)
    }

    /// Starts to connect to `addr` without waiting.
    ///
    /// # Errors
    /// Those of the operating system that are known at once; the others come when it is completed.
    fn start(&self, addr: &Self::Addr) -> io::Result<Self::Connecting>;
}

/// Waits for connections at an address; carries no octets itself.
pub trait Accept: Pollable + Debug + Send + Sync + 'static {
    /// Where an endpoint of the family is.
    type Addr: Clone + Debug + Display + Send + Sync + 'static;
    /// What comes of a connection.
    type Stream: Transfer;

    /// Waits for one connection and tells where it came from.
    ///
    /// # Errors
    /// Those of the operating system; [`io::ErrorKind::NotConnected`] after [`shutdown`](Self::shutdown); when it must not block
    /// ([`set_nonblocking`](Self::set_nonblocking)) and nobody is there, [`io::ErrorKind::WouldBlock`].
    fn accept(&self) -> io::Result<(Self::Stream, Self::Addr)>;

    /// Whether `accept` waits for a connection or fails at once with [`io::ErrorKind::WouldBlock`]. Accepted streams wait in any case.
    ///
    /// # Errors
    /// Those of the operating system.
    fn set_nonblocking(&self, on: bool) -> io::Result<()>;

    /// Makes `accept` fail from now on, also where it is already waiting.
    ///
    /// # Errors
    /// Those of the operating system.
    fn shutdown(&self) -> io::Result<()>;

    /// Where it listens.
    ///
    /// # Errors
    /// Those of the operating system.
    fn local_addr(&self) -> io::Result<Self::Addr>;
}

/// A connection that is being made.
///
/// A reactor registers it for [`OUTPUT`](crate::Interest::OUTPUT) and then calls [`try_complete`](Self::try_complete); others call
/// [`complete`](Self::complete). Dropping it gives the attempt up.
pub trait Connecting: Pollable + Debug + Send + Sync + Sized + 'static {
    /// What comes of it.
    type Stream: Transfer;

    /// The connection, if it is made; `None` if that is not decided yet.
    ///
    /// # Errors
    /// Why it could not be made, such as [`io::ErrorKind::ConnectionRefused`]. The attempt is over then.
    fn try_complete(&mut self) -> io::Result<Option<Self::Stream>>;

    /// Waits until the connection is made.
    ///
    /// # Errors
    /// As [`try_complete`](Self::try_complete); [`io::ErrorKind::TimedOut`] when the time ran out.
    fn complete(mut self, timeout: Option<Duration>) -> io::Result<Self::Stream> {
        let deadline = crate::deadline::Deadline::after(timeout);
        loop {
            if let Some(stream) = self.try_complete()? {
                return Ok(stream);
            }
            let left = deadline.left();
            if left.is_some_and(|left| left.is_zero()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            crate::wait_ready(&self, crate::Interest::OUTPUT, left)?;
        }
    }
}
