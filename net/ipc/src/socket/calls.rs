//! The system calls of transfers over sockets, on Unix.

use std::io::{self, IoSlice, IoSliceMut};

use rustix::io::retry_on_intr;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags};
use socket2::Socket;

/// Where the flag does not exist, the socket itself is set up not to raise SIGPIPE.
#[cfg(not(target_vendor = "apple"))]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// What the systems that we know take in one call (`IOV_MAX`).
const MAX_SLICES: usize = 1024;

#[inline]
pub(crate) fn send(socket: &Socket, data: &[u8]) -> io::Result<usize> {
    send_with(socket, data, NO_SIGNAL)
}

#[inline]
pub(crate) fn try_send(socket: &Socket, data: &[u8]) -> io::Result<usize> {
    send_with(socket, data, NO_SIGNAL.union(SendFlags::DONTWAIT))
}

#[inline]
pub(crate) fn recv(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    recv_with(socket, buffer, RecvFlags::empty())
}

#[inline]
pub(crate) fn try_recv(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    recv_with(socket, buffer, RecvFlags::DONTWAIT)
}

#[inline]
pub(crate) fn peek(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    recv_with(socket, buffer, RecvFlags::PEEK)
}

#[inline]
pub(crate) fn send_v(socket: &Socket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    send_v_with(socket, slices, NO_SIGNAL)
}

#[inline]
pub(crate) fn try_send_v(socket: &Socket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    send_v_with(socket, slices, NO_SIGNAL.union(SendFlags::DONTWAIT))
}

#[inline]
pub(crate) fn recv_v(socket: &Socket, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    recv_v_with(socket, slices, RecvFlags::empty())
}

#[inline]
pub(crate) fn try_recv_v(socket: &Socket, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    recv_v_with(socket, slices, RecvFlags::DONTWAIT)
}

#[inline]
pub(crate) fn send_with(socket: &Socket, data: &[u8], flags: SendFlags) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::net::send(socket, data, flags))?)
}

#[inline]
pub(crate) fn recv_with(socket: &Socket, buffer: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::net::recv(socket, &mut *buffer, flags))?.1)
}

#[inline]
fn send_v_with(socket: &Socket, slices: &[IoSlice<'_>], flags: SendFlags) -> io::Result<usize> {
    let slices = &slices[..slices.len().min(MAX_SLICES)];
    Ok(retry_on_intr(|| rustix::net::sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags))?)
}

#[inline]
fn recv_v_with(socket: &Socket, slices: &mut [IoSliceMut<'_>], flags: RecvFlags) -> io::Result<usize> {
    let count = slices.len().min(MAX_SLICES);
    let slices = &mut slices[..count];
    let message = retry_on_intr(|| rustix::net::recvmsg(socket, slices, &mut RecvAncillaryBuffer::default(), flags))?;
    Ok(message.bytes)
}
