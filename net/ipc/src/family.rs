//! What all families of endpoints have in common, for code that is generic over them.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::time::Duration;

use crate::{TransferError, transfer};

/// An operating system handle, lent for waiting.
#[cfg(unix)]
pub type Handle<'a> = std::os::fd::BorrowedFd<'a>;
/// An operating system handle, lent for waiting.
#[cfg(windows)]
pub type Handle<'a> = std::os::windows::io::BorrowedSocket<'a>;

/// A family of connection-oriented endpoints with blocking transfers, such as [`inet::Inet`](crate::inet::Inet).
///
/// Its types belong together: an address of one family does not fit the connector of another.
pub trait Family: Sized + 'static {
    /// Where an endpoint is.
    type Addr: Clone + Eq + Hash + Debug + Display + Send + Sync;
    /// Waits for connections.
    type Acceptor: Pollable + Debug + Send + Sync;
    /// Carries octets both ways.
    type Stream: Transfer + Pollable + Debug + Send + Sync;

    /// Starts to listen at `addr`, with the family's defaults.
    ///
    /// # Errors
    /// Those of the operating system, such as [`io::ErrorKind::AddrInUse`].
    fn open(addr: &Self::Addr) -> io::Result<Self::Acceptor>;

    /// Waits for one connection and tells where it came from.
    ///
    /// # Errors
    /// Those of the operating system, and [`io::ErrorKind::NotConnected`] after the acceptor was shut down.
    fn accept(acceptor: &Self::Acceptor) -> io::Result<(Self::Stream, Self::Addr)>;

    /// Makes `accept` fail from now on, also where it is already waiting.
    ///
    /// # Errors
    /// Those of the operating system.
    fn shut_down(acceptor: &Self::Acceptor) -> io::Result<()>;

    /// Where an acceptor listens.
    ///
    /// # Errors
    /// Those of the operating system.
    fn local_addr(acceptor: &Self::Acceptor) -> io::Result<Self::Addr>;

    /// Connects to `addr`, within `timeout` if there is one.
    ///
    /// # Errors
    /// Those of the operating system; [`io::ErrorKind::TimedOut`] when the time ran out.
    fn connect(addr: &Self::Addr, timeout: Option<Duration>) -> io::Result<Self::Stream>;
}

/// Blocking transfers of octets, as every family's stream has them.
pub trait Transfer {
    /// Sends some of `data` and says how many octets; waits while none can be sent.
    ///
    /// # Errors
    /// Those of the operating system.
    fn send(&self, data: &[u8]) -> io::Result<usize>;

    /// Receives into `buffer` what is there and says how many octets; waits while nothing is there. Zero is the end.
    ///
    /// # Errors
    /// Those of the operating system.
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Sends some of the octets of `slices`, in order, and says how many.
    ///
    /// # Errors
    /// Those of the operating system.
    fn send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Receives into `slices`, in order, what is there and says how many octets. Zero is the end.
    ///
    /// # Errors
    /// Those of the operating system.
    fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize>;

    /// Ends sending, receiving or both.
    ///
    /// # Errors
    /// Those of the operating system.
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;

    /// Sends all of `data`.
    ///
    /// # Errors
    /// [`TransferError`] with the number of octets sent before it stopped.
    fn send_n(&self, data: &[u8]) -> Result<(), TransferError> {
        transfer::send_n(data, |data| self.send(data))
    }

    /// Fills `buffer`.
    ///
    /// # Errors
    /// [`TransferError`] with the number of octets received before it stopped.
    fn recv_n(&self, buffer: &mut [u8]) -> Result<(), TransferError> {
        transfer::recv_n(buffer, |buffer| self.recv(buffer))
    }

    /// Sends all octets of `slices`, which are advanced past what was sent.
    ///
    /// # Errors
    /// [`TransferError`] with the number of octets sent before it stopped.
    fn send_n_v(&self, slices: &mut [IoSlice<'_>]) -> Result<(), TransferError> {
        transfer::send_n_v(slices, |slices| self.send_v(slices))
    }

    /// Fills all of `slices`, which are advanced past what was received.
    ///
    /// # Errors
    /// [`TransferError`] with the number of octets received before it stopped.
    fn recv_n_v(&self, slices: &mut [IoSliceMut<'_>]) -> Result<(), TransferError> {
        transfer::recv_n_v(slices, |slices| self.recv_v(slices))
    }
}

/// An endpoint on which a reactor can wait.
pub trait Pollable {
    /// The handle to wait on.
    fn handle(&self) -> Handle<'_>;

    /// Whether input is at hand that the handle no longer shows, so that it must be drained before waiting.
    ///
    /// Never so for plain sockets; a family that decodes, such as TLS, holds octets of its own.
    fn pending(&self) -> bool {
        false
    }
}
