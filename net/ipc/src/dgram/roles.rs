//! The two roles of datagram endpoints, for code that is generic over families.

use std::fmt::Debug;
use std::io;
use std::time::Duration;

use super::{Address, Batch, Received, SendError};
use crate::Pollable;

/// An endpoint that names the receiver of each datagram and learns the sender of each.
///
/// The types have these methods themselves, and the vectored ones besides.
pub trait Unconnected: Pollable + Debug + Send + Sync + 'static {
    /// Where an endpoint of the family is.
    type Addr: Address;

    /// Sends `data` to `to` as one datagram; waits as the endpoint is set up to.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent then.
    fn send_to(&self, data: &[u8], to: &Self::Addr) -> Result<(), SendError>;

    /// Like [`send_to`](Self::send_to), but never waits.
    ///
    /// # Errors
    /// As [`send_to`](Self::send_to), with [`io::ErrorKind::WouldBlock`] when it would have to.
    fn try_send_to(&self, data: &[u8], to: &Self::Addr) -> Result<(), SendError>;

    /// Like [`send_to`](Self::send_to), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`send_to`](Self::send_to), with [`io::ErrorKind::TimedOut`] when the time ran out.
    fn send_to_within(&self, data: &[u8], to: &Self::Addr, timeout: Duration) -> Result<(), SendError>;

    /// Receives one datagram into `buffer` and tells who sent it; waits as the endpoint is set up to.
    ///
    /// # Errors
    /// Those of the operating system; a receive time-out as [`is_timeout`](crate::is_timeout) tells.
    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(Received, Self::Addr)>;

    /// Like [`recv_from`](Self::recv_from), but never waits.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing is there; those of the operating system.
    fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(Received, Self::Addr)>;

    /// Like [`recv_from`](Self::recv_from), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when the time ran out; those of the operating system.
    fn recv_from_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<(Received, Self::Addr)>;

    /// Sends the datagrams of `batch` and says how many went, which leave it.
    ///
    /// # Errors
    /// [`SendError`] of the first, if not even that one went.
    fn send_batch(&self, batch: &mut Batch<Self::Addr>) -> Result<usize, SendError>;

    /// Replaces what is in `batch` by datagrams received, and says how many; waits for the first as the endpoint is set up to.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    fn recv_batch(&self, batch: &mut Batch<Self::Addr>) -> io::Result<usize>;

    /// The address of this endpoint.
    ///
    /// # Errors
    /// Those of the operating system.
    fn local_addr(&self) -> io::Result<Self::Addr>;
}

/// An endpoint with one peer, which hears nobody else.
///
/// The types have these methods themselves, and the vectored ones besides.
pub trait Connected: Pollable + Debug + Send + Sync + 'static {
    /// Where an endpoint of the family is.
    type Addr: Address;

    /// Sends `data` to the peer as one datagram; waits as the endpoint is set up to.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent then.
    fn send(&self, data: &[u8]) -> Result<(), SendError>;

    /// Like [`send`](Self::send), but never waits.
    ///
    /// # Errors
    /// As [`send`](Self::send), with [`io::ErrorKind::WouldBlock`] when it would have to.
    fn try_send(&self, data: &[u8]) -> Result<(), SendError>;

    /// Like [`send`](Self::send), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`send`](Self::send), with [`io::ErrorKind::TimedOut`] when the time ran out.
    fn send_within(&self, data: &[u8], timeout: Duration) -> Result<(), SendError>;

    /// Receives one datagram into `buffer`; waits as the endpoint is set up to.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] when a datagram sent earlier found nobody; a receive time-out as
    /// [`is_timeout`](crate::is_timeout) tells; others of the operating system.
    fn recv(&self, buffer: &mut [u8]) -> io::Result<Received>;

    /// Like [`recv`](Self::recv), but never waits.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), with [`io::ErrorKind::WouldBlock`] when nothing is there.
    fn try_recv(&self, buffer: &mut [u8]) -> io::Result<Received>;

    /// Like [`recv`](Self::recv), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), with [`io::ErrorKind::TimedOut`] when the time ran out.
    fn recv_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<Received>;

    /// Sends the datagrams of `batch` and says how many went, which leave it.
    ///
    /// # Errors
    /// [`SendError`] of the first, if not even that one went.
    fn send_batch(&self, batch: &mut Batch) -> Result<usize, SendError>;

    /// Replaces what is in `batch` by datagrams received, and says how many; waits for the first as the endpoint is set up to.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    fn recv_batch(&self, batch: &mut Batch) -> io::Result<usize>;

    /// The address of this endpoint.
    ///
    /// # Errors
    /// Those of the operating system.
    fn local_addr(&self) -> io::Result<Self::Addr>;

    /// The address of the peer.
    ///
    /// # Errors
    /// Those of the operating system.
    fn remote_addr(&self) -> io::Result<Self::Addr>;
}
