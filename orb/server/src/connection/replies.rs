//! The sending of replies, also those that a client does not take and those to rejected requests.
//!
//! A thread of the connection's own waits in [`Link::send`](super::link::Link::send). So does any thread if
//! no reactor can serve the transport. All others leave the reply there, and a reactor writes it when the
//! transport takes more.
//!
//! Nothing further is read from a client until it has taken everything. A bidirectional connection is read
//! on, because replies to this side's requests may arrive.
//!
//! A reactor may send the replies of a round [together](crate::reply_batch).
//!
//! A request that is too long or exceeds a memory limit is answered with an exception, and the connection goes
//! on.

use std::io;

use spandrel_cdr::{Encoder, GiopVersion};
use spandrel_giop::{CompletionStatus, ReplyStatus, SystemException, SystemExceptionKind, begin_reply, ids};
use spandrel_ipc::Handle;
use spandrel_orb::statistics::Event;
use spandrel_transport::{Charge, DiscardedRequest, MemoryLimitExceeded, ReadError, RejectReason};

use super::{
    ServerConnection,
    link::{NoMemory, SendProgress},
    pending_requests::no_memory,
    pooled,
    reply_queue::no_room_for_reply,
};
use crate::{reply_batch::BatchedConnection, request_of_thread::Frame, upcall::origin::AnswerKind};

impl ServerConnection {
    /// Sends a reply, or keeps it until the client takes it.
    ///
    /// # Errors
    /// There is no memory to keep it; nothing was sent.
    #[inline]
    pub(super) fn send(&self, answer: &Encoder<'_>, kind: AnswerKind) -> Result<(), SystemException> {
        let may_wait = matches!(kind, AnswerKind::Reply { may_wait: true, .. });
        if may_wait && self.hold_for_others(answer) || self.add_to_batch(answer) {
            return Ok(());
        }
        match self.link.send(answer, kind, || self.is_own_thread() || self.pollable().is_none()) {
            // A peer that is gone is no error here: the reader of its connection notices that.
            Ok(SendProgress::Whole | SendProgress::Abandoned) => Ok(()),
            Ok(SendProgress::InPart) => {
                self.write_later();
                Ok(())
            }
            Err(no_memory) => self.refuse_over_budget(kind, &no_memory),
        }
    }

    /// Adds a reply to the batch that collects those of this thread. False if the reply must be sent by itself.
    #[inline]
    fn add_to_batch(&self, answer: &Encoder<'_>) -> bool {
        let batch = self.resources.pool.reply_batch().filter(|batch| batch.accepts(answer.position()));
        let Some(batch) = batch else { return false };
        if !self.reader_role.word().is_registered() {
            return false; // a thread of its own reads on, which must not wait for others
        }
        let Some(octets) = answer.contiguous() else { return false };
        let begins = self.link.begin_batched(octets.len());
        if begins {
            batch.push(self.shared(), octets);
        }
        begins
    }

    #[cold]
    fn refuse_over_budget(&self, kind: AnswerKind, no_memory: &NoMemory) -> Result<(), SystemException> {
        self.orb.statistics().refused_memory();
        match (kind, no_memory) {
            (AnswerKind::Reply { .. }, NoMemory::Limit(no_room)) => Err(no_room_for_reply(no_room)),
            (AnswerKind::Reply { .. }, NoMemory::OfSystem) => {
                let no_memory = SystemException::new(SystemExceptionKind::NoMemory, 0, CompletionStatus::Yes);
                Err(no_memory.with_detail("the reply could not be kept until the client takes it"))
            }
            (AnswerKind::Refusal, no_memory) => {
                tracing::debug!(peer = %self.link.peer(), reason = %no_memory, "cut off: it does not take its replies");
                self.cut();
                Ok(())
            }
        }
    }

    /// Checks the memory for a further waiting reply, as long as the longest recent one. It exists twice for
    /// a moment: as the servant's result and as the copy that is kept.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub(super) fn check_room_for_reply(&self) -> Result<(), MemoryLimitExceeded> {
        let longest = self.resources.budget.longest_reply();
        Charge::new(&self.intake, longest.saturating_mul(2)).map(drop)
    }

    /// Whether this thread runs a request of this connection and serves no other connection.
    fn is_own_thread(&self) -> bool {
        let here = std::ptr::from_ref(self).addr();
        self.has_own_thread() && Frame::current().is_some_and(|frame| frame.connection == here)
    }

    /// Whether reading pauses because the client does not take its replies.
    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        self.link.is_blocked() && !self.is_bidirectional()
    }

    /// Waits in the reading thread until the client has taken its replies.
    #[cold]
    pub(super) fn await_unblocked(&self) {
        // Progress is not checked meanwhile: the client is not to blame for the pause.
        self.reader.lock().stop();
        self.link.await_unblocked(self.has_own_thread() || self.pollable().is_none());
        self.after_deferred();
    }

    /// Has a reactor write the waiting replies, or leaves them to a thread that will.
    #[cold]
    pub(super) fn write_later(&self) {
        if let Some(adopted) = self.link.adopted() {
            if let Err(exception) = adopted.write_in(self.orb.client_reactor()) {
                tracing::debug!(peer = %self.link.peer(), %exception, "no reactor to write a reply");
                self.cut();
            }
        } else if self.pollable().is_none() {
            // A thread that is writing a reply also writes those behind it. Otherwise the reading thread
            // writes them before it reads on.
        } else if !self.has_own_thread() {
            self.registration.update_output(|| self.link.is_blocked());
        } else if self.link.waits_for_reactor()
            && self.registration.begin_writer()
            && let Err(error) = pooled::write_in(&self.resources.pool, self.shared())
        {
            tracing::debug!(peer = %self.link.peer(), %error, "no reactor to write a reply");
            self.registration.end_writer();
            self.cut();
        }
    }

    /// Writes what the client takes now; called by the reactor. Returns whether no reply waits any more.
    pub(crate) fn write_ready(&self) -> bool {
        let is_done = self.link.write_ready();
        if is_done && !self.has_own_thread() {
            self.registration.update_output(|| self.link.is_blocked());
            self.after_deferred();
        }
        is_done
    }

    /// Called when the reactor no longer writes for this connection, which has a thread of its own.
    pub(crate) fn writer_left(&self) {
        self.registration.end_writer();
        // Checked afterwards: a thread that leaves a reply first queues it and then checks for the writer.
        self.write_later();
        self.after_deferred();
    }

    /// Cuts the connection, whose client may send without end.
    pub(crate) fn cut(&self) {
        self.link.abort();
        self.end_cut();
    }

    /// Has the reading thread find that the transport was closed; if reading has ended, the connection ends here.
    pub(super) fn end_cut(&self) {
        self.registration.announce_shutdown();
        self.after_deferred();
    }

    /// Handles a failure to read a message. If it concerns one request only, that request is answered.
    ///
    /// # Errors
    /// Failures that end the connection.
    pub(super) fn handle_read_failure(&self, error: ReadError) -> Result<(), ReadError> {
        match error {
            ReadError::Discarded(request) => {
                self.end_pipeline();
                self.answer_discarded(&request);
                Ok(())
            }
            other => Err(other),
        }
    }

    #[cold]
    fn answer_discarded(&self, request: &DiscardedRequest) {
        let exception = refusal(&request.reason);
        log_limited!(
            warn, self.resources, "request refused", peer = %self.link.peer(), request_id = request.request_id, %exception, "refused a request"
        );
        self.orb.statistics().note(match request.reason {
            RejectReason::TooLong { .. } => Event::RefusedTooLong,
            RejectReason::MemoryLimit(_) => Event::RefusedMemory,
        });
        if !request.expects_reply {
            return;
        }
        let mut out = Encoder::new(self.link.wire(GiopVersion::V1_2));
        let detail = self.resources.settings.sent_detail(&exception);
        let body = begin_reply(&mut out, request.request_id, ReplyStatus::SystemException, detail.as_slice());
        match exception.encode(&mut out).and_then(|()| body.end(&mut out)) {
            Ok(()) => drop(self.send(&out, AnswerKind::Refusal)),
            Err(error) => tracing::error!(%error, "an exception could not be marshaled"),
        }
    }
}

impl BatchedConnection for ServerConnection {
    fn send_socket(&self) -> Handle<'_> {
        self.link.transport().send_socket().expect("a link with a reply in a batch has a socket")
    }

    fn batched_reply_sent(&self, octets: &[u8], sent: io::Result<usize>) -> bool {
        self.link.end_batched(octets, sent) == SendProgress::InPart
    }

    fn after_batched_reply(&self, waits: bool) {
        if waits {
            self.write_later();
        } else {
            self.after_deferred();
        }
    }
}

/// The exception for a rejected request.
fn refusal(reason: &RejectReason) -> SystemException {
    match reason {
        RejectReason::TooLong { .. } => {
            SystemException::imp_limit(ids::IMP_LIMIT_MESSAGE, CompletionStatus::No).with_detail(|| reason.to_string())
        }
        RejectReason::MemoryLimit(exceeded) => no_memory(exceeded),
    }
}
