//! The body of a message: its beginning after the headers, and the steps at its end.

use spandrel_cdr::{CdrError, Encoder, GiopVersion, Placeholder};

use crate::{HEADER_LEN, MessageHeader, MessageType};

/// Offset of `message_size` in a message header.
const SIZE_AT: usize = 8;

/// A message whose headers are written and whose body is being written.
///
/// Since GIOP 1.2 the body of a Request or Reply is aligned to 8, but an empty body gets no padding
/// (CORBA 3.3 Part 2, 9.4.2.2 and 9.4.3.2).
#[derive(Debug)]
#[must_use = "a message has no size until its body is ended"]
pub struct Body {
    size: Placeholder,
    /// Offset of the end of the headers.
    headers_end: usize,
    /// Offset of the body, after its alignment.
    start: usize,
    /// The error met while the headers were encoded.
    failed: Option<CdrError>,
}

impl Body {
    /// Begins the body here, at the alignment that version and message type require.
    #[inline]
    pub(crate) fn begin(out: &mut Encoder<'_>, alignment: usize, headers: Result<(), CdrError>) -> Self {
        let headers_end = out.position();
        out.align(alignment);
        Self { size: out.placeholder_at(SIZE_AT), headers_end, start: out.position(), failed: headers.err() }
    }

    /// Begins the body here, after headers and padding that are already written.
    #[inline]
    pub(crate) fn behind(out: &Encoder<'_>, headers_end: usize) -> Self {
        Self { size: out.placeholder_at(SIZE_AT), headers_end, start: out.position(), failed: None }
    }

    /// Offset of the end of the headers, before any padding.
    pub(crate) fn headers_end(&self) -> usize {
        self.headers_end
    }

    /// Completes the message: removes the padding before an empty body and writes the message's size.
    ///
    /// # Errors
    /// The error met while the headers were encoded, such as a NUL in an operation's name;
    /// [`CdrError::TooLong`] if the message is longer than 4 GiB.
    #[inline]
    pub fn end(self, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        if let Some(cause) = self.failed {
            return Err(cause);
        }
        if out.position() == self.start && self.start > self.headers_end {
            out.truncate(self.headers_end);
        }
        let len = out.position() - HEADER_LEN;
        out.fill(self.size, u32::try_from(len).map_err(|_| CdrError::TooLong { len })?);
        Ok(())
    }
}

/// Alignment of the body of a Request or Reply.
#[inline]
pub(crate) fn body_alignment(version: GiopVersion) -> usize {
    if version >= GiopVersion::V1_2 { 8 } else { 1 }
}

/// Writes a message header, with size 0 for now, into an empty encoder.
///
/// # Panics
/// If the encoder is not empty: alignment counts from a message's first octet.
pub(crate) fn begin_message(out: &mut Encoder<'_>, message_type: MessageType) {
    assert_eq!(out.position(), 0, "a message begins in an empty encoder");
    out.octets(&message_header(out.wire(), message_type));
}

/// A message header whose size is not known yet.
#[inline]
pub(crate) fn message_header(wire: spandrel_cdr::Wire, message_type: MessageType) -> [u8; HEADER_LEN] {
    MessageHeader { version: wire.version, order: wire.order, more_fragments: false, message_type, size: 0 }.to_octets()
}
