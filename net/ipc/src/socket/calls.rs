//! The system calls of transfers over sockets, on Unix.

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags};
use socket2::Socket;

use crate::Interest;
use crate::interrupted::retry_interrupted;

/// The implementation of a stream: on Unix, a plain socket suffices.
#[derive(Debug)]
pub(crate) struct StreamSocket(Socket);

impl StreamSocket {
    /// Takes over a socket.
    #[inline]
    pub(crate) fn adopt(socket: Socket) -> io::Result<Self> {
        Ok(Self(socket))
    }

    /// Takes over a connection of a listener.
    pub(crate) fn adopt_accepted(socket: Socket, _listener: &super::Listener) -> io::Result<Self> {
        Self::adopt(socket)
    }

    /// The socket, for a call that does not wait because of its flags.
    pub(crate) fn nonblocking(&self) -> io::Result<&Socket> {
        Ok(&self.0)
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

impl Deref for StreamSocket {
    type Target = Socket;

    #[inline]
    fn deref(&self) -> &Socket {
        &self.0
    }
}

impl AsFd for StreamSocket {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<StreamSocket> for OwnedFd {
    fn from(socket: StreamSocket) -> Self {
        socket.0.into()
    }
}

/// Where the flag does not exist, the socket itself is set up not to raise SIGPIPE.
#[cfg(not(target_vendor = "apple"))]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// The maximum of one system call on the known systems (`IOV_MAX`).
const MAX_SLICES: usize = 1024;

#[inline]
pub(crate) fn send(socket: &StreamSocket, data: &[u8]) -> io::Result<usize> {
    send_with(socket, data, NO_SIGNAL)
}

#[inline]
pub(crate) fn try_send(socket: &StreamSocket, data: &[u8]) -> io::Result<usize> {
    send_with(socket, data, NO_SIGNAL.union(SendFlags::DONTWAIT))
}

#[inline]
pub(crate) fn recv(socket: &StreamSocket, buffer: &mut [u8]) -> io::Result<usize> {
    recv_with(socket, buffer, RecvFlags::empty())
}

#[inline]
pub(crate) fn try_recv(socket: &StreamSocket, buffer: &mut [u8]) -> io::Result<usize> {
    recv_with(socket, buffer, RecvFlags::DONTWAIT)
}

#[inline]
pub(crate) fn peek(socket: &StreamSocket, buffer: &mut [u8]) -> io::Result<usize> {
    recv_with(socket, buffer, RecvFlags::PEEK)
}

/// Whether octets wait to be received.
pub(crate) fn has_unread(socket: &StreamSocket) -> bool {
    recv_with(socket, &mut [0], RecvFlags::PEEK.union(RecvFlags::DONTWAIT)).is_ok_and(|count| count > 0)
}

#[inline]
pub(crate) fn send_v(socket: &StreamSocket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    send_v_with(socket, slices, NO_SIGNAL)
}

#[inline]
pub(crate) fn try_send_v(socket: &StreamSocket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    send_v_with(socket, slices, NO_SIGNAL.union(SendFlags::DONTWAIT))
}

#[inline]
pub(crate) fn recv_v(socket: &StreamSocket, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    recv_v_with(socket, slices, RecvFlags::empty())
}

#[inline]
pub(crate) fn try_recv_v(socket: &StreamSocket, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    recv_v_with(socket, slices, RecvFlags::DONTWAIT)
}

#[inline]
pub(crate) fn send_with(socket: &StreamSocket, data: &[u8], flags: SendFlags) -> io::Result<usize> {
    retry_interrupted(socket, Interest::OUTPUT, || rustix::net::send(socket, data, flags))
}

#[inline]
pub(crate) fn recv_with(socket: &StreamSocket, buffer: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    Ok(retry_interrupted(socket, Interest::INPUT, || rustix::net::recv(socket, &mut *buffer, flags))?.1)
}

#[inline]
fn send_v_with(socket: &StreamSocket, slices: &[IoSlice<'_>], flags: SendFlags) -> io::Result<usize> {
    let slices = &slices[..slices.len().min(MAX_SLICES)];
    retry_interrupted(socket, Interest::OUTPUT, || {
        rustix::net::sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags)
    })
}

#[inline]
fn recv_v_with(socket: &StreamSocket, slices: &mut [IoSliceMut<'_>], flags: RecvFlags) -> io::Result<usize> {
    let count = slices.len().min(MAX_SLICES);
    let slices = &mut slices[..count];
    let message = retry_interrupted(socket, Interest::INPUT, || {
        rustix::net::recvmsg(socket, slices, &mut RecvAncillaryBuffer::default(), flags)
    })?;
    Ok(message.bytes)
}
