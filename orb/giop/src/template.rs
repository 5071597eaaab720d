//! Request headers encoded once per reference and connection version, and completed for each call.

use spandrel_cdr::{ByteOrder, CdrError, Encoder, GiopVersion, Wire};

use crate::{
    Body, HEADER_LEN, MessageType, ResponseFlags, ServiceContext, Target,
    body::{body_alignment, message_header},
    context::encode_contexts,
};

/// Offset of the request id in the prefix: after the header, and before 1.2 after an empty context list.
const ID_AT_1_2: usize = HEADER_LEN;
const ID_AT_1_0: usize = HEADER_LEN + 4;
/// Octets from the request id to the response flags.
const FLAGS_AFTER_ID: usize = 4;

/// The constant part of request headers: message header and object key.
///
/// A call copies the prefix, patches id and flags, and appends the operation's name.
#[derive(Clone, Debug)]
pub struct RequestTemplate {
    wire: Wire,
    /// Message header to object key, with id and flags 0 and, before 1.2, no contexts.
    prefix: Box<[u8]>,
}

impl RequestTemplate {
    /// A template for requests to the object with this key, in this wire form.
    ///
    /// # Panics
    /// If the key is longer than 4 GiB, which no reference can hold.
    #[must_use]
    pub fn new(wire: Wire, object_key: &[u8]) -> Self {
        let Ok(template) = Self::for_target(wire, &Target::Key(object_key)) else {
            panic!("an object key came from a sequence, whose length fits")
        };
        template
    }

    /// A template for a target with any addressing disposition.
    ///
    /// # Errors
    /// A reference that cannot be encoded in CDR; before 1.2, a target without an object key.
    pub fn for_target(wire: Wire, target: &Target<'_>) -> Result<Self, CdrError> {
        let mut out = Encoder::new(wire);
        out.octets(&message_header(wire, MessageType::Request));
        if wire.version < GiopVersion::V1_2 {
            out.u32(0);
        }
        out.u32(0);
        out.octets(&[0; 4]);
        target.encode(&mut out)?;
        Ok(Self { wire, prefix: out.to_vec().into() })
    }

    /// The byte order, version and code sets of the requests.
    #[inline]
    #[must_use]
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Writes everything up to the body. An operation name that cannot be encoded in CDR is reported by
    /// [`Body::end`].
    ///
    /// # Panics
    /// If `out` is not empty.
    #[inline]
    pub fn begin(
        &self,
        out: &mut Encoder<'_>,
        request_id: u32,
        response: ResponseFlags,
        operation: &str,
        contexts: &[ServiceContext],
    ) -> Body {
        assert_eq!(out.position(), 0, "a message begins in an empty encoder");
        let headers = if self.wire.version >= GiopVersion::V1_2 {
            self.put_prefix(out, ID_AT_1_2, request_id, response);
            out.short_str(operation).and_then(|()| encode_contexts(contexts, out))
        } else {
            self.begin_1_0(out, request_id, response, operation, contexts)
        };
        Body::begin(out, body_alignment(self.wire.version), headers)
    }

    /// Encodes the whole header of requests for this operation with these contexts, for reuse. Before GIOP
    /// 1.2 the contexts are omitted.
    ///
    /// # Errors
    /// If the operation's name cannot be encoded in CDR.
    pub fn complete(&self, operation: &str, contexts: &[ServiceContext]) -> Result<CompleteHeader, CdrError> {
        let mut out = Encoder::new(self.wire);
        // Before GIOP 1.2 contexts would move the fields that are patched for each request.
        let contexts = if self.wire.version >= GiopVersion::V1_2 { contexts } else { &[] };
        let body = self.begin(&mut out, 0, ResponseFlags::NONE, operation, contexts);
        let headers_end = body.headers_end();
        let octets = out.to_vec().into();
        body.end(&mut out)?;
        Ok(CompleteHeader { wire: self.wire, octets, headers_end })
    }

    fn begin_1_0(
        &self,
        out: &mut Encoder<'_>,
        request_id: u32,
        response: ResponseFlags,
        operation: &str,
        contexts: &[ServiceContext],
    ) -> Result<(), CdrError> {
        if contexts.is_empty() {
            self.put_prefix(out, ID_AT_1_0, request_id, response);
        } else {
            // The contexts come first, and their length determines the position of the id.
            out.octets(&self.prefix[..HEADER_LEN]);
            encode_contexts(contexts, out)?;
            out.u32(request_id);
            out.u8(response.octet_in(self.wire.version));
            out.octets(&self.prefix[ID_AT_1_0 + FLAGS_AFTER_ID + 1..]);
        }
        out.short_str(operation)?;
        out.len(0)
    }

    #[inline]
    fn put_prefix(&self, out: &mut Encoder<'_>, id_at: usize, request_id: u32, response: ResponseFlags) {
        put(&self.prefix, self.wire, out, id_at, request_id, response);
    }
}

/// Copies the beginning of a message and patches request id and response flags.
#[inline]
fn put<'o>(
    octets: &[u8],
    wire: Wire,
    out: &'o mut Encoder<'_>,
    id_at: usize,
    request_id: u32,
    response: ResponseFlags,
) -> &'o mut [u8] {
    let id = match wire.order {
        ByteOrder::Big => request_id.to_be_bytes(),
        ByteOrder::Little => request_id.to_le_bytes(),
    };
    let room = out.room(octets.len());
    room.copy_from_slice(octets);
    room[id_at..id_at + 4].copy_from_slice(&id);
    room[id_at + FLAGS_AFTER_ID] = response.octet_in(wire.version);
    room
}

/// The whole header of requests for one operation of one object (request caching, paper 003).
///
/// A call copies it and patches three fields: id, flags, and the size once the body is written.
#[derive(Clone, Debug)]
pub struct CompleteHeader {
    wire: Wire,
    /// Octets up to the body.
    octets: Box<[u8]>,
    /// Offset of the end of the headers, before the padding.
    headers_end: usize,
}

impl CompleteHeader {
    /// Writes everything up to the body.
    ///
    /// # Panics
    /// If `out` is not empty.
    #[inline]
    pub fn begin(&self, out: &mut Encoder<'_>, request_id: u32, response: ResponseFlags) -> Body {
        self.put(out, request_id, response);
        Body::behind(out, self.headers_end)
    }

    /// As [`begin`](Self::begin), with `end` in place of the last octets of the last context, which change
    /// with each request.
    ///
    /// # Panics
    /// If `out` is not empty, or the header is shorter than `end`.
    pub fn begin_with_tail(&self, out: &mut Encoder<'_>, request_id: u32, response: ResponseFlags, end: &[u8]) -> Body {
        let header = self.put(out, request_id, response);
        header[..self.headers_end][self.headers_end - end.len()..].copy_from_slice(end);
        Body::behind(out, self.headers_end)
    }

    #[inline]
    fn put<'o>(&self, out: &'o mut Encoder<'_>, request_id: u32, response: ResponseFlags) -> &'o mut [u8] {
        assert_eq!(out.position(), 0, "a message begins in an empty encoder");
        let id_at = if self.wire.version >= GiopVersion::V1_2 { ID_AT_1_2 } else { ID_AT_1_0 };
        put(&self.octets, self.wire, out, id_at, request_id, response)
    }
}
