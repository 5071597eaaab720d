//! The system calls, on Unix.

use std::io::{self, IoSliceMut};
use std::os::fd::AsFd;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, RecvMsg, ReturnFlags, SendAncillaryBuffer, SendFlags, SocketFlags,
    SocketType,
};
use socket2::Socket;

use super::buffers::{Data, MAX_SLICES, Room};
use super::{Name, Received};
use crate::Interest;
use crate::interrupted::retry_interrupted;

/// Where the flag does not exist, the socket itself is set up not to raise SIGPIPE.
#[cfg(not(target_vendor = "apple"))]
const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const NO_SIGNAL: SendFlags = SendFlags::empty();

/// With this flag, Linux reports the length of a datagram before truncation.
#[cfg(any(target_os = "linux", target_os = "android"))]
const REPORT_LENGTH: RecvFlags = RecvFlags::TRUNC;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const REPORT_LENGTH: RecvFlags = RecvFlags::empty();

pub(super) fn send_flags(at_once: bool) -> SendFlags {
    if at_once { NO_SIGNAL.union(SendFlags::DONTWAIT) } else { NO_SIGNAL }
}

pub(super) fn recv_flags(at_once: bool) -> RecvFlags {
    if at_once { REPORT_LENGTH.union(RecvFlags::DONTWAIT) } else { REPORT_LENGTH }
}

#[inline]
pub(super) fn send(socket: &Socket, data: Data<'_>, to: Option<&Name>, at_once: bool) -> io::Result<()> {
    let flags = send_flags(at_once);
    retry_interrupted(socket, Interest::OUTPUT, || match (data, to) {
        (Data::One(data), None) => rustix::net::send(socket, data, flags),
        (Data::One(data), Some(to)) => rustix::net::sendto(socket, data, flags, to),
        (Data::Several(slices), None) => {
            rustix::net::sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags)
        }
        (Data::Several(slices), Some(to)) => {
            rustix::net::sendmsg_addr(socket, to, slices, &mut SendAncillaryBuffer::default(), flags)
        }
    })?;
    Ok(())
}

#[inline]
pub(super) fn recv(socket: &Socket, room: &mut Room<'_, '_>, at_once: bool) -> io::Result<Received> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Room::One(buffer) = room {
        let (_, whole) = retry_interrupted(socket, Interest::INPUT, || {
            rustix::net::recv(socket, &mut **buffer, recv_flags(at_once))
        })?;
        return Ok(Received::of(whole, buffer.len()));
    }
    recv_message(socket, room, at_once).map(|(received, _)| received)
}

#[inline]
pub(super) fn recv_from(
    socket: &Socket,
    room: &mut Room<'_, '_>,
    at_once: bool,
) -> io::Result<(Received, Option<Name>)> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Room::One(buffer) = room {
        let (_, whole, from) = retry_interrupted(socket, Interest::INPUT, || {
            rustix::net::recvfrom(socket, &mut **buffer, recv_flags(at_once))
        })?;
        return Ok((Received::of(whole, buffer.len()), from));
    }
    recv_message(socket, room, at_once)
}

fn recv_message(socket: &Socket, room: &mut Room<'_, '_>, at_once: bool) -> io::Result<(Received, Option<Name>)> {
    let all = room.len();
    let message = match room {
        Room::One(buffer) => recv_slices(socket, &mut [IoSliceMut::new(buffer)], at_once),
        Room::Several(slices) => {
            let count = slices.len().min(MAX_SLICES);
            recv_slices(socket, &mut slices[..count], at_once)
        }
    }?;
    Ok((to_received(message.bytes, all, message.flags), message.address))
}

fn recv_slices(socket: &Socket, slices: &mut [IoSliceMut<'_>], at_once: bool) -> io::Result<RecvMsg> {
    let flags = recv_flags(at_once);
    retry_interrupted(socket, Interest::INPUT, || {
        rustix::net::recvmsg(socket, slices, &mut RecvAncillaryBuffer::default(), flags)
    })
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn to_received(len: usize, room: usize, _flags: ReturnFlags) -> Received {
    Received::of(len, room)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn to_received(len: usize, _room: usize, flags: ReturnFlags) -> Received {
    Received::part(len, flags.contains(ReturnFlags::TRUNC))
}

/// A socket connected to `to`, if that is an address of the UNIX domain.
///
/// Between UNIX-domain sockets the receiver's queue is the one that is full, and only a socket connected to
/// the receiver becomes ready for output. The sender's is not connected, so the caller waits for this one.
pub(super) fn connect_if_local(to: &Name) -> io::Result<Option<Socket>> {
    if to.address_family() != AddressFamily::UNIX {
        return Ok(None);
    }
    let probe = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(probe.as_fd(), to)?;
    Ok(Some(probe.into()))
}
