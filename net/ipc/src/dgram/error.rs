//! What can go wrong in sending a datagram.

use std::io;

use rustix::io::Errno;

/// Why a datagram was not sent. It was not sent in part either, and the endpoint stays usable.
///
/// With `?`, it turns into an [`io::Error`] in functions that return that.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// It is longer than what goes in one piece (`EMSGSIZE`): over UDP 65,507 octets (IPv4), or the path's MTU if the endpoint must
    /// not fragment; between UNIX-domain sockets the send queue.
    #[error("a datagram of {len} octets is too long to be sent in one piece")]
    TooLong {
        /// Its length in octets.
        len: usize,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// Nobody receives there (`ECONNREFUSED`). Over UDP, only a connected endpoint is told, and it is told of an *earlier* datagram
    /// that came back, by the first call after it, which then sends nothing; calling again sends. Between UNIX-domain sockets it
    /// concerns this datagram, and a connected endpoint's peer does not come back.
    #[error("nobody receives at the datagram's destination")]
    Refused(#[source] io::Error),
    /// The system has no memory for it, or the network interface's queue is full (`ENOBUFS`). Linux throws datagrams away silently
    /// in the latter case. Trying again at once would spin: no readiness tells when there is room.
    #[error("the system has no room for a datagram at the moment")]
    NoBuffers(#[source] io::Error),
    /// Another error; among them [`io::ErrorKind::WouldBlock`] and [`io::ErrorKind::TimedOut`], when the send queue (between
    /// UNIX-domain sockets: the receiver's queue) was full for too long.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl SendError {
    /// The kind of the cause; [`io::ErrorKind::InvalidInput`] for a datagram that is too long.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::TooLong { .. } => io::ErrorKind::InvalidInput,
            Self::Refused(_) => io::ErrorKind::ConnectionRefused,
            Self::NoBuffers(cause) | Self::System(cause) => cause.kind(),
        }
    }

    /// Whether a time-out ended the send; also true if the endpoint must not wait and would have to.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::System(cause) if crate::is_timeout(cause))
    }

    /// The system's error for a datagram of `len` octets, sorted.
    #[cold]
    pub(crate) fn sort(cause: io::Error, len: usize) -> Self {
        match Errno::from_io_error(&cause) {
            Some(Errno::MSGSIZE) => Self::TooLong { len, cause },
            // Linux tells of a UNIX-domain peer's end once, and then has none to speak of.
            Some(Errno::CONNREFUSED | Errno::NOTCONN) => Self::Refused(cause),
            #[cfg(windows)]
            Some(Errno::CONNRESET) => Self::Refused(cause),
            Some(Errno::NOBUFS) => Self::NoBuffers(cause),
            _ => Self::System(cause),
        }
    }
}

impl From<SendError> for io::Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::System(cause) => cause,
            error => Self::new(error.kind(), error),
        }
    }
}
