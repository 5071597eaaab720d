//! Arguments that are marshaled once, and sent as often as it takes.

use std::ops::Range;

use spandrel_cdr::{CdrError, Encoder, GiopVersion, Wire};
use spandrel_giop::{CompletionStatus, ResponseFlags, ServiceContext, SystemException, ids};
use spandrel_transport::Deadline;

use crate::{client::CallFailure, destination::Destination, scratch};

/// The body of a request.
#[derive(Debug)]
pub(super) struct Arguments {
    octets: Vec<u8>,
    /// Its position in the message, modulo 8: padding inside of it depends on that.
    offset: usize,
    wire: Wire,
    /// Some text in it would look otherwise in other code sets.
    is_coded: bool,
    /// Where it may be divided before GIOP 1.2 (see [`Encoder::divisible_runs`]).
    divisible: Vec<Range<usize>>,
}

/// Shifts what follows it by four octets, modulo eight.
fn shim() -> ServiceContext {
    ServiceContext { id: ids::CONTEXT_SHIM, data: vec![0; 4] }
}

impl Arguments {
    /// Marshals arguments as they will lie in a request to this destination.
    pub(super) fn marshal<'a>(
        destination: &Destination,
        operation: &str,
        encode: impl FnOnce(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Self, CdrError> {
        let wire = destination.template.wire();
        let mut out = Encoder::reusing(scratch::take(), wire);
        let body = destination.template.begin(&mut out, 0, ResponseFlags::TWO_WAY, operation, &[]);
        let start = out.position();
        let written = encode(&mut out);
        let octets = written.is_ok().then(|| copy_from(&out, start));
        let is_coded = out.depends_on_code_sets();
        let divisible = match wire.version {
            GiopVersion::V1_1 => out.divisible_runs().map(|run| run.start - start..run.end - start).collect(),
            _ => Vec::new(),
        };
        let ended = written.and_then(|()| body.end(&mut out));
        scratch::give(out.into_scratch());
        ended?;
        Ok(Self { octets: octets.unwrap_or_default(), offset: start % 8, wire, is_coded, divisible })
    }

    /// A whole request to this destination, with the contexts that it needs on its connection.
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
            // Only before GIOP 1.2 does this help: there the body follows the header without a gap, and the object's key or the
            // contexts are of another length.
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

/// A copy of all octets but the first.
fn copy_from(out: &Encoder<'_>, mut from: usize) -> Vec<u8> {
    let mut octets = Vec::with_capacity(out.position() - from);
    for part in &out.parts() {
        let skipped = from.min(part.len());
        octets.extend_from_slice(&part[skipped..]);
        from -= skipped;
    }
    octets
}
