//! Reasons for which transfers end.

use std::{fmt, io, time::Duration};

use spandrel_orb::SystemException;

use crate::{
    bulk::FailureCode,
    wire::{ErrorCode, WireError},
};

/// The party that has ended a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The process that reports the end.
    Own,
    /// The process at the other end.
    Peer,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Own { "this side" } else { "the peer" })
    }
}

/// The reason for which a transfer has ended before its end.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BulkError {
    /// The peer sent octets that the bulk protocol does not permit.
    #[error("the peer broke the bulk protocol")]
    Wire(#[from] WireError),
    /// The connection has failed or ended; the transfer can be resumed.
    #[error("the bulk connection broke after {octets} octets")]
    Broken {
        /// The octets that this side had sent or received.
        octets: u64,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// A time limit has passed.
    #[error("no end of {action} within {limit:?}")]
    TimedOut {
        /// The action that took too long.
        action: &'static str,
        /// The limit of this action.
        limit: Duration,
    },
    /// A party has cancelled the transfer.
    #[error("{by} has cancelled the transfer: {}", spandrel_error::excerpt(reason))]
    Cancelled {
        /// The party that cancelled.
        by: Party,
        /// The reason that it gave.
        reason: String,
    },
    /// The peer gave up, or did not accept the connection.
    #[error("the peer gave up: {} (code {code})", spandrel_error::excerpt(text))]
    GaveUp {
        /// The code, of [`ErrorCode`](crate::wire::ErrorCode) or another.
        code: u16,
        /// The reason that it gave.
        text: String,
    },
    /// The octets are not the ones that were sent.
    #[error("the checksum of the received octets is {received:08x}, and that of the sent ones {sent:08x}")]
    Checksum {
        /// Computed from the received octets.
        received: u32,
        /// Computed by the sender.
        sent: u32,
    },
    /// The source or the destination of the octets has failed at this side.
    #[error("the {0} of the octets has failed")]
    Storage(&'static str, #[source] io::Error),
    /// An operation of the stream end has failed.
    #[error("the other party cannot continue the transfer: {}", spandrel_error::excerpt(reason))]
    Failed {
        /// The kind of the failure.
        code: FailureCode,
        /// The other party's text.
        reason: String,
    },
    /// An operation of CORBA on the offer has failed.
    #[error("a call on the stream end failed")]
    Call(#[from] SystemException),
    /// No route is permitted and reachable.
    #[error("{0}")]
    Unreachable(String),
    /// The offer is for the other direction.
    #[error("the offer is for octets in the other direction")]
    Direction,
    /// There are too many transfers.
    #[error("there are {0} transfers already: wait for their end, or raise the limit (BulkLimits)")]
    TooMany(usize),
}
spandrel_error::debug_as_report!(BulkError);

impl BulkError {
    /// Whether a new connection can go on where this one ended: it broke, or the peer has too many connections now.
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        match self {
            Self::Broken { .. } => true,
            Self::GaveUp { code, .. } => *code == ErrorCode::Busy as u16,
            _ => false,
        }
    }
}
