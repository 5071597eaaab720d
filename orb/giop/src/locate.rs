//! CancelRequest, LocateRequest and LocateReply (CORBA 3.3 Part 2, 9.4.4 to 9.4.6): small messages without
//! contexts.
//!
//! Their bodies, if any, follow without the alignment to 8 that Request and Reply have in GIOP 1.2.

use std::fmt;

use spandrel_cdr::{CdrError, Decoder, Encoder, GiopVersion};

use crate::{Body, GiopError, MessageType, Target, body::begin_message};

/// The result of a LocateRequest (9.4.6.1, `LocateStatusType`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u32)]
pub enum LocateStatus {
    /// The server has no such object (`UNKNOWN_OBJECT`).
    UnknownObject = 0,
    /// This server accepts requests to the object.
    ObjectHere = 1,
    /// The body is the reference to use instead.
    ObjectForward = 2,
    /// As `ObjectForward`, and the original reference is invalid from now on (since 1.2).
    ObjectForwardPerm = 3,
    /// The body is a system exception (since 1.2).
    LocSystemException = 4,
    /// The body is the addressing disposition for the next LocateRequest (since 1.2).
    LocNeedsAddressingMode = 5,
}

impl LocateStatus {
    const ALL: [Self; 6] = [
        Self::UnknownObject,
        Self::ObjectHere,
        Self::ObjectForward,
        Self::ObjectForwardPerm,
        Self::LocSystemException,
        Self::LocNeedsAddressingMode,
    ];

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let value = input.u32()?;
        let statuses = if input.wire().version >= GiopVersion::V1_2 { &Self::ALL[..] } else { &Self::ALL[..3] };
        usize::try_from(value)
            .ok()
            .and_then(|at| statuses.get(at).copied())
            .ok_or(CdrError::BadEnum { name: "LocateStatus", value })
    }
}

impl fmt::Display for LocateStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownObject => "UNKNOWN_OBJECT",
            Self::ObjectHere => "OBJECT_HERE",
            Self::ObjectForward => "OBJECT_FORWARD",
            Self::ObjectForwardPerm => "OBJECT_FORWARD_PERM",
            Self::LocSystemException => "LOC_SYSTEM_EXCEPTION",
            Self::LocNeedsAddressingMode => "LOC_NEEDS_ADDRESSING_MODE",
        })
    }
}

/// Header of a LocateRequest: asks whether this server accepts requests to an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LocateRequestHeader<'m> {
    /// The id that the LocateReply repeats.
    pub request_id: u32,
    /// The object whose location is asked for.
    pub target: Target<'m>,
}

impl<'m> LocateRequestHeader<'m> {
    /// Decodes the header in the version that the decoder carries.
    ///
    /// # Errors
    /// [`GiopError::Body`].
    pub fn decode(input: &mut Decoder<'m>) -> Result<Self, GiopError> {
        let mut read = || Ok(Self { request_id: input.u32()?, target: Target::decode(input)? });
        read().map_err(|cause| GiopError::Body { message: MessageType::LocateRequest, cause })
    }

    /// Writes the whole message into an empty encoder whose `Wire` gives version and byte order.
    ///
    /// # Errors
    /// Before 1.2, a target without an object key.
    ///
    /// # Panics
    /// If `out` is not empty.
    pub fn encode(&self, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        begin_message(out, MessageType::LocateRequest);
        out.u32(self.request_id);
        self.target.encode(out)?;
        Body::begin(out, 1, Ok(())).end(out)
    }
}

impl fmt::Display for LocateRequestHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "locate request {}: {}", self.request_id, self.target)
    }
}

/// The part of a LocateReply before its body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LocateReplyHeader {
    /// The id of the LocateRequest that it answers.
    pub request_id: u32,
    /// The result, which determines the body.
    pub status: LocateStatus,
}

impl LocateReplyHeader {
    /// Decodes the header in the version that the decoder carries, and leaves the decoder at the body.
    ///
    /// # Errors
    /// [`GiopError::Body`].
    pub fn decode(input: &mut Decoder<'_>) -> Result<Self, GiopError> {
        let mut read = || Ok(Self { request_id: input.u32()?, status: LocateStatus::decode(input)? });
        read().map_err(|cause| GiopError::Body { message: MessageType::LocateReply, cause })
    }

    /// Writes message header and this header into an empty encoder whose `Wire` gives version and byte order.
    ///
    /// # Panics
    /// If `out` is not empty.
    pub fn encode(&self, out: &mut Encoder<'_>) -> Body {
        begin_message(out, MessageType::LocateReply);
        out.u32(self.request_id);
        out.u32(self.status as u32);
        Body::begin(out, 1, Ok(()))
    }
}

impl fmt::Display for LocateReplyHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "locate reply {}: {}", self.request_id, self.status)
    }
}

/// A CancelRequest: the client no longer waits for a reply. Advisory: the reply may still arrive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CancelRequest {
    /// The id of the Request or LocateRequest that the client no longer waits for.
    pub request_id: u32,
}

impl CancelRequest {
    /// Decodes the octets after the message header.
    ///
    /// # Errors
    /// [`GiopError::Body`].
    pub fn decode(input: &mut Decoder<'_>) -> Result<Self, GiopError> {
        match input.u32() {
            Ok(request_id) => Ok(Self { request_id }),
            Err(cause) => Err(GiopError::Body { message: MessageType::CancelRequest, cause }),
        }
    }

    /// Writes the whole message into an empty encoder whose `Wire` gives version and byte order.
    ///
    /// # Errors
    /// None so far.
    ///
    /// # Panics
    /// If `out` is not empty.
    pub fn encode(&self, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        begin_message(out, MessageType::CancelRequest);
        out.u32(self.request_id);
        Body::begin(out, 1, Ok(())).end(out)
    }
}

impl fmt::Display for CancelRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cancel request {}", self.request_id)
    }
}

/// Writes a whole LocateRequest for an object key into an empty encoder.
///
/// # Errors
/// [`CdrError::TooLong`] for a key of more than 4 GiB.
///
/// # Panics
/// If `out` is not empty.
pub fn locate_request(out: &mut Encoder<'_>, request_id: u32, object_key: &[u8]) -> Result<(), CdrError> {
    LocateRequestHeader { request_id, target: Target::Key(object_key) }.encode(out)
}

/// Writes everything of a LocateReply up to its body into an empty encoder.
///
/// # Panics
/// If `out` is not empty.
pub fn begin_locate_reply(out: &mut Encoder<'_>, request_id: u32, status: LocateStatus) -> Body {
    LocateReplyHeader { request_id, status }.encode(out)
}
