//! Callers in the ORB of the object that they call: no socket, and no other thread.
//!
//! A request is marshaled, copied to where a message from a connection would lie, and run in the calling thread like one; so all that holds for
//! requests from elsewhere holds for these. Only a servant that answers later makes the caller wait for another thread.
//!
//! What must not wait for the servant goes through a socket nevertheless, since somebody else has to run it: one-ways, and asynchronous calls. So
//! that a two-way does not overtake the one-ways that its thread has sent before, the first one after them takes the same way: it
//! is then run after them, as one from elsewhere would be.

#[cfg(all(test, shuttle))]
mod models;
mod reply;

use std::{sync::OnceLock, time::Duration};

use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
use spandrel_giop::{
    CompletionStatus, LocateRequestHeader, Message, MessageType, RequestHeader, SystemException, minor,
};
use spandrel_orb::{
    Orb,
    cancellation::CancellationSource,
    client::{CallFailure, Reply},
    collocated::{deliver, malformed},
    deadlines::{InheritedDeadline, RequestDeadline},
};
use spandrel_sync::{
    Arc, Condition, Mutex, Weak,
    atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Instant,
};
use spandrel_transport::Deadline;

use super::{
    current, frame,
    incoming_request::{IncomingRequest, RequestContext},
    origin::{AnswerKind, RequestKey, RequestOrigin},
    upcall,
};
use crate::ServingOrb;
use reply::CollocatedReply;

/// The calls within one ORB.
#[derive(Debug)]
pub(crate) struct CollocatedCalls {
    /// Calls that run or wait.
    running: AtomicUsize,
    /// The ORB ends as soon as none does.
    is_closing: AtomicBool,
    /// Those that wait for another thread; nothing once nobody is waited for any more.
    waiting: Mutex<Option<Vec<Weak<CollocatedReply>>>>,
    /// Notified when the last call of a closing ORB has ended.
    ended: Condition,
}

/// The time of one call within an ORB, which does not end before.
#[derive(Debug)]
pub(crate) struct CollocatedCallGuard<'o>(&'o CollocatedCalls);

impl Default for CollocatedCalls {
    fn default() -> Self {
        Self {
            running: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
            waiting: Mutex::new(Some(Vec::new())),
            ended: Condition::new(),
        }
    }
}

impl CollocatedCalls {
    /// Begins a call.
    ///
    /// # Errors
    /// BAD_INV_ORDER if the ORB has been shut down.
    #[inline]
    pub(crate) fn enter<'o>(&'o self, orb: &Orb) -> Result<CollocatedCallGuard<'o>, SystemException> {
        self.running.fetch_add(1, Ordering::SeqCst);
        let running = CollocatedCallGuard(self);
        // Looked at afterwards: who closes counts the calls after it has said so.
        orb.check_running()?;
        Ok(running)
    }

    /// Lets the calls end, for so long; those that still wait then are given up.
    pub(crate) fn shut_down(&self, client_timeouts: Duration) {
        self.is_closing.store(true, Ordering::SeqCst);
        let deadline = Deadline::after(client_timeouts);
        let mut waiting = self.waiting.lock();
        while self.running.load(Ordering::SeqCst) != 0 {
            let remaining = deadline.remaining();
            if remaining.is_zero() {
                break;
            }
            self.ended.wait_for(&mut waiting, remaining);
        }
        let left = waiting.take();
        drop(waiting);
        for awaited in left.iter().flatten().filter_map(Weak::upgrade) {
            awaited.give_up(Some(cut_off()));
        }
    }

    fn note_waiting(&self, awaited: &Arc<CollocatedReply>) {
        let mut waiting = self.waiting.lock();
        if let Some(waiting) = &mut *waiting {
            waiting.retain(|known| known.strong_count() > 0);
            waiting.push(Arc::downgrade(awaited));
            return;
        }
        drop(waiting);
        awaited.give_up(Some(cut_off()));
    }
}

impl Drop for CollocatedCallGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::SeqCst) == 1 && self.0.is_closing.load(Ordering::SeqCst) {
            // Under the lock, so that whoever closes either sees the count or is woken.
            let _waiting = self.0.waiting.lock();
            self.0.ended.notify_all();
        }
    }
}

/// Asks a question and waits for the answer. `wire`: how it was written, and the answer will be.
pub(crate) fn ask(
    orb: &Orb,
    question: &Message,
    wire: Wire,
    deadline: Option<&Deadline>,
) -> Result<Reply, CallFailure> {
    let _running = orb.collocated_calls().enter(orb).map_err(CallFailure::new)?;
    let caller = CollocatedCaller { orb, wire, answer: Mutex::new(None), awaited: OnceLock::new() };
    let due = deadline.and_then(|deadline| due(orb, deadline));
    caller.run(question, due)?;
    let answer = match (caller.answer.into_inner(), caller.awaited.into_inner()) {
        (Some(_), _) if deadline.is_some_and(|deadline| deadline.remaining().is_zero()) => {
            return Err(CallFailure::new(too_late()));
        }
        (Some(answer), _) => answer,
        (None, Some(awaited)) => awaited.wait(deadline)?,
        (None, None) => return Err(CallFailure::new(unanswered())),
    };
    Reply::parse(answer).map_err(|error| CallFailure::new(malformed(&error)))
}

/// Until when a call of this thread is worth anything.
#[cold]
fn due(orb: &Orb, deadline: &Deadline) -> Option<RequestDeadline> {
    frame::note_calling_orb(orb);
    deadline.limits_reply().then_some(RequestDeadline { answer: Some(deadline.end()), ..RequestDeadline::default() })
}

/// The time in which a servant of this ORB is called directly by one who has so much time.
#[cold]
pub(crate) fn limit(orb: &Orb, deadline: &Deadline) -> Option<InheritedDeadline> {
    due(orb, deadline)?.answer.map(InheritedDeadline::enter)
}

/// A caller whose thread runs the servant.
#[derive(Debug)]
struct CollocatedCaller<'o> {
    orb: &'o Orb,
    wire: Wire,
    answer: Mutex<Option<Message>>,
    /// Set if the answer may come from another thread.
    awaited: OnceLock<Arc<CollocatedReply>>,
}

impl CollocatedCaller<'_> {
    fn run(&self, question: &Message, due: Option<RequestDeadline>) -> Result<(), CallFailure> {
        let mut arguments = self.decoder(question);
        if question.header.message_type == MessageType::LocateRequest {
            let header =
                LocateRequestHeader::decode(&mut arguments).map_err(|error| CallFailure::new(malformed(&error)))?;
            upcall::handle_locate_request(self, &header, question.header.version);
            return Ok(());
        }
        let header = RequestHeader::decode(&mut arguments).map_err(|error| CallFailure::new(malformed(&error)))?;
        let is_answered = AtomicBool::new(false);
        let request_context = RequestContext::of(due);
        let request = IncomingRequest {
            request_context: request_context.as_ref(),
            ..IncomingRequest::new(self, question, &header, &is_answered)
        };
        upcall::run(&request, &mut arguments);
        Ok(())
    }
}

impl RequestOrigin for CollocatedCaller<'_> {
    fn orb(&self) -> &Orb {
        self.orb
    }

    fn name(&self) -> &str {
        "this ORB"
    }

    fn wire(&self, version: GiopVersion) -> Wire {
        Wire { version, ..self.wire }
    }

    fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m> {
        read(self.orb, self.wire, message)
    }

    fn send(&self, answer: &Encoder<'_>, _kind: AnswerKind) -> Result<(), SystemException> {
        *self.answer.lock() = deliver(answer).ok();
        Ok(())
    }

    fn shared(&self) -> Arc<dyn RequestOrigin> {
        Arc::<CollocatedReply>::clone(self.awaited.get_or_init(|| {
            let awaited = CollocatedReply::new(self.orb.clone(), self.wire);
            self.orb.collocated_calls().note_waiting(&awaited);
            awaited
        }))
    }

    /// What cancels the request that the caller serves, if it serves one.
    fn cancellation_source(&self, _request_key: RequestKey, _deadline: Option<Instant>) -> Arc<CancellationSource> {
        current::cancellation()
    }

    fn enter_deferred(
        &self,
        request_key: RequestKey,
        octets: usize,
        cancellation: &Arc<CancellationSource>,
    ) -> Result<u64, SystemException> {
        self.shared().enter_deferred(request_key, octets, cancellation)
    }

    fn leave_deferred(&self, key: u64) {
        self.shared().leave_deferred(key);
    }
}

fn read<'m>(orb: &'m Orb, wire: Wire, message: &'m Message) -> Decoder<'m> {
    message.decoder(wire.limits).with_binder(orb).with_code_sets(wire.char_set, wire.wchar_set)
}

/// TIMEOUT for an answer that came too late, or not yet.
pub(crate) fn too_late() -> SystemException {
    SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe)
        .with_detail("no reply within the time-out")
}

/// COMM_FAILURE for an answer that the ORB's end does not wait for.
fn cut_off() -> SystemException {
    SystemException::comm_failure(0, CompletionStatus::Maybe)
        .with_detail("the ORB has ended, and the servant has not answered")
}

fn unanswered() -> SystemException {
    SystemException::internal(0, CompletionStatus::Maybe).with_detail("the answer could not be marshaled")
}
