//! The system calls, on Windows.

use std::io::{self, IoSliceMut};
use std::os::windows::io::AsSocket;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;

use super::buffers::{Data, MAX_SLICES, Room};
use super::{Name, Received};

pub(super) fn send(socket: &Socket, data: Data<'_>, to: Option<&Name>, at_once: bool) -> io::Result<()> {
    if at_once {
        only_if_ready(socket, PollFlags::OUT)?;
    }
    match (data, to) {
        (Data::One(data), None) => socket.send(data),
        (Data::One(data), Some(to)) => socket.send_to(data, to),
        (Data::Several(slices), None) => socket.send_vectored(slices),
        (Data::Several(slices), Some(to)) => socket.send_to_vectored(slices, to),
    }
    .map(drop)
}

pub(super) fn recv(socket: &Socket, room: &mut Room<'_, '_>, at_once: bool) -> io::Result<Received> {
    recv_from(socket, room, at_once).map(|(received, _)| received)
}

/// Winsock reports `WSAECONNRESET` when no endpoint received an earlier datagram. For a connected socket that
/// is `ConnectionRefused` under another name; for others it is skipped, since no other system reports it.
pub(super) fn recv_from(
    socket: &Socket,
    room: &mut Room<'_, '_>,
    at_once: bool,
) -> io::Result<(Received, Option<Name>)> {
    loop {
        if at_once {
            only_if_ready(socket, PollFlags::IN)?;
        }
        let came = match room {
            Room::One(buffer) => crate::sys::dgram::recv_from(socket, &mut [IoSliceMut::new(buffer)]),
            Room::Several(slices) => {
                let count = slices.len().min(MAX_SLICES);
                crate::sys::dgram::recv_from(socket, &mut slices[..count])
            }
        };
        match came {
            // A truncated datagram fills the room; the system's count is unreliable then, as the call counts
            // as failed.
            Ok((_, true, from)) => return Ok((Received::part(room.len(), true), Some(from))),
            Ok((len, false, from)) => return Ok((Received::part(len, false), Some(from))),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                if socket.peer_addr().is_ok() {
                    return Err(io::Error::new(io::ErrorKind::ConnectionRefused, error));
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Winsock has no flag for one transfer that must not wait.
fn only_if_ready(socket: &Socket, flags: PollFlags) -> io::Result<()> {
    let mut handles = [PollFd::from_borrowed_fd(socket.as_socket(), flags)];
    match poll(&mut handles, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

/// None: the sender's own socket becomes ready for output.
pub(super) fn connect_if_local(_to: &Name) -> io::Result<Option<Socket>> {
    Ok(None)
}
