//! What all families of stream sockets share: the system calls, the waiting for connections, the making of them, and one macro
//! that makes a stream of a socket.
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
#[cfg(unix)]
pub(crate) mod interrupted;
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

/// A socket whose ownership came from elsewhere.
#[cfg(unix)]
pub(crate) type OwnedHandle = std::os::fd::OwnedFd;
/// A socket whose ownership came from elsewhere.
#[cfg(windows)]
pub(crate) type OwnedHandle = std::os::windows::io::OwnedSocket;

/// What the operating system takes as a time-out: not zero, which would mean for ever.
pub(crate) fn timeout(timeout: Option<Duration>) -> io::Result<Option<Duration>> {
    let least = if cfg!(windows) { Duration::from_millis(1) } else { Duration::from_micros(1) };
    match timeout {
        Some(Duration::ZERO) => Err(io::Error::new(io::ErrorKind::InvalidInput, "a time-out of zero would never wait")),
        timeout => Ok(timeout.map(|timeout| timeout.max(least))),
    }
}

/// Sets what is given of the sizes of a socket's queues, in octets.
pub(crate) fn set_queues(socket: &Socket, send: Option<usize>, recv: Option<usize>) -> io::Result<()> {
    if let Some(octets) = send {
        socket.set_send_buffer_size(octets)?;
    }
    recv.map_or(Ok(()), |octets| socket.set_recv_buffer_size(octets))
}

/// What a socket that comes from elsewhere is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// Its domains; the IP versions count as one family.
    pub(crate) domains: &'static [Domain],
    /// Streams or datagrams.
    pub(crate) kind: Type,
    /// Whether it listens; Windows is not asked.
    #[cfg_attr(windows, expect(dead_code))]
    pub(crate) listening: bool,
}

/// Takes over a socket that comes from elsewhere, if it is what it is said to be. If not, it is closed.
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
