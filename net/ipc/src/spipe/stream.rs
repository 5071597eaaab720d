//! One end of a STREAM pipe.

use std::io;

use socket2::{Domain, Socket, Type};

use crate::socket::{OwnedHandle, StreamSocket, socket_stream};
#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::unix::Credentials;
use crate::unix::{self, Passable};

/// One end of a STREAM pipe.
///
/// All methods take `&self`: one thread may send while another receives. Every wait goes on after a signal; a time-out
/// then begins anew. Sending to a peer that is gone is an error ([`io::ErrorKind::BrokenPipe`]), never a signal.
/// Each transfer is one system call. Dropping it closes it.
#[derive(Debug)]
pub struct Stream {
    socket: StreamSocket,
    /// Who came to the rendezvous, or was found there. (The pipe itself only knows who made it.)
    #[cfg(any(target_os = "linux", target_os = "android"))]
    peer: Option<Credentials>,
}

socket_stream!(Stream, socket);

/// Both ends of one pipe, for threads of this process or to be passed to others.
///
/// # Errors
/// Those of the operating system, such as too many open files.
pub fn pair() -> io::Result<(Stream, Stream)> {
    let (one, other) = Socket::pair(Domain::UNIX, Type::STREAM, None)?;
    Ok((Stream::from_socket(one)?, Stream::from_socket(other)?))
}

/// Who the peer is.
impl Stream {
    fn from_socket(socket: Socket) -> io::Result<Self> {
        Ok(Self {
            socket: StreamSocket::adopt(socket)?,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            peer: None,
        })
    }

    /// With the process at the other end of `rendezvous` for a peer.
    pub(super) fn met_at(self, rendezvous: &unix::Stream) -> io::Result<Self> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return Ok(Self { peer: Some(rendezvous.peer_credentials()?), ..self });
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        return Ok(self);
    }

    /// The same end under another handle.
    ///
    /// # Errors
    /// Those of the operating system, such as too many open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            peer: self.peer,
        })
    }

    /// Who the peer was when the pipe was made, if it was made by an acceptor and a connector: the system vouches for it. `None` for
    /// the ends of a [`pair`] and for one that was made elsewhere.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[must_use]
    pub fn peer_credentials(&self) -> Option<Credentials> {
        self.peer
    }
}

/// Takes over an end of a pipe made elsewhere, such as one inherited from another process.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for a handle that is no UNIX-domain stream socket, or listens; it is closed.
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
