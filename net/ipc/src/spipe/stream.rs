//! One end of a STREAM pipe.

use std::io;

use socket2::{Domain, Socket, Type};

use crate::socket::{OwnedHandle, StreamSocket, socket_stream};
#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::unix::Credentials;
use crate::unix::{self, Passable};

/// One end of a STREAM pipe.
///
/// All methods take `&self`: one thread may send while another receives. Every wait continues after a signal;
/// a timeout then starts again. Sending to a closed peer is an error ([`io::ErrorKind::BrokenPipe`]), never a
/// signal. Each transfer is one system call. Dropping it closes it.
#[derive(Debug)]
pub struct Stream {
    socket: StreamSocket,
    /// The credentials of the process at the other end of the listening connection. (The pipe itself records
    /// only its creator.)
    #[cfg(any(target_os = "linux", target_os = "android"))]
    peer: Option<Credentials>,
}

socket_stream!(Stream, socket);

/// Both ends of one pipe, for threads of this process or to be passed to others.
///
/// # Errors
/// Any error of the operating system, such as too many open files.
pub fn pair() -> io::Result<(Stream, Stream)> {
    let (one, other) = Socket::pair(Domain::UNIX, Type::STREAM, None)?;
    Ok((Stream::from_socket(one)?, Stream::from_socket(other)?))
}

/// The credentials of the peer.
impl Stream {
    fn from_socket(socket: Socket) -> io::Result<Self> {
        Ok(Self {
            socket: StreamSocket::adopt(socket)?,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            peer: None,
        })
    }

    /// With the process at the other end of `rendezvous` as the peer.
    pub(super) fn with_peer_of(self, rendezvous: &unix::Stream) -> io::Result<Self> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return Ok(Self { peer: Some(rendezvous.peer_credentials()?), ..self });
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        return Ok(self);
    }

    /// Another handle to the same end.
    ///
    /// # Errors
    /// Any error of the operating system, such as too many open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            peer: self.peer,
        })
    }

    /// The credentials of the peer when the pipe was made by an acceptor and a connector, vouched for by the
    /// system. `None` for the ends of a [`pair`] and for pipes made elsewhere.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[must_use]
    pub fn peer_credentials(&self) -> Option<Credentials> {
        self.peer
    }
}

/// Takes over an end of a pipe made elsewhere, such as one inherited from another process.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for a handle that is not a UNIX-domain stream socket, or listens; it is
/// closed.
impl TryFrom<OwnedHandle> for Stream {
    type Error = io::Error;

    fn try_from(handle: OwnedHandle) -> io::Result<Self> {
        Self::from_socket(Socket::from(OwnedHandle::from(unix::Stream::try_from(handle)?)))
    }
}

impl Passable for Stream {
    const TAG: u8 = 5; // the others are in `unix/passing.rs`

    fn from_received(handle: OwnedHandle) -> io::Result<Self> {
        Self::try_from(handle)
    }
}
