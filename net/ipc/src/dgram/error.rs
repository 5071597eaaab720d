//! Errors of sending a datagram.

use std::io;

use rustix::io::Errno;

/// The reason why a datagram was not sent. No part of it was sent, and the endpoint stays usable.
///
/// With `?`, it turns into an [`io::Error`] in functions that return that.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// It is longer than the maximum of one datagram (`EMSGSIZE`). Over UDP that is 65,507 octets (IPv4), or
    /// the path's MTU if the endpoint must not fragment; between UNIX-domain sockets it is the send queue.
    #[error("a datagram of {len} octets is too long to be sent in one piece")]
    TooLong {
        /// Its length in octets.
        len: usize,
        /// The system's error, `EMSGSIZE`.
        #[source]
        cause: io::Error,
    },
    /// No endpoint receives at the address (`ECONNREFUSED`). Over UDP, only a connected endpoint gets this
    /// error. It concerns an *earlier* datagram, is reported by the first call after the ICMP message, and
    /// that call sends nothing; the next call sends. Between UNIX-domain sockets it concerns this datagram,
    /// and the peer of a connected endpoint does not come back.
    #[error("no endpoint receives at the datagram's destination")]
    Refused(#[source] io::Error),
    /// The system has no memory for it, or the network interface's queue is full (`ENOBUFS`); in the latter
    /// case Linux drops datagrams silently. An immediate retry would spin, since no readiness event signals
    /// free space.
    #[error("the system has no room for a datagram at the moment")]
    NoBuffers(#[source] io::Error),
    /// Another error; among them [`io::ErrorKind::WouldBlock`] and [`io::ErrorKind::TimedOut`], when the send
    /// queue (between UNIX-domain sockets: the receiver's queue) stayed full.
    #[error(transparent)]
    System(#[from] io::Error),
}
spandrel_error::debug_as_report!(SendError);

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

    /// Whether a timeout ended the send; also true if the endpoint is nonblocking and would have to wait.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::System(cause) if crate::is_timeout(cause))
    }

    /// Classifies the system's error for a datagram of `len` octets.
    #[cold]
    pub(crate) fn classify(cause: io::Error, len: usize) -> Self {
        match Errno::from_io_error(&cause) {
            Some(Errno::MSGSIZE) => Self::TooLong { len, cause },
            // Linux reports the end of a UNIX-domain peer once, and after that has no peer to report on.
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
