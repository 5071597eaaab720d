//! TCP connections as streams of octets.

use std::io;

use socket2::{Domain, Socket, Type};

use super::Addr;
use crate::socket::{Expected, Listener, OwnedHandle, StreamSocket, adopt, socket_stream};

/// A TCP connection.
///
/// All methods take `&self`: one thread may send while another receives. Every wait continues after a signal;
/// a timeout then starts again. Sending to a closed peer is an error ([`io::ErrorKind::BrokenPipe`]), never a
/// signal. Each transfer is one system call. Dropping it closes it.
#[derive(Debug)]
pub struct Stream(StreamSocket);

socket_stream!(Stream, 0);

/// The addresses of both ends.
impl Stream {
    pub(super) fn socket(&self) -> &Socket {
        &self.0
    }

    pub(super) fn from_socket(socket: Socket) -> io::Result<Self> {
        StreamSocket::adopt(socket).map(Self)
    }

    /// Takes over a connection that the listener of an acceptor has accepted.
    pub(super) fn from_accepted(socket: Socket, listener: &Listener) -> io::Result<Self> {
        StreamSocket::adopt_accepted(socket, listener).map(Self)
    }

    /// The socket, for a call that does not wait.
    pub(super) fn nonblocking_socket(&self) -> io::Result<&Socket> {
        self.0.nonblocking()
    }

    /// Another handle to the same connection.
    ///
    /// # Errors
    /// Any error of the operating system, such as too many open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// The address of this side.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        Addr::from_system(&self.0.local_addr()?)
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] when the peer has reset the connection.
    pub fn remote_addr(&self) -> io::Result<Addr> {
        Addr::from_system(&self.0.peer_addr()?)
    }
}

/// Takes over a TCP connection made elsewhere, such as one inherited from another process.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for a handle that is not a stream socket of the Internet family, or
/// listens; it is closed.
impl TryFrom<OwnedHandle> for Stream {
    type Error = io::Error;

    fn try_from(handle: OwnedHandle) -> io::Result<Self> {
        Self::from_socket(adopt(handle, STREAM)?)
    }
}

pub(super) const DOMAINS: &[Domain] = &[Domain::IPV4, Domain::IPV6];
const STREAM: Expected = Expected { domains: DOMAINS, kind: Type::STREAM, listening: false };
