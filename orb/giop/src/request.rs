//! The header of a Request (CORBA 3.3 Part 2, 9.4.2.1).
//!
//! 1.0 and 1.1: `contexts | ulong request_id | boolean response_expected | (1.1: octet reserved[3]) | key |
//! operation | sequence<octet> requesting_principal` 1.2: `ulong request_id | octet response_flags | octet
//! reserved[3] | target | operation | contexts`, and the body, if there is one, aligned to 8.

use std::{borrow::Cow, fmt, ops::Range};

use spandrel_cdr::{CdrError, Decoder, Encoder, GiopVersion};

use crate::{
    Body, GiopError, MessageType, ServiceContexts, Target,
    body::{begin_message, body_alignment},
};

/// The response that the client expects. Before GIOP 1.2 the header can only tell whether one is expected.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ResponseFlags(u8);

impl ResponseFlags {
    /// No response: a one-way with sync scope NONE or WITH_TRANSPORT.
    pub const NONE: Self = Self(0);
    /// A reply before the servant is called: a one-way with sync scope WITH_SERVER.
    pub const WITH_SERVER: Self = Self(1);
    /// A reply after the servant was called: a one-way with sync scope WITH_TARGET.
    pub const WITH_TARGET: Self = Self(3);
    /// A reply with the results of a two-way operation.
    pub const TWO_WAY: Self = Self::WITH_TARGET;

    /// Whether the client waits for a reply.
    #[inline]
    #[must_use]
    pub fn is_expected(self) -> bool {
        self.0 & 1 != 0
    }

    /// Takes the two bits with a meaning in GIOP 1.2.
    #[inline]
    #[must_use]
    pub fn from_octet(octet: u8) -> Self {
        Self(octet & 3)
    }

    /// The octet that a GIOP 1.2 header has for it (`response_flags`).
    #[inline]
    #[must_use]
    pub fn to_octet(self) -> u8 {
        self.0
    }

    /// The octet in this version: a boolean before 1.2.
    #[inline]
    pub(crate) fn octet_in(self, version: GiopVersion) -> u8 {
        if version >= GiopVersion::V1_2 { self.0 } else { self.0 & 1 }
    }
}

impl fmt::Display for ResponseFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::NONE => "no response",
            Self::WITH_SERVER => "response from the server",
            Self::WITH_TARGET => "response from the target",
            _ => "response flags 2",
        })
    }
}

/// The request header: the part between the message header and the body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestHeader<'m> {
    /// The id for the reply; unique on its connection until the reply arrives.
    pub request_id: u32,
    /// The response that the client expects.
    pub response: ResponseFlags,
    /// The object, by its key or by a profile.
    pub target: Target<'m>,
    /// The operation's IDL name; for an attribute `_get_` or `_set_` with its name.
    pub operation: Cow<'m, str>,
    /// The service contexts in the order of the message.
    pub service_contexts: ServiceContexts<'m>,
}

impl<'m> RequestHeader<'m> {
    /// Decodes the header in the version that the decoder carries, and leaves the decoder at the body.
    ///
    /// Nothing is allocated if the target is a key and the operation's name is ASCII.
    ///
    /// # Errors
    /// [`GiopError::Body`].
    pub fn decode(input: &mut Decoder<'m>) -> Result<Self, GiopError> {
        if input.wire().version >= GiopVersion::V1_2 { Self::read_1_2(input) } else { Self::read_1_0(input) }
    }

    // Errors are converted where they occur, so that the whole header need not be moved.
    #[inline]
    fn read_1_2(input: &mut Decoder<'m>) -> Result<Self, GiopError> {
        let request_id = input.u32().map_err(unreadable)?;
        let response = ResponseFlags::from_octet(input.u8().map_err(unreadable)?);
        input.take(3).map_err(unreadable)?;
        let target = Target::decode(input).map_err(unreadable)?;
        let operation = input.str().map_err(unreadable)?;
        let service_contexts = ServiceContexts::decode(input).map_err(unreadable)?;
        align_to_body(input).map_err(unreadable)?;
        Ok(Self { request_id, response, target, operation, service_contexts })
    }

    fn read_1_0(input: &mut Decoder<'m>) -> Result<Self, GiopError> {
        let service_contexts = ServiceContexts::decode(input).map_err(unreadable)?;
        let request_id = input.u32().map_err(unreadable)?;
        // A boolean; some clients write the flags of later versions, or set every bit.
        let is_expected = input.u8().map_err(unreadable)? != 0;
        let response = if is_expected { ResponseFlags::TWO_WAY } else { ResponseFlags::NONE };
        if input.wire().version >= GiopVersion::V1_1 {
            input.take(3).map_err(unreadable)?;
        }
        let target = Target::decode(input).map_err(unreadable)?;
        let operation = input.str().map_err(unreadable)?;
        // The requesting principal is obsolete and ignored.
        input.octet_sequence().map_err(unreadable)?;
        Ok(Self { request_id, response, target, operation, service_contexts })
    }

    /// Writes message header and request header into an empty encoder whose `Wire` gives version and byte
    /// order.
    ///
    /// For requests that are sent often, [`crate::RequestTemplate`] does the same in a few copies.
    ///
    /// # Errors
    /// A name that cannot be encoded in CDR; before 1.2, a target without an object key.
    pub fn encode(&self, out: &mut Encoder<'_>) -> Result<Body, CdrError> {
        begin_message(out, MessageType::Request);
        let version = out.wire().version;
        if version >= GiopVersion::V1_2 {
            out.u32(self.request_id);
            out.octets(&[self.response.octet_in(version), 0, 0, 0]);
            self.target.encode(out)?;
            out.short_str(&self.operation)?;
            self.service_contexts.encode(out)?;
        } else {
            self.service_contexts.encode(out)?;
            out.u32(self.request_id);
            // In 1.1 three reserved octets, in 1.0 the alignment of the key's length: zeros in both.
            out.octets(&[self.response.octet_in(version), 0, 0, 0]);
            self.target.encode(out)?;
            out.short_str(&self.operation)?;
            out.len(0)?;
        }
        Ok(Body::begin(out, body_alignment(version), Ok(())))
    }
}

/// The positions of a request header in its message, from which the header is made again without decoding.
#[derive(Clone, Debug)]
pub struct HeaderPositions {
    request_id: u32,
    response: ResponseFlags,
    object_key: Range<usize>,
    operation: Range<usize>,
}

impl HeaderPositions {
    /// The positions of a header that was decoded from these octets. `None` if it has service contexts, or a target or a
    /// name that is not as it was sent.
    #[must_use]
    pub fn of(header: &RequestHeader<'_>, octets: &[u8]) -> Option<Self> {
        let RequestHeader { request_id, response, target: Target::Key(key), operation, service_contexts } = header
        else {
            return None;
        };
        let Cow::Borrowed(operation) = operation else { return None };
        if !service_contexts.is_empty() {
            return None;
        }
        let range = |part: &[u8]| {
            let start = part.as_ptr().addr().checked_sub(octets.as_ptr().addr())?;
            Some(start..start + part.len()).filter(|range| range.end <= octets.len())
        };
        let (object_key, operation) = (range(key)?, range(operation.as_bytes())?);
        Some(Self { request_id: *request_id, response: *response, object_key, operation })
    }

    /// The header, in the octets of its message or in a copy of them.
    #[inline]
    #[must_use]
    pub fn header<'m>(&self, octets: &'m [u8]) -> Option<RequestHeader<'m>> {
        Some(RequestHeader {
            request_id: self.request_id,
            response: self.response,
            target: Target::Key(octets.get(self.object_key.clone())?),
            operation: Cow::Borrowed(str::from_utf8(octets.get(self.operation.clone())?).ok()?),
            service_contexts: ServiceContexts::NONE,
        })
    }
}

/// Skips the padding before a body; an empty body has none.
#[inline]
pub(crate) fn align_to_body(input: &mut Decoder<'_>) -> Result<(), CdrError> {
    if input.remaining() > 0 { input.align(body_alignment(input.wire().version)) } else { Ok(()) }
}

#[cold]
fn unreadable(cause: CdrError) -> GiopError {
    GiopError::Body { message: MessageType::Request, cause }
}

impl fmt::Display for RequestHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request_id, response, target, operation, service_contexts } = self;
        write!(f, "request {request_id}: {operation:?} on {target}, {response}, contexts {service_contexts}")
    }
}
