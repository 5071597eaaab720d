//! The header of a Reply (CORBA 3.3 Part 2, 9.4.3.1).
//!
//! 1.0 and 1.1: `contexts | ulong request_id | ulong reply_status`
//! 1.2: `ulong request_id | ulong reply_status | contexts`, and the body, if there is one, aligned to 8.

use std::fmt;

use spandrel_cdr::{ByteOrder, CdrError, Decoder, Encoder, GiopVersion};

use crate::{
    Body, GiopError, HEADER_LEN, MessageType, ServiceContext, ServiceContexts,
    body::{begin_message, body_alignment, message_header},
    request::align_to_body,
};

/// The outcome in a Reply, which determines its body (9.4.3.1, `ReplyStatusType`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u32)]
pub enum ReplyStatus {
    /// The operation's result, then its `out` and `inout` arguments.
    NoException = 0,
    /// A repository id and a user exception of the operation.
    UserException = 1,
    /// The repository id, minor code and completion status of a system exception.
    SystemException = 2,
    /// The reference to use for this request and later ones.
    LocationForward = 3,
    /// As `LocationForward`, and the original reference is invalid from now on (since 1.2).
    LocationForwardPerm = 4,
    /// The addressing disposition with which to send the request again (since 1.2).
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

    #[inline]
    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let value = input.u32()?;
        let statuses = if input.wire().version >= GiopVersion::V1_2 { &Self::ALL[..] } else { &Self::ALL[..4] };
        usize::try_from(value)
            .ok()
            .and_then(|at| statuses.get(at).copied())
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

/// The reply header: the part between the message header and the body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReplyHeader<'m> {
    /// The id of the request that it answers; the client knows its calls by it.
    pub request_id: u32,
    /// The outcome, which determines the body.
    pub status: ReplyStatus,
    /// The service contexts in the order of the message.
    pub service_contexts: ServiceContexts<'m>,
}

impl<'m> ReplyHeader<'m> {
    /// Decodes the header in the version that the decoder carries, and leaves the decoder at the body.
    ///
    /// # Errors
    /// [`GiopError::Body`].
    #[inline]
    pub fn decode(input: &mut Decoder<'m>) -> Result<Self, GiopError> {
        // Errors are converted where they occur, so that the whole header need not be moved.
        if input.wire().version >= GiopVersion::V1_2 {
            let request_id = input.u32().map_err(unreadable)?;
            let status = ReplyStatus::decode(input).map_err(unreadable)?;
            let service_contexts = ServiceContexts::decode(input).map_err(unreadable)?;
            align_to_body(input).map_err(unreadable)?;
            Ok(Self { request_id, status, service_contexts })
        } else {
            let service_contexts = ServiceContexts::decode(input).map_err(unreadable)?;
            let request_id = input.u32().map_err(unreadable)?;
            let status = ReplyStatus::decode(input).map_err(unreadable)?;
            Ok(Self { request_id, status, service_contexts })
        }
    }

    /// Decodes the request id, the status and the number of contexts: as [`decode`](Self::decode), for a
    /// caller that does not read the contexts. They are validated nevertheless.
    ///
    /// # Errors
    /// [`GiopError::Body`].
    // Short, and it has one caller.
    #[inline(always)]
    pub fn skim(input: &mut Decoder<'_>) -> Result<(u32, ReplyStatus, usize), GiopError> {
        if input.wire().version >= GiopVersion::V1_2 {
            let request_id = input.u32().map_err(unreadable)?;
            let status = ReplyStatus::decode(input).map_err(unreadable)?;
            let contexts = ServiceContexts::skip(input).map_err(unreadable)?;
            align_to_body(input).map_err(unreadable)?;
            Ok((request_id, status, contexts))
        } else {
            let contexts = ServiceContexts::skip(input).map_err(unreadable)?;
            let request_id = input.u32().map_err(unreadable)?;
            let status = ReplyStatus::decode(input).map_err(unreadable)?;
            Ok((request_id, status, contexts))
        }
    }

    /// Writes message header and reply header into an empty encoder whose `Wire` gives version and byte
    /// order.
    ///
    /// An encoding error is reported by [`Body::end`].
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

#[cold]
fn unreadable(cause: CdrError) -> GiopError {
    GiopError::Body { message: MessageType::Reply, cause }
}

impl fmt::Display for ReplyHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reply {}: {}, contexts {}", self.request_id, self.status, self.service_contexts)
    }
}

/// Writes everything of a Reply up to its body into an empty encoder whose `Wire` gives version and byte
/// order.
///
/// # Panics
/// If `out` is not empty.
#[inline]
pub fn begin_reply(out: &mut Encoder<'_>, request_id: u32, status: ReplyStatus, contexts: &[ServiceContext]) -> Body {
    if contexts.is_empty() && out.wire().version >= GiopVersion::V1_2 {
        return begin_bare(out, request_id, status);
    }
    ReplyHeader { request_id, status, service_contexts: contexts.into() }.encode(out)
}

/// Writes the headers of a 1.2 Reply without contexts in one copy; they end at the body's alignment.
fn begin_bare(out: &mut Encoder<'_>, request_id: u32, status: ReplyStatus) -> Body {
    const HEADERS_LEN: usize = (HEADER_LEN + 12).next_multiple_of(8);
    assert_eq!(out.position(), 0, "a message begins in an empty encoder");
    let wire = out.wire();
    let in_order = |value: u32| match wire.order {
        ByteOrder::Big => value.to_be_bytes(),
        ByteOrder::Little => value.to_le_bytes(),
    };
    // The last four octets are the number of contexts.
    let mut headers = [0; HEADERS_LEN];
    headers[..HEADER_LEN].copy_from_slice(&message_header(wire, MessageType::Reply));
    headers[HEADER_LEN..HEADER_LEN + 4].copy_from_slice(&in_order(request_id));
    headers[HEADER_LEN + 4..HEADER_LEN + 8].copy_from_slice(&in_order(status as u32));
    out.octets(&headers);
    Body::behind(out, HEADERS_LEN)
}

#[cfg(test)]
mod tests {
    use spandrel_cdr::Wire;

    use super::*;

    #[test]
    fn headers_written_at_once_equal_those_written_field_by_field() {
        for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
            for order in [ByteOrder::Big, ByteOrder::Little] {
                for (status, is_empty) in
                    ReplyStatus::ALL.into_iter().flat_map(|status| [(status, true), (status, false)])
                {
                    let written = |begin: &dyn Fn(&mut Encoder<'_>) -> Body| {
                        let mut out = Encoder::new(Wire::new(order, version));
                        let body = begin(&mut out);
                        if !is_empty {
                            out.octets(&[7; 3]);
                        }
                        body.end(&mut out).expect("the body is valid");
                        out.into_whole()
                    };
                    let (at_once, len) = written(&|out| begin_reply(out, 0x0102_0304, status, &[]));
                    let service_contexts = ServiceContexts::NONE;
                    let header = ReplyHeader { request_id: 0x0102_0304, status, service_contexts };
                    let (one_by_one, expected) = written(&|out| header.encode(out));
                    assert_eq!(at_once[..len], one_by_one[..expected], "{version:?} {order:?} {status}");
                }
            }
        }
    }
}
