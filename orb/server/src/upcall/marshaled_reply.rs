//! Replies that are marshaled whole before they are sent.
//!
//! The memory of the servant is not needed any more once its reply is marshaled. So the use of the servant
//! can end, and interceptors can add contexts, before the reply is sent. [`dispatch`](super::dispatch) has
//! the order.

use std::ops::Range;

use spandrel_cdr::{CdrError, Encoder, GiopVersion, Wire};
use spandrel_giop::{ReplyStatus, ResponseFlags, ServiceContext, begin_reply};
use spandrel_sync::Mutex;

/// The place for a reply that is not sent before its servant has returned.
#[derive(Debug, Default)]
pub(crate) struct ReplySlot(Mutex<Option<MarshaledReply>>);

impl ReplySlot {
    pub(crate) fn set(&self, reply: MarshaledReply) {
        *self.0.lock() = Some(reply);
    }

    pub(crate) fn take(&self) -> Option<MarshaledReply> {
        self.0.lock().take()
    }
}

/// A reply in memory of its own.
#[derive(Debug)]
pub(crate) struct MarshaledReply {
    pub(crate) status: ReplyStatus,
    /// The response that the client still expected: a one-way WITH_SERVER has been answered before.
    pub(crate) response: ResponseFlags,
    /// The contexts besides those of interceptors.
    contexts: Vec<ServiceContext>,
    pub(crate) body: MarshaledBody,
    /// The body as it is four octets further on. Contexts move a body by a multiple of four octets; before
    /// GIOP 1.2, its alignment changes with that.
    moved: Option<MarshaledBody>,
}

/// A body, and octets before it that give it its alignment.
#[derive(Debug)]
pub(crate) struct MarshaledBody {
    pub(crate) octets: Vec<u8>,
    pub(crate) start: usize,
    /// The ranges that may be divided into fragments (see [`Encoder::divisible_runs`]).
    runs: Vec<Range<usize>>,
}

impl MarshaledReply {
    /// Marshals the reply to a request with this id. `response`: what the client still expects. `takes_contexts`: interceptors may add contexts.
    ///
    /// # Errors
    /// The value that cannot be marshaled.
    pub(crate) fn new<'a>(
        wire: Wire,
        request_id: u32,
        response: ResponseFlags,
        status: ReplyStatus,
        contexts: &[ServiceContext],
        takes_contexts: bool,
        encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Self, CdrError> {
        let mut out = Encoder::new(wire);
        let message = begin_reply(&mut out, request_id, status, contexts);
        let start = out.position();
        encode(&mut out).and_then(|()| message.end(&mut out))?;
        let may_move = takes_contexts && wire.version < GiopVersion::V1_2;
        let moved = may_move.then(|| {
            let mut out = Encoder::new(wire);
            out.octets(&[0; 8][..(start + 4) % 8]);
            let start = out.position();
            encode(&mut out).map(|()| MarshaledBody::new(out, start))
        });
        let body = MarshaledBody::new(out, start);
        Ok(Self { status, response, contexts: contexts.to_vec(), body, moved: moved.transpose()? })
    }

    /// Writes the reply with further contexts.
    pub(crate) fn write<'s>(
        &'s self,
        request_id: u32,
        added: &[ServiceContext],
        out: &mut Encoder<'s>,
    ) -> Result<(), CdrError> {
        let contexts = [&self.contexts, added].concat();
        let message = begin_reply(out, request_id, self.status, &contexts);
        let is_moved = out.position() % 8 != self.body.start % 8;
        self.moved.as_ref().filter(|_| is_moved).unwrap_or(&self.body).append_to(out);
        message.end(out)
    }
}

impl MarshaledBody {
    fn new(out: Encoder<'_>, start: usize) -> Self {
        let runs = out.divisible_runs().collect();
        let (mut octets, len) = out.into_whole();
        octets.truncate(len);
        // An empty body has no padding before it.
        Self { octets, start: start.min(len), runs }
    }

    fn append_to<'s>(&'s self, out: &mut Encoder<'s>) {
        let mut from = self.start;
        for run in &self.runs {
            out.lend(&self.octets[from..run.start]);
            out.lend_divisible(&self.octets[run.clone()]);
            from = run.end;
        }
        out.lend(&self.octets[from..]);
    }
}
