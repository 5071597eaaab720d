//! Carrying octets both ways.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use socket2::SockRef;

use super::Addr;
use crate::{Handle, Pollable, Receive, Transfer, TransferError, Transmit, exact};

/// A TCP connection.
///
/// All methods take `&self`: one thread may send while another receives. Every wait goes on after a signal; a time-out
/// then begins anew. Sending to a peer that is gone is an error ([`io::ErrorKind::BrokenPipe`]), never a signal.
/// Dropping it closes it.
#[derive(Debug)]
pub struct Stream(TcpStream);

/// Transfers.
impl Stream {
    /// Sends some of `data` and says how many octets; waits while none can be sent. One system call.
    ///
    /// # Errors
    /// Those of the operating system; a send time-out as [`is_timeout`](crate::is_timeout) tells.
    #[inline]
    pub fn send(&self, data: &[u8]) -> io::Result<usize> {
        sys::send(&self.0, data)
    }

    /// Receives into `buffer` what is there and says how many octets; waits while nothing is there. Zero is the end
    /// of the stream (unless `buffer` is empty). One system call.
    ///
    /// # Errors
    /// Those of the operating system; a receive time-out as [`is_timeout`](crate::is_timeout) tells.
    #[inline]
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        sys::recv(&self.0, buffer)
    }

    /// Sends some of the octets of `slices`, in order, and says how many. One system call.
    ///
    /// A call takes at most 1,024 slices; what the rest hold is for the next one.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[inline]
    pub fn send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        sys::send_v(&self.0, slices)
    }

    /// Receives into `slices`, in order, what is there and says how many octets. One system call.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    #[inline]
    pub fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        sys::recv_v(&self.0, slices)
    }

    /// Sends all of `data`.
    ///
    /// # Errors
    /// [`TransferError`] with the number of octets sent before a time-out or another error.
    #[inline]
    pub fn send_n(&self, data: &[u8]) -> Result<(), TransferError> {
        exact::send_n(data, |data| self.send(data))
    }

    /// Fills `buffer`.
    ///
    /// # Errors
    /// [`TransferError`] with the number of octets received before the end of the stream
    /// ([`io::ErrorKind::UnexpectedEof`]), a time-out or another error.
    #[inline]
    pub fn recv_n(&self, buffer: &mut [u8]) -> Result<(), TransferError> {
        exact::recv_n(buffer, |buffer| self.recv(buffer))
    }

    /// Sends all octets of `slices`, which are advanced past what was sent.
    ///
    /// # Errors
    /// As [`send_n`](Self::send_n).
    #[inline]
    pub fn send_n_v(&self, slices: &mut [IoSlice<'_>]) -> Result<(), TransferError> {
        exact::send_n_v(slices, |slices| self.send_v(slices))
    }

    /// Fills all of `slices`, which are advanced past what was received.
    ///
    /// # Errors
    /// As [`recv_n`](Self::recv_n).
    #[inline]
    pub fn recv_n_v(&self, slices: &mut [IoSliceMut<'_>]) -> Result<(), TransferError> {
        exact::recv_n_v(slices, |slices| self.recv_v(slices))
    }

    /// Like [`recv`](Self::recv), but leaves the octets to be received again.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.peek(buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Ends sending, receiving or both, for all clones of this stream; also ends waits in other threads.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] when the peer has reset the connection; others of the operating system.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }

    /// Half-close: the peer receives what was sent, then the end; this side may go on receiving.
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown).
    pub fn close_writer(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }

    /// Ends receiving: every `recv` on this side returns what is queued, then the end.
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown).
    pub fn close_reader(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Read)
    }

    /// The same connection under another handle.
    ///
    /// # Errors
    /// Those of the operating system, such as too many open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

/// Addresses and options. Errors are those of the operating system.
impl Stream {
    /// The address of this side.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        self.0.local_addr().map(Addr::from)
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] when the peer has reset the connection.
    pub fn remote_addr(&self) -> io::Result<Addr> {
        self.0.peer_addr().map(Addr::from)
    }

    /// Whether small messages are sent at once instead of being gathered (`TCP_NODELAY`).
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn set_no_delay(&self, on: bool) -> io::Result<()> {
        self.0.set_nodelay(on)
    }

    /// See [`set_no_delay`](Self::set_no_delay).
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn no_delay(&self) -> io::Result<bool> {
        self.0.nodelay()
    }

    /// Asks for a send queue of this many octets (`SO_SNDBUF`).
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn set_send_queue(&self, octets: usize) -> io::Result<()> {
        SockRef::from(&self.0).set_send_buffer_size(octets)
    }

    /// The size of the send queue as the system counts it: Linux tells twice what was asked for.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn send_queue(&self) -> io::Result<usize> {
        SockRef::from(&self.0).send_buffer_size()
    }

    /// Asks for a receive queue of this many octets (`SO_RCVBUF`). To govern the TCP window scale, set it on the
    /// [`Connector`](super::Connector) or [`Acceptor`](super::Acceptor) instead.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn set_recv_queue(&self, octets: usize) -> io::Result<()> {
        SockRef::from(&self.0).set_recv_buffer_size(octets)
    }

    /// The size of the receive queue as the system counts it: Linux tells twice what was asked for.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn recv_queue(&self) -> io::Result<usize> {
        SockRef::from(&self.0).recv_buffer_size()
    }

    /// Whether the system probes a quiet peer (`SO_KEEPALIVE`).
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn set_keep_alive(&self, on: bool) -> io::Result<()> {
        SockRef::from(&self.0).set_keepalive(on)
    }

    /// See [`set_keep_alive`](Self::set_keep_alive).
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn keep_alive(&self) -> io::Result<bool> {
        SockRef::from(&self.0).keepalive()
    }

    /// How long one receive call may wait (`SO_RCVTIMEO`); `None` is for ever.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a time of zero; others of the operating system.
    pub fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.set_read_timeout(timeout)
    }

    /// See [`set_recv_timeout`](Self::set_recv_timeout).
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn recv_timeout(&self) -> io::Result<Option<Duration>> {
        self.0.read_timeout()
    }

    /// How long one send call may wait (`SO_SNDTIMEO`); `None` is for ever.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a time of zero; others of the operating system.
    pub fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.set_write_timeout(timeout)
    }

    /// See [`set_send_timeout`](Self::set_send_timeout).
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn send_timeout(&self) -> io::Result<Option<Duration>> {
        self.0.write_timeout()
    }

    /// How long closing waits for queued octets to be sent (`SO_LINGER`). `None`, the default, does not wait and sends
    /// them in the background; zero throws them away and resets the connection.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn set_linger(&self, time: Option<Duration>) -> io::Result<()> {
        SockRef::from(&self.0).set_linger(time)
    }

    /// See [`set_linger`](Self::set_linger).
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        SockRef::from(&self.0).linger()
    }

    /// Whether transfers fail at once with [`io::ErrorKind::WouldBlock`] instead of waiting.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.0.set_nonblocking(on)
    }

    /// Takes the error that the system keeps for this connection (`SO_ERROR`), if there is one.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.0.take_error()
    }

    pub(super) fn from_std(stream: TcpStream) -> Self {
        Self(stream)
    }
}

impl Receive for Stream {
    #[inline]
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Stream::recv(self, buffer)
    }
    #[inline]
    fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        Stream::recv_v(self, slices)
    }
    #[inline]
    fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        sys::try_recv(&self.0, buffer)
    }
    #[inline]
    fn try_recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        sys::try_recv_v(&self.0, slices)
    }
    fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Stream::set_recv_timeout(self, timeout)
    }
}

impl Transmit for Stream {
    #[inline]
    fn send(&self, data: &[u8]) -> io::Result<usize> {
        Stream::send(self, data)
    }
    #[inline]
    fn send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Stream::send_v(self, slices)
    }
    #[inline]
    fn try_send(&self, data: &[u8]) -> io::Result<usize> {
        sys::try_send(&self.0, data)
    }
    #[inline]
    fn try_send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        sys::try_send_v(&self.0, slices)
    }
    fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Stream::set_send_timeout(self, timeout)
    }
}

impl Transfer for Stream {
    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        Stream::set_nonblocking(self, on)
    }
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        Stream::shutdown(self, how)
    }
}

impl Pollable for Stream {
    fn handle(&self) -> Handle<'_> {
        #[cfg(unix)]
        return std::os::fd::AsFd::as_fd(&self.0);
        #[cfg(windows)]
        return std::os::windows::io::AsSocket::as_socket(&self.0);
    }
}

/// The system calls of the hot path, on Unix.
#[cfg(unix)]
mod sys {
    use std::io::{self, IoSlice, IoSliceMut};
    use std::net::TcpStream;

    use rustix::io::retry_on_intr;
    use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags};

    /// Where the flag does not exist, the socket itself is set up not to raise SIGPIPE.
    #[cfg(not(target_vendor = "apple"))]
    const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
    #[cfg(target_vendor = "apple")]
    const NO_SIGNAL: SendFlags = SendFlags::empty();

    /// What the systems that we know take in one call (`IOV_MAX`).
    const MAX_SLICES: usize = 1024;

    #[inline]
    pub(super) fn send(stream: &TcpStream, data: &[u8]) -> io::Result<usize> {
        send_with(stream, data, NO_SIGNAL)
    }

    #[inline]
    pub(super) fn try_send(stream: &TcpStream, data: &[u8]) -> io::Result<usize> {
        send_with(stream, data, NO_SIGNAL.union(SendFlags::DONTWAIT))
    }

    #[inline]
    pub(super) fn recv(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        recv_with(stream, buffer, RecvFlags::empty())
    }

    #[inline]
    pub(super) fn try_recv(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        recv_with(stream, buffer, RecvFlags::DONTWAIT)
    }

    #[inline]
    pub(super) fn send_v(stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        send_v_with(stream, slices, NO_SIGNAL)
    }

    #[inline]
    pub(super) fn try_send_v(stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        send_v_with(stream, slices, NO_SIGNAL.union(SendFlags::DONTWAIT))
    }

    #[inline]
    pub(super) fn recv_v(stream: &TcpStream, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        recv_v_with(stream, slices, RecvFlags::empty())
    }

    #[inline]
    pub(super) fn try_recv_v(stream: &TcpStream, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        recv_v_with(stream, slices, RecvFlags::DONTWAIT)
    }

    #[inline]
    fn send_with(stream: &TcpStream, data: &[u8], flags: SendFlags) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::net::send(stream, data, flags))?)
    }

    #[inline]
    fn recv_with(stream: &TcpStream, buffer: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::net::recv(stream, &mut *buffer, flags))?.1)
    }

    #[inline]
    fn send_v_with(stream: &TcpStream, slices: &[IoSlice<'_>], flags: SendFlags) -> io::Result<usize> {
        let slices = &slices[..slices.len().min(MAX_SLICES)];
        Ok(retry_on_intr(|| rustix::net::sendmsg(stream, slices, &mut SendAncillaryBuffer::default(), flags))?)
    }

    #[inline]
    fn recv_v_with(stream: &TcpStream, slices: &mut [IoSliceMut<'_>], flags: RecvFlags) -> io::Result<usize> {
        let count = slices.len().min(MAX_SLICES);
        let slices = &mut slices[..count];
        let message =
            retry_on_intr(|| rustix::net::recvmsg(stream, slices, &mut RecvAncillaryBuffer::default(), flags))?;
        Ok(message.bytes)
    }
}

/// The system calls of the hot path, on Windows.
#[cfg(windows)]
mod sys {
    use std::io::{self, IoSlice, IoSliceMut, Read, Write};
    use std::net::TcpStream;
    use std::os::windows::io::AsSocket;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    pub(super) fn send(mut stream: &TcpStream, data: &[u8]) -> io::Result<usize> {
        stream.write(data)
    }

    pub(super) fn recv(mut stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        stream.read(buffer)
    }

    pub(super) fn send_v(mut stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        stream.write_vectored(slices)
    }

    pub(super) fn recv_v(mut stream: &TcpStream, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        stream.read_vectored(slices)
    }

    pub(super) fn try_send(stream: &TcpStream, data: &[u8]) -> io::Result<usize> {
        only_if_ready(stream, PollFlags::OUT)?;
        send(stream, data)
    }

    pub(super) fn try_recv(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        only_if_ready(stream, PollFlags::IN)?;
        recv(stream, buffer)
    }

    pub(super) fn try_send_v(stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        only_if_ready(stream, PollFlags::OUT)?;
        send_v(stream, slices)
    }

    pub(super) fn try_recv_v(stream: &TcpStream, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        only_if_ready(stream, PollFlags::IN)?;
        recv_v(stream, slices)
    }

    /// Winsock has no flag for one transfer that must not wait.
    fn only_if_ready(stream: &TcpStream, flags: PollFlags) -> io::Result<()> {
        let mut handles = [PollFd::from_borrowed_fd(stream.as_socket(), flags)];
        match poll(&mut handles, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    }
}

#[cfg(unix)]
mod handles {
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    use super::Stream;

    impl AsFd for Stream {
        #[inline]
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    /// Takes over a connected TCP socket made elsewhere, such as one inherited from another process.
    impl From<OwnedFd> for Stream {
        fn from(handle: OwnedFd) -> Self {
            Self(handle.into())
        }
    }

    impl From<Stream> for OwnedFd {
        fn from(stream: Stream) -> Self {
            stream.0.into()
        }
    }
}

#[cfg(windows)]
mod handles {
    use std::os::windows::io::{AsSocket, BorrowedSocket, OwnedSocket};

    use super::Stream;

    impl AsSocket for Stream {
        fn as_socket(&self) -> BorrowedSocket<'_> {
            self.0.as_socket()
        }
    }

    /// Takes over a connected TCP socket made elsewhere, such as one inherited from another process.
    impl From<OwnedSocket> for Stream {
        fn from(handle: OwnedSocket) -> Self {
            Self(handle.into())
        }
    }

    impl From<Stream> for OwnedSocket {
        fn from(stream: Stream) -> Self {
            stream.0.into()
        }
    }
}
