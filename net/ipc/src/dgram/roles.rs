//! The two roles of datagram endpoints, for code that is generic over families.

use std::fmt::Debug;
use std::io;
use std::time::Duration;

use super::{Address, Batch, Received, SendError};
use crate::Pollable;

/// An endpoint that names the receiver of each datagram and gets the sender of each.
///
/// The types have these methods as inherent ones, and also vectored forms.
pub trait Unconnected: Pollable + Debug + Send + Sync + 'static {
    /// The address type of the family.
    type Addr: Address;

    /// Sends `data` to `to` as one datagram; waits as the endpoint is configured.
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
    /// As [`send_to`](Self::send_to), with [`io::ErrorKind::TimedOut`] on a timeout.
    fn send_to_within(&self, data: &[u8], to: &Self::Addr, timeout: Duration) -> Result<(), SendError>;

    /// Receives one datagram into `buffer` and returns it with its sender; waits as the endpoint is
    /// configured.
    ///
    /// # Errors
    /// Any error of the operating system; a receive timeout satisfies [`is_timeout`](crate::is_timeout).
    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(Received, Self::Addr)>;

    /// Like [`recv_from`](Self::recv_from), but never waits.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing is queued; those of the operating system.
    fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(Received, Self::Addr)>;

    /// Like [`recv_from`](Self::recv_from), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] on a timeout; those of the operating system.
    fn recv_from_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<(Received, Self::Addr)>;

    /// Sends the datagrams of `batch`, removes those sent and returns their number.
    ///
    /// # Errors
    /// [`SendError`] of the first, if none was sent.
    fn send_batch(&self, batch: &mut Batch<Self::Addr>) -> Result<usize, SendError>;

    /// Replaces the contents of `batch` by received datagrams, and returns their number; waits for the first
    /// as the endpoint is configured.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    fn recv_batch(&self, batch: &mut Batch<Self::Addr>) -> io::Result<usize>;

    /// The address that the endpoint is bound to.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn local_addr(&self) -> io::Result<Self::Addr>;
}

/// An endpoint with one peer, which receives from no other.
///
/// The types have these methods as inherent ones, and also vectored forms.
pub trait Connected: Pollable + Debug + Send + Sync + 'static {
    /// The address type of the family.
    type Addr: Address;

    /// Sends `data` to the peer as one datagram; waits as the endpoint is configured.
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
    /// As [`send`](Self::send), with [`io::ErrorKind::TimedOut`] on a timeout.
    fn send_within(&self, data: &[u8], timeout: Duration) -> Result<(), SendError>;

    /// Receives one datagram into `buffer`; waits as the endpoint is configured.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] when no endpoint received an earlier datagram; a receive timeout
    /// satisfies [`is_timeout`](crate::is_timeout); others of the operating system.
    fn recv(&self, buffer: &mut [u8]) -> io::Result<Received>;

    /// Like [`recv`](Self::recv), but never waits.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), with [`io::ErrorKind::WouldBlock`] when nothing is queued.
    fn try_recv(&self, buffer: &mut [u8]) -> io::Result<Received>;

    /// Like [`recv`](Self::recv), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), with [`io::ErrorKind::TimedOut`] on a timeout.
    fn recv_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<Received>;

    /// Sends the datagrams of `batch`, removes those sent and returns their number.
    ///
    /// # Errors
    /// [`SendError`] of the first, if none was sent.
    fn send_batch(&self, batch: &mut Batch) -> Result<usize, SendError>;

    /// Replaces the contents of `batch` by received datagrams, and returns their number; waits for the first
    /// as the endpoint is configured.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    fn recv_batch(&self, batch: &mut Batch) -> io::Result<usize>;

    /// The address that the endpoint is bound to.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn local_addr(&self) -> io::Result<Self::Addr>;

    /// The address of the peer.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn remote_addr(&self) -> io::Result<Self::Addr>;
}
