//! Connections within one host (UNIX-domain sockets).

use std::io;

use socket2::{Domain, Socket, Type};

use super::Addr;
use crate::socket::{Expected, OwnedHandle, StreamSocket, adopt, socket_stream};

/// A UNIX-domain connection.
///
/// All methods take `&self`: one thread may send while another receives. Every wait continues after a signal;
/// a timeout then starts again. Sending to a closed peer is an error ([`io::ErrorKind::BrokenPipe`]), never a
/// signal. Each transfer is one system call. Dropping it closes it.
#[derive(Debug)]
pub struct Stream(StreamSocket);

socket_stream!(Stream, 0);

/// Two ends of one unnamed connection, for threads of this process or to be passed to others.
///
/// # Errors
/// Any error of the operating system, such as too many open files.
pub fn pair() -> io::Result<(Stream, Stream)> {
    let (one, other) = Socket::pair(Domain::UNIX, Type::STREAM, None)?;
    Ok((Stream::from_socket(one)?, Stream::from_socket(other)?))
}

/// Addresses and peer credentials.
impl Stream {
    pub(crate) fn from_socket(socket: Socket) -> io::Result<Self> {
        StreamSocket::adopt(socket).map(Self)
    }

    /// Another handle to the same connection.
    ///
    /// # Errors
    /// Any error of the operating system, such as too many open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// The address of this side; unnamed if it connected without binding.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        Addr::from_system(&self.0.local_addr()?)
    }

    /// The address of the peer; unnamed if the peer connected without binding.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] when the peer has closed.
    pub fn remote_addr(&self) -> io::Result<Addr> {
        Addr::from_system(&self.0.peer_addr()?)
    }

    /// The peer's credentials when the connection was made (`SO_PEERCRED`): those of the process that
    /// connected, or that listened. The system vouches for them.
    ///
    /// # Errors
    /// Any error of the operating system.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn peer_credentials(&self) -> io::Result<Credentials> {
        Credentials::of_peer(&self.0)
    }
}

/// The ids of a process, its user and its group, as the kernel states them.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// The process ID. The system may reuse it once the process has ended.
    pub pid: u32,
    /// The effective user ID.
    pub uid: u32,
    /// The effective group ID.
    pub gid: u32,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Credentials {
    /// The credentials of this process.
    #[must_use]
    pub fn own() -> Self {
        Self {
            pid: rustix::process::getpid().as_raw_nonzero().get().unsigned_abs(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    pub(crate) fn of_peer(socket: &Socket) -> io::Result<Self> {
        let peer = rustix::net::sockopt::socket_peercred(socket)?;
        Ok(Self { pid: peer.pid.as_raw_nonzero().get().unsigned_abs(), uid: peer.uid.as_raw(), gid: peer.gid.as_raw() })
    }
}

/// Takes over a UNIX-domain connection made elsewhere, such as one inherited from another process.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for a handle that is not a UNIX-domain stream socket, or listens; it is
/// closed.
impl TryFrom<OwnedHandle> for Stream {
    type Error = io::Error;

    fn try_from(handle: OwnedHandle) -> io::Result<Self> {
        Self::from_socket(adopt(handle, STREAM)?)
    }
}

pub(super) const DOMAINS: &[Domain] = &[Domain::UNIX];
const STREAM: Expected = Expected { domains: DOMAINS, kind: Type::STREAM, listening: false };
