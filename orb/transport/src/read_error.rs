//! The reasons for which no message was read.

use std::io;

use spandrel_giop::{GiopError, MessageType};

use crate::budget::MemoryLimitExceeded;

/// The reason why a [`MessageReader`](crate::MessageReader) returned no message.
#[derive(thiserror::Error)]
pub enum ReadError {
    /// The peer closed the connection between messages.
    #[error("the peer closed the connection")]
    EndOfFile,
    /// The peer closed the connection inside a message.
    #[error("the peer closed the connection inside a message")]
    CutOff,
    /// No message arrived within the time-out.
    #[error("no message arrived within the time-out")]
    TimedOut,
    /// The peer may not send messages of this type.
    #[error("the client sent a {0}, which only servers may send")]
    Unexpected(MessageType),
    /// A request was discarded; the connection continues.
    #[error("request {} is discarded: {}", .0.request_id, .0.reason)]
    Discarded(Box<DiscardedRequest>),
    /// A message was rejected, and with it the connection.
    #[error(transparent)]
    Rejected(Box<RejectReason>),
    /// The read failed with an error of the transport.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The peer violated GIOP.
    #[error(transparent)]
    Giop(#[from] GiopError),
}
spandrel_error::debug_as_report!(ReadError);

/// A request that was discarded on arrival: the connection goes on with the message behind it.
#[derive(Debug)]
pub struct DiscardedRequest {
    /// The id that the client gave the request.
    pub request_id: u32,
    /// Whether the client waits for a reply.
    pub expects_reply: bool,
    /// The limit or rule that the request violates.
    pub reason: RejectReason,
}

/// The limit or rule that a message violates.
#[derive(thiserror::Error)]
pub enum RejectReason {
    /// The message is too long.
    #[error("a message of {len} octets exceeds the limit of {limit} (-ORBMaxMessageSize)")]
    TooLong {
        /// The length in octets that the header of the message announces.
        len: usize,
        /// The greatest permitted length.
        limit: usize,
    },
    /// The message would exceed a memory limit.
    #[error(transparent)]
    MemoryLimit(#[from] MemoryLimitExceeded),
}
spandrel_error::debug_as_report!(RejectReason);
