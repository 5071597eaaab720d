//! The system calls of transfers over sockets, on Windows.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::windows::io::AsSocket;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;
use socket2::Socket;

#[inline]
pub(crate) fn send(mut socket: &Socket, data: &[u8]) -> io::Result<usize> {
    socket.write(data)
}

#[inline]
pub(crate) fn recv(mut socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    socket.read(buffer)
}

pub(crate) fn peek(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(socket, buffer, RecvFlags::PEEK)?.1)
}

#[inline]
pub(crate) fn send_v(mut socket: &Socket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    socket.write_vectored(slices)
}

#[inline]
pub(crate) fn recv_v(mut socket: &Socket, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    socket.read_vectored(slices)
}

pub(crate) fn try_send(socket: &Socket, data: &[u8]) -> io::Result<usize> {
    only_if_ready(socket, PollFlags::OUT)?;
    send(socket, data)
}

pub(crate) fn try_recv(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    only_if_ready(socket, PollFlags::IN)?;
    recv(socket, buffer)
}

pub(crate) fn try_send_v(socket: &Socket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    only_if_ready(socket, PollFlags::OUT)?;
    send_v(socket, slices)
}

pub(crate) fn try_recv_v(socket: &Socket, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    only_if_ready(socket, PollFlags::IN)?;
    recv_v(socket, slices)
}

/// Winsock has no flag for one transfer that must not wait.
fn only_if_ready(socket: &Socket, flags: PollFlags) -> io::Result<()> {
    let mut handles = [PollFd::from_borrowed_fd(socket.as_socket(), flags)];
    match poll(&mut handles, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}
