//! The reason for closing a handler or a connection.

use std::fmt;
use std::io;

/// The reason for closing an event handler, or the connection of a service.
///
/// Event handlers get [`Removed`](Self::Removed), [`Failed`](Self::Failed), [`Panicked`](Self::Panicked) and
/// [`Stopped`](Self::Stopped). Services get all reasons, which tell which side closed the connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it: the handler itself ([`Peer::close`](crate::Peer::close)), a
    /// [`Sender`](crate::Sender), or [`Registry::remove`](crate::Registry::remove).
    Removed,
    /// The peer closed it: its octets have ended, and the handler has received the end.
    PeerClosed,
    /// This side closed it without sending the queued octets ([`Sender::abort`](crate::Sender::abort)).
    Aborted,
    /// This side ended the input, or closed the connection, because its server or client is
    /// [drained](crate::Server::drain).
    Drained,
    /// A limit was exceeded: too many octets wait for a peer that does not read, or a frame of the peer is
    /// too long. (A method failed with [`io::ErrorKind::QuotaExceeded`].)
    LimitExceeded(io::Error),
    /// A time limit has passed. (A method failed with [`io::ErrorKind::TimedOut`].)
    TimedOut(io::Error),
    /// One of its methods failed with this error, or its handle cannot be waited on any more. A peer that
    /// breaks the connection off is [`io::ErrorKind::ConnectionReset`] or [`io::ErrorKind::BrokenPipe`].
    Failed(io::Error),
    /// One of its methods panicked with this message.
    Panicked(String),
    /// The reactor was closed.
    Stopped,
}

impl CloseReason {
    /// Whether the peer ended the connection: by closing it, or by breaking it off.
    #[must_use]
    pub fn is_by_peer(&self) -> bool {
        match self {
            Self::PeerClosed => true,
            Self::Failed(error) => matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::UnexpectedEof
            ),
            _ => false,
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed => f.write_str("closed by this side"),
            Self::PeerClosed => f.write_str("closed by the peer"),
            Self::Aborted => f.write_str("aborted by this side"),
            Self::Drained => f.write_str("closed by this side, which is shutting down"),
            Self::LimitExceeded(error) => write!(f, "limit exceeded: {error}"),
            Self::TimedOut(error) => write!(f, "timed out: {error}"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Stopped => f.write_str("the reactor was closed"),
        }
    }
}
