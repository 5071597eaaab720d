//! The common part of all families of stream sockets: system calls, listening, connecting, and one macro that
//! implements a stream over a socket.
//!
//! A family adds its addresses, its options and its names.

mod acceptor;
mod attempt;
#[cfg(unix)]
#[path = "socket/calls.rs"]
pub(crate) mod calls;
#[cfg(windows)]
#[path = "socket/calls_windows.rs"]
pub(crate) mod calls;
mod listener;
mod send_file;
mod stream;

use std::io;
use std::time::Duration;

pub(crate) use acceptor::acceptor;
pub(crate) use attempt::{Attempt, connect};
pub(crate) use calls::StreamSocket;
pub(crate) use listener::Listener;
pub(crate) use send_file::send_file;
use socket2::{Domain, Socket, Type};
pub(crate) use stream::{handles, socket_stream};

/// A socket made elsewhere, with its ownership.
#[cfg(unix)]
pub(crate) type OwnedHandle = std::os::fd::OwnedFd;
/// A socket made elsewhere, with its ownership.
#[cfg(windows)]
pub(crate) type OwnedHandle = std::os::windows::io::OwnedSocket;

/// A timeout for the operating system: not zero, which would mean no limit.
pub(crate) fn timeout(timeout: Option<Duration>) -> io::Result<Option<Duration>> {
    let least = if cfg!(windows) { Duration::from_millis(1) } else { Duration::from_micros(1) };
    match timeout {
        Some(Duration::ZERO) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a timeout of zero; use the `try_` methods, which never wait",
        )),
        timeout => Ok(timeout.map(|timeout| timeout.max(least))),
    }
}

/// Sets the given sizes of a socket's queues, in octets.
pub(crate) fn set_queues(socket: &Socket, send: Option<usize>, recv: Option<usize>) -> io::Result<()> {
    if let Some(octets) = send {
        socket.set_send_buffer_size(octets)?;
    }
    recv.map_or(Ok(()), |octets| socket.set_recv_buffer_size(octets))
}

/// The expected properties of a socket made elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// Its domains; the IP versions count as one family.
    pub(crate) domains: &'static [Domain],
    /// The socket type: stream or datagram.
    pub(crate) kind: Type,
    /// Whether it listens; not checked on Windows.
    #[cfg_attr(windows, expect(dead_code))]
    pub(crate) listening: bool,
}

/// Takes over a socket made elsewhere, if it has the expected properties. Otherwise it is closed.
pub(crate) fn adopt(handle: OwnedHandle, expected: Expected) -> io::Result<Socket> {
    let wrong = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, format!("the handle {what}")));
    let socket = Socket::from(handle);
    let kind = socket.r#type()?;
    if kind != expected.kind {
        return wrong(format!("is a socket of type {kind:?}, not {:?}", expected.kind));
    }
    let domain = socket.local_addr()?.domain();
    if !expected.domains.contains(&domain) {
        return wrong(format!("is a socket of family {domain:?}, not {:?}", expected.domains));
    }
    #[cfg(unix)]
    if socket.is_listener()? != expected.listening {
        return wrong(if expected.listening { "does not listen" } else { "listens" }.to_owned());
    }
    Ok(socket)
}
