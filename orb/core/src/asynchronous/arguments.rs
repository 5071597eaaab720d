//! Arguments that are marshaled once and sent in each attempt.

use std::ops::Range;

use spandrel_cdr::{CdrError, Encoder, GiopVersion, Wire};
use spandrel_giop::{CompletionStatus, ResponseFlags, ServiceContext, SystemException, ids};
use spandrel_transport::Deadline;

use crate::{client::CallFailure, destination::Destination, scratch};

/// The body of a request.
#[derive(Debug)]
pub(super) struct Arguments {
    octets: Vec<u8>,
    /// The position of the body in the message, modulo 8, on which its padding depends.
    offset: usize,
    wire: Wire,
    /// Whether it has text whose encoding depends on the code sets.
    is_coded: bool,
    /// The ranges that may be divided into fragments before GIOP 1.2 (see [`Encoder::divisible_runs`]).
    divisible: Vec<Range<usize>>,
}

/// A context that shifts the following octets by four, modulo eight.
fn shim() -> ServiceContext {
    ServiceContext { id: ids::CONTEXT_SHIM, data: vec![0; 4] }
}

impl Arguments {
    /// Marshals arguments for a request to this destination.
    pub(super) fn marshal<'a>(
        destination: &Destination,
        operation: &str,
        encode: impl FnOnce(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Self, CdrError> {
        let wire = destination.template.wire();
        let mut out = Encoder::reusing(scratch::take(), wire);
        let mut body = destination.template.begin(&mut out, 0, ResponseFlags::TWO_WAY, operation, &[]);
        if !out.position().is_multiple_of(8) {
            // GIOP 1.2 aligns every body to 8. The object may be forwarded to a server of that version, as services that are known by
            // a URL are.
            out.truncate(0);
            body = destination.template.begin(&mut out, 0, ResponseFlags::TWO_WAY, operation, &[shim()]);
        }
        let start = out.position();
        let written = encode(&mut out);
        let octets = written.is_ok().then(|| copy_from(&out, start));
        let is_coded = out.depends_on_code_sets();
        let divisible = match wire.version {
            GiopVersion::V1_1 => out.divisible_runs().map(|run| run.start - start..run.end - start).collect(),
            _ => Vec::new(),
        };
        let ended = written.and_then(|()| body.end(&mut out));
        scratch::give(out);
        ended?;
        Ok(Self { octets: octets.unwrap_or_default(), offset: start % 8, wire, is_coded, divisible })
    }

    /// Encodes a whole request to this destination, with the contexts of its connection.
    pub(super) fn request<'o>(
        &'o self,
        out: &mut Encoder<'o>,
        destination: &Destination,
        (contexts, deadline): (&[ServiceContext], Option<&Deadline>),
        request_id: u32,
        response: ResponseFlags,
        operation: &str,
    ) -> Result<(), CallFailure> {
        let template = &destination.template;
        let needed = template.wire();
        if self.is_coded && self.wire != needed {
            return Err(CallFailure::new(self.wire_mismatch(needed)));
        }
        let mut body = destination.begin(out, request_id, response, operation, contexts, deadline);
        if out.position() % 8 != self.offset && !self.octets.is_empty() {
            // This helps only before GIOP 1.2, where the body follows the header without padding. The lengths
            // of the object key and the contexts differ between destinations.
            out.truncate(0);
            let mut contexts = contexts.to_vec();
            contexts.push(shim());
            body = template.begin(out, request_id, response, operation, &contexts);
            if out.position() % 8 != self.offset {
                return Err(CallFailure::new(self.wire_mismatch(needed)));
            }
        }
        let mut offset = 0;
        for run in &self.divisible {
            out.lend(&self.octets[offset..run.start]);
            out.lend_divisible(&self.octets[run.clone()]);
            offset = run.end;
        }
        out.lend(&self.octets[offset..]);
        body.end(out).map_err(|error| CallFailure::new(error.into()))
    }

    fn wire_mismatch(&self, needed: Wire) -> SystemException {
        SystemException::no_implement(0, CompletionStatus::No).with_detail(|| format!(
            "the arguments were marshaled for GIOP {} and {:?}, and the object was forwarded to a server of GIOP {} and {:?}",
            self.wire.version, self.wire.char_set, needed.version, needed.char_set
        ))
    }
}

/// Copies the octets from this position on.
fn copy_from(out: &Encoder<'_>, mut from: usize) -> Vec<u8> {
    let mut octets = Vec::with_capacity(out.position() - from);
    for part in &out.parts() {
        let skipped = from.min(part.len());
        octets.extend_from_slice(&part[skipped..]);
        from -= skipped;
    }
    octets
}
