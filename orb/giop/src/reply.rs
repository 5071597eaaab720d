//! The header of a Reply (CORBA 3.3 Part 2, 9.4.3.1).
//!
//! 1.0 and 1.1: `contexts | ulong request_id | ulong reply_status`
//! 1.2: `ulong request_id | ulong reply_status | contexts`, and the body, if there is one, aligned to 8.

use std::fmt;

use spandrel_cdr::{CdrError, Decoder, Encoder, GiopVersion};

use crate::{
    Body, GiopError, MessageType, ServiceContext, ServiceContexts,
    body::{begin_message, body_alignment},
    request::align_to_body,
};

/// What a Reply's body is (9.4.3.1, `ReplyStatusType`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u32)]
pub enum ReplyStatus {
    /// The results.
    NoException = 0,
    /// A repository id and an exception of the operation's.
    UserException = 1,
    /// A system exception.
    SystemException = 2,
    /// A reference to which this request, and later ones, go instead.
    LocationForward = 3,
    /// The same, and the original reference is worthless from now on (since 1.2).
    LocationForwardPerm = 4,
    /// An addressing disposition in which the request is to be sent again (since 1.2).
    NeedsAddressingMode = 5,
}

impl ReplyStatus {
    const ALL: [Self; 6] = [
        Self::NoException,
        Self::UserException,
        Self::SystemException,
        Self::LocationForward,
        Self::LocationForwardPerm,
        Self::NeedsAddressingMode,
    ];

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let value = input.u32()?;
        let known = if input.wire().version >= GiopVersion::V1_2 { &Self::ALL[..] } else { &Self::ALL[..4] };
        usize::try_from(value)
            .ok()
            .and_then(|at| known.get(at).copied())
            .ok_or(CdrError::BadEnum { name: "ReplyStatus", value })
    }
}

impl fmt::Display for ReplyStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoException => "NO_EXCEPTION",
            Self::UserException => "USER_EXCEPTION",
            Self::SystemException => "SYSTEM_EXCEPTION",
            Self::LocationForward => "LOCATION_FORWARD",
            Self::LocationForwardPerm => "LOCATION_FORWARD_PERM",
            Self::NeedsAddressingMode => "NEEDS_ADDRESSING_MODE",
        })
    }
}

/// Everything of a Reply between the message header and the body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReplyHeader<'m> {
    /// The id of the request that is answered.
    pub request_id: u32,
    /// What the body is.
    pub status: ReplyStatus,
    /// What services added.
    pub service_contexts: ServiceContexts<'m>,
}

impl<'m> ReplyHeader<'m> {
    /// Reads the header in the version that the decoder carries, and leaves the decoder at the body.
    ///
    /// # Errors
    /// [`GiopError::Body`].
    pub fn decode(input: &mut Decoder<'m>) -> Result<Self, GiopError> {
        Self::read(input).map_err(|cause| GiopError::Body { message: MessageType::Reply, cause })
    }

    fn read(input: &mut Decoder<'m>) -> Result<Self, CdrError> {
        if input.wire().version >= GiopVersion::V1_2 {
            let request_id = input.u32()?;
            let status = ReplyStatus::decode(input)?;
            let service_contexts = ServiceContexts::decode(input)?;
            align_to_body(input)?;
            Ok(Self { request_id, status, service_contexts })
        } else {
            let service_contexts = ServiceContexts::decode(input)?;
            Ok(Self { request_id: input.u32()?, status: ReplyStatus::decode(input)?, service_contexts })
        }
    }

    /// Writes message header and reply header into an empty encoder whose `Wire` says version and order.
    ///
    /// Whatever cannot be written is reported by [`Body::end`].
    ///
    /// # Panics
    /// If `out` is not empty.
    pub fn encode(&self, out: &mut Encoder<'_>) -> Body {
        begin_message(out, MessageType::Reply);
        let version = out.wire().version;
        let headers = if version >= GiopVersion::V1_2 {
            out.u32(self.request_id);
            out.u32(self.status as u32);
            self.service_contexts.encode(out)
        } else {
            let contexts = self.service_contexts.encode(out);
            out.u32(self.request_id);
            out.u32(self.status as u32);
            contexts
        };
        Body::begin(out, body_alignment(version), headers)
    }
}

impl fmt::Display for ReplyHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reply {}: {}, contexts {}", self.request_id, self.status, self.service_contexts)
    }
}

/// Writes everything of a Reply up to its body into an empty encoder whose `Wire` says version and order.
///
/// # Panics
/// If `out` is not empty.
#[inline]
pub fn begin_reply(out: &mut Encoder<'_>, request_id: u32, status: ReplyStatus, contexts: &[ServiceContext]) -> Body {
    ReplyHeader { request_id, status, service_contexts: contexts.into() }.encode(out)
}
