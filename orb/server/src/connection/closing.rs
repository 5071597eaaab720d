//! How a connection ends: nobody reads, nobody runs, nobody is there.
//!
//! Reading ends first, by the end of what the peer sends or because it sent nonsense; requests that still run may answer after that.
//! With the last of them the connection is *finished*: what it said is left time to arrive. Then it is *gone*. At shutdown all that is
//! preceded by a goodbye, which comes after the last answer.

use std::time::Duration;

use spandrel_connection::{CancelledRequests, ReadSide, ReaderWord, ServerPhase};
use spandrel_giop::{MessageType, Reaction};
use spandrel_orb::{CancelReason, statistics::Event};
use spandrel_sync::atomic::Ordering;
use spandrel_transport::{Deadline, ReadError};

use super::ServerConnection;
use crate::{ServingOrb, link::LINGER};

/// How long a peer is waited for to take a message that only tells it of the end.
const COURTESY: Duration = Duration::from_millis(200);
/// The same where others wait for the thread as well.
const BRIEF_COURTESY: Duration = Duration::from_millis(1);

/// How far a connection's end has come.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum ClosePhase {
    No,
    /// CloseConnection was sent, after the last answer.
    Said,
    /// Nobody reads any more.
    Ended,
}

impl ServerConnection {
    pub(super) fn read_failed(&self, error: &ReadError) {
        self.count_end(error);
        match error {
            ReadError::EndOfFile => tracing::debug!(peer = %self.link.peer(), "closed"),
            ReadError::Giop(reason) => {
                log_limited!(warn, self.orb, "message refused", peer = %self.link.peer(), %reason, "refused a message");
                if reason.reaction() == Reaction::SendMessageError {
                    if let Some(version) = reason.answer_version() {
                        self.link.note_version(version);
                    }
                    self.send_control(MessageType::MessageError);
                }
            }
            ReadError::Rejected(_) => {
                log_limited!(warn, self.orb, "message refused", peer = %self.link.peer(), reason = %error, "refused a message");
                self.orb.statistics().refused_memory();
                // Sent after the last reply: it says that no request without a reply was acted on.
                self.begin_close();
            }
            ReadError::Unexpected(_) => {
                log_limited!(warn, self.orb, "message refused", peer = %self.link.peer(), reason = %error, "refused a message");
                self.send_control(MessageType::MessageError);
            }
            ReadError::Io(reason) if !self.link.transport().is_established() => {
                log_limited!(
                    warn, self.orb, "handshake", peer = %self.link.peer(), %reason, "a client was turned away in the handshake"
                );
            }
            other => tracing::debug!(peer = %self.link.peer(), reason = %other, "ended"),
        }
    }

    fn count_end(&self, error: &ReadError) {
        let statistics = self.orb.statistics();
        if matches!(error, ReadError::Giop(_) | ReadError::Unexpected(_)) {
            statistics.server_protocol_error();
        }
        let ended_for = self.ended_for.get().copied();
        statistics.note(ended_for.unwrap_or_else(|| match error {
            _ if self.word().is_closing() => Event::ServerClosedForShutdown,
            _ if !self.link.transport().is_established() => Event::RefusedForSecurity,
            ReadError::EndOfFile => Event::ServerClosedByPeer,
            ReadError::TimedOut => Event::ServerClosedForTimeout,
            _ => Event::ServerClosedForFault,
        }));
    }

    /// Nobody reads any more. Requests that still run may answer before the connection ends.
    pub(super) fn end_reading(&self) {
        self.advance(ServerPhase::end_reading);
        self.end_adopted(false);
        // A client that sends nothing more is gone: those who serve it in their own time need not go on.
        self.cancel(CancelledRequests::Awaited, self.end_reason());
        self.finish_when_done();
    }

    /// Why its requests are given up, once nobody reads any more.
    pub(super) fn end_reason(&self) -> CancelReason {
        match self.is_cut_off.load(Ordering::SeqCst) {
            true => CancelReason::ShuttingDown,
            false => CancelReason::ConnectionLost,
        }
    }

    /// True once nobody reads any more.
    pub(crate) fn is_reading_finished(&self) -> bool {
        self.phase().read_side() != ReadSide::Open
    }

    pub(super) fn one_less_relieved(&self) {
        if self.handed_over.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.finish_when_done();
        }
    }

    /// A deferred call has ended.
    pub(crate) fn after_deferred(&self) {
        self.finish_when_done();
        if self.word().is_closing() {
            self.send_close_when_idle();
        }
    }

    /// Whoever comes last of those that read, run and answer finds that the others have ended.
    fn finish_when_done(&self) {
        let is_done = self.is_reading_finished() && self.handed_over.load(Ordering::SeqCst) == 0;
        if is_done && !self.link.is_blocked() && self.requests.lock().deferred() == 0 {
            self.finish();
        }
    }

    fn finish(&self) {
        if self.word().is_closing() {
            self.send_close_when_idle();
        }
        if !self.advance(ServerPhase::shut) {
            return;
        }
        self.link.close_writer();
        let lingers = match self.registration() {
            // The reactor's threads have others to serve: it calls again for what still comes.
            Some(registration) => !self.link.drop_ready() && registration.linger(LINGER),
            None => {
                self.link.drain();
                false
            }
        };
        if !lingers {
            self.finish_close();
        }
    }

    /// The end of the end.
    pub(super) fn finish_close(&self) {
        if !self.advance(ServerPhase::close) {
            return;
        }
        self.link.cut();
        self.unregister();
        self.upcall_monitor.forget(self);
        self.orb.server().forget(self);
        self.advance_to(ClosePhase::Ended);
    }

    /// Accepts no further request; says goodbye once those that run have been answered.
    pub(crate) fn begin_close(&self) {
        let _ = self.change_word(|now| Some(now.close()));
        self.send_close_when_idle();
    }

    /// Accepts no further request, unless one has come since it was this turn's. Nobody asks for anything, and so the goodbye is
    /// said at once.
    pub(crate) fn close_idle(&self, turn: u64, why: Event) -> bool {
        let is_idle =
            self.has_no_requests() && self.change_word(|now| now.close_unused(ReaderWord::from_bits(turn))).is_ok();
        if is_idle {
            let _ = self.ended_for.set(why);
            self.send_close_when_idle();
        }
        is_idle
    }

    /// Whether nothing is asked of it, and it has not been told to end.
    pub(crate) fn is_idle(&self) -> bool {
        !self.word().is_closing() && self.has_no_requests()
    }

    /// Ends it in favour of another client, if nothing is asked of it.
    pub(crate) fn evict_idle(&self) -> bool {
        let is_idle = self.close_idle(self.word().without_closing().bits(), Event::ServerClosedForLimit);
        if is_idle {
            // It is not waited for: there is one too many.
            self.cut();
        }
        is_idle
    }

    /// Ends it without a word.
    pub(crate) fn cut_for(&self, why: Event) {
        let _ = self.ended_for.set(why);
        self.cut();
    }

    /// The client was told that the connection ends.
    pub(crate) fn is_close_sent(&self) -> bool {
        *self.close_phase.lock() >= ClosePhase::Said
    }

    /// CloseConnection and half-close: the peer sees it, closes, and whoever reads here sees the end.
    pub(super) fn send_close_when_idle(&self) {
        if !self.is_busy() && self.advance(ServerPhase::send_close) {
            self.advance_to(ClosePhase::Said);
            self.send_control(MessageType::CloseConnection);
            self.link.close_writer();
        }
    }

    /// Says something that ends the connection, whether or not the peer hears it.
    pub(super) fn send_control(&self, message_type: MessageType) {
        let is_seated = self.word().is_registered();
        self.link.send_bare(message_type, if is_seated { BRIEF_COURTESY } else { COURTESY });
    }

    /// How far the end has come.
    pub(super) fn phase(&self) -> ServerPhase {
        ServerPhase::from_bits(self.phase.load(Ordering::SeqCst))
    }

    /// Goes on to another phase; false if there is no such transition from the present one.
    fn advance(&self, transition: fn(ServerPhase) -> Option<ServerPhase>) -> bool {
        let change = |now| transition(ServerPhase::from_bits(now)).map(ServerPhase::bits);
        self.phase.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change).is_ok()
    }

    /// Wakes the threads that wait for this stage.
    fn advance_to(&self, stage: ClosePhase) {
        let mut close_phase = self.close_phase.lock();
        *close_phase = stage.max(*close_phase);
        self.parting.notify_all();
    }

    /// Waits until the farewell has come so far; a connection that takes longer is cut.
    pub(crate) fn await_close_phase(&self, stage: ClosePhase, deadline: &Deadline) {
        let mut close_phase = self.close_phase.lock();
        while *close_phase < stage {
            let remaining = deadline.remaining();
            if remaining.is_zero() {
                drop(close_phase);
                // Cut first: the end of what is cancelled would have the client told that nothing was begun.
                self.is_cut_off.store(true, Ordering::SeqCst);
                self.cut();
                self.cancel(CancelledRequests::All, CancelReason::ShuttingDown);
                return;
            }
            self.parting.wait_for(&mut close_phase, remaining);
        }
    }
}

/// Whoever reads ends the connection when it stops reading, also by a panic, unless another reads on.
pub(super) struct CloseOnDrop<'c>(pub(super) &'c ServerConnection);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end_reading();
    }
}
