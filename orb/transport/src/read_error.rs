//! The reasons for which no message could be read.

use std::io;

use spandrel_giop::{GiopError, MessageType};

use crate::budget::MemoryLimitExceeded;

/// The reason for which no message could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The peer closed the connection between messages.
    #[error("the peer closed the connection")]
    EndOfFile,
    /// The peer closed the connection inside a message.
    #[error("the peer closed the connection inside a message")]
    CutOff,
    /// No message came within the time-out.
    #[error("nothing came within the time-out")]
    TimedOut,
    /// The peer may not send messages of this type.
    #[error("a {0}, which only servers may send, came from a client")]
    Unexpected(MessageType),
    /// A request is discarded; the connection goes on.
    #[error("request {} is not taken: {}", .0.request_id, .0.reason)]
    Discarded(Box<DiscardedRequest>),
    /// A message is rejected, and with it the connection.
    #[error(transparent)]
    Rejected(Box<RejectReason>),
    /// The transport failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The peer does not keep to GIOP.
    #[error(transparent)]
    Giop(#[from] GiopError),
}

/// A request that is discarded as it comes instead of being kept.
#[derive(Debug)]
pub struct DiscardedRequest {
    /// Its id.
    pub request_id: u32,
    /// Whether the client waits for a reply.
    pub expects_reply: bool,
    /// The reason.
    pub reason: RejectReason,
}

/// The reason for which a message is rejected.
#[derive(Debug, thiserror::Error)]
pub enum RejectReason {
    /// It is too long.
    #[error("{len} octets of message exceed the limit of {limit} (-ORBMaxMessageSize)")]
    TooLong {
        /// Its length.
        len: usize,
        /// The greatest permitted length.
        limit: usize,
    },
    /// There is no memory for it.
    #[error(transparent)]
    MemoryLimit(#[from] MemoryLimitExceeded),
}
