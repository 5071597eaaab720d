//! Message types, and their fragmentation.

use std::fmt;

use spandrel_cdr::GiopVersion;

/// The kind of a message, by the number in its header (9.4.1, `MsgType`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum MessageType {
    /// A call of an operation, with or without a reply.
    Request = 0,
    /// The outcome of an invocation.
    Reply = 1,
    /// The client no longer waits.
    CancelRequest = 2,
    /// A query for the location of an object.
    LocateRequest = 3,
    /// The answer to a LocateRequest.
    LocateReply = 4,
    /// No further request will be answered.
    CloseConnection = 5,
    /// The last message was malformed or of an unknown version.
    MessageError = 6,
    /// Continuation of an earlier message (since 1.1).
    Fragment = 7,
}

impl MessageType {
    pub(crate) const ALL: [Self; 8] = [
        Self::Request,
        Self::Reply,
        Self::CancelRequest,
        Self::LocateRequest,
        Self::LocateReply,
        Self::CloseConnection,
        Self::MessageError,
        Self::Fragment,
    ];

    /// Whether `version` permits fragments of a message of this type (9.4.9).
    #[must_use]
    pub fn is_fragmentable(self, version: GiopVersion) -> bool {
        match self {
            Self::Request | Self::Reply => version >= GiopVersion::V1_1,
            Self::LocateRequest | Self::LocateReply => version >= GiopVersion::V1_2,
            Self::Fragment => version >= GiopVersion::V1_1,
            Self::CancelRequest | Self::CloseConnection | Self::MessageError => false,
        }
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
