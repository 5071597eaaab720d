//! The end of a connection, in the phases of [`ServerPhase`].
//!
//! Reading ends first: the peer's messages end, or one cannot be read. Requests that still run may be
//! answered after that. After the last reply the connection is *finished*, and its last octets are given time
//! to arrive. Then it is *gone*. At shutdown, CloseConnection comes before all that, after the last reply.
//!
//! The sweeps of the monitor (`monitor::client_timeouts`) cut off a peer that does not close its side after
//! CloseConnection.

use std::time::Duration;

use spandrel_connection::{CancelledRequests, ReaderWord, ServerPhase};
use spandrel_giop::{MessageType, Reaction};
use spandrel_orb::{CancelReason, statistics::Event};
use spandrel_sync::time::Deadline;
use spandrel_transport::ReadError;

use super::{ServerConnection, close_state::ClosePhase, late_octets::LINGER};
use crate::monitor::MonitoredConnection;

/// The time for writing a control message that ends the connection.
const CONTROL_TIMEOUT: Duration = Duration::from_millis(200);
/// The time for that in a reactor's thread, which serves other connections as well.
const REACTOR_CONTROL_TIMEOUT: Duration = Duration::from_millis(1);

impl ServerConnection {
    pub(super) fn read_failed(&self, error: &ReadError) {
        self.count_end(error);
        match error {
            ReadError::EndOfFile => tracing::debug!(peer = %self.link.peer(), "closed"),
            ReadError::Giop(reason) => {
                log_limited!(warn, self.resources, "message refused", peer = %self.link.peer(), %reason, "refused a message");
                if reason.reaction() == Reaction::SendMessageError {
                    if let Some(version) = reason.answer_version() {
                        self.link.record_version(version);
                    }
                    self.send_control(MessageType::MessageError);
                }
            }
            ReadError::Rejected(_) => {
                log_limited!(warn, self.resources, "message refused", peer = %self.link.peer(), reason = %error, "refused a message");
                self.orb.statistics().refused_memory();
                // CloseConnection follows the last reply. It means that no request without a reply was acted
                // on.
                self.begin_close();
            }
            ReadError::Unexpected(_) => {
                log_limited!(warn, self.resources, "message refused", peer = %self.link.peer(), reason = %error, "refused a message");
                self.send_control(MessageType::MessageError);
            }
            ReadError::Io(reason) if !self.link.transport().is_established() => {
                log_limited!(
                    warn, self.resources, "handshake", peer = %self.link.peer(), %reason, "a client was rejected in the handshake"
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
        statistics.note(self.close_state.ended_for().unwrap_or_else(|| match error {
            _ if self.reader_role.word().is_closing() => Event::ServerClosedForShutdown,
            _ if !self.link.transport().is_established() => Event::RefusedForSecurity,
            ReadError::EndOfFile => Event::ServerClosedByPeer,
            ReadError::TimedOut => Event::ServerClosedForTimeout,
            _ => Event::ServerClosedForFault,
        }));
    }

    /// Ends the reading. Requests that still run may be answered before the connection ends.
    pub(super) fn end_reading(&self) {
        self.end_pipeline();
        self.end_holding();
        self.close_state.advance(ServerPhase::end_reading);
        self.end_adopted(false);
        // A client that sends nothing more is gone. This cancels the requests that have a cancellation
        // source.
        self.cancel(CancelledRequests::Awaited, self.close_state.end_reason());
        self.finish_when_done();
    }

    /// Continues the closing after a deferred request has ended, or after waiting replies were written or
    /// dropped.
    pub(crate) fn after_deferred(&self) {
        self.finish_when_done();
        if self.reader_role.word().is_closing() {
            self.send_close_when_idle();
        }
    }

    /// Finishes the connection if the reading, the upcalls and the replies have all ended. To be called after
    /// each of them: the last call finds that the others have ended.
    pub(super) fn finish_when_done(&self) {
        let is_done = self.close_state.is_reading_finished() && self.reader_role.handed_over() == 0;
        if is_done && !self.link.is_blocked() && self.pending.deferred() == 0 && !self.pipeline.is_corked() {
            self.finish();
        }
    }

    fn finish(&self) {
        if self.reader_role.word().is_closing() {
            self.send_close_when_idle();
        }
        if !self.close_state.advance(ServerPhase::shut) {
            return;
        }
        self.close_state.advance_to(ClosePhase::CloseSent);
        self.link.close_writer();
        let lingers = match self.registration.get() {
            // The reactor's threads serve other connections, too. The reactor calls again for late octets.
            Some(registration) => !self.late_octets.drop_ready(self.link.transport()) && registration.linger(LINGER),
            None => {
                self.late_octets.drain(self.link.transport());
                false
            }
        };
        if !lingers {
            self.finish_close();
        }
    }

    /// Cuts the transport and removes the connection from the reactor, the monitor and the server.
    pub(super) fn finish_close(&self) {
        if !self.close_state.advance(ServerPhase::close) {
            return;
        }
        self.link.cut();
        self.registration.leave();
        self.resources.upcall_monitor.forget(self);
        if let Some(owner) = self.owner.upgrade() {
            owner.forget(self);
        }
        self.close_state.advance_to(ClosePhase::Ended);
    }

    /// Cancels these requests. A CancelRequest is remembered for upcalls that run and take their tokens later.
    pub(super) fn cancel(&self, cancelled_requests: CancelledRequests, reason: CancelReason) {
        self.pending.cancel(cancelled_requests, reason, || {
            let word = self.reader_role.word();
            // A CancelRequest does not apply to upcalls that begin from now on.
            let has_upcalls = word.is_in_upcall() || self.reader_role.handed_over() != 0;
            has_upcalls.then(|| word.number().next())
        });
    }

    /// Accepts no further request, and sends CloseConnection once the running ones have been answered.
    pub(crate) fn begin_close(&self) {
        let _ = self.reader_role.change_word(|now| Some(now.close()));
        self.end_holding();
        self.send_close_when_idle();
    }

    /// Closes the connection if it is idle, and if no request has begun since the reader word was `unused`. No
    /// reply is due, so CloseConnection is sent at once.
    pub(crate) fn close_idle(&self, unused: ReaderWord, why: Event) -> bool {
        let is_idle = self.has_no_requests() && self.reader_role.change_word(|now| now.close_unused(unused)).is_ok();
        if is_idle {
            self.close_state.set_ended_for(why);
            self.send_close_when_idle();
        }
        is_idle
    }

    /// Whether requests run or are deferred, or replies wait to be written.
    pub(super) fn is_busy(&self) -> bool {
        self.reader_role.word().is_in_upcall()
            || self.pipeline.is_corked()
            || self.reader_role.handed_over() != 0
            || self.link.is_blocked()
            || self.pending.deferred() != 0
    }

    /// Whether the connection has no requests and is not closing.
    pub(crate) fn is_idle(&self) -> bool {
        !self.reader_role.word().is_closing() && self.has_no_requests()
    }

    /// Ends the connection in favour of another client, if it is idle.
    pub(crate) fn evict_idle(&self) -> bool {
        let is_idle = self.close_idle(self.reader_role.word().without_closing(), Event::ServerClosedForLimit);
        if is_idle {
            // The peer's end is not awaited: there is one connection too many. The connection is not reset, so that
            // a client that has just sent a request finds CloseConnection.
            self.link.cut();
            self.end_cut();
        }
        is_idle
    }

    /// Cuts the connection without CloseConnection. `why`: the event for the statistics.
    pub(crate) fn cut_for(&self, why: Event) {
        self.close_state.set_ended_for(why);
        self.cut();
    }

    /// Sends CloseConnection and closes the write side, once no request runs. The peer then closes its side,
    /// and the reading thread finds the end.
    pub(super) fn send_close_when_idle(&self) {
        if !self.is_busy() && self.close_state.advance(ServerPhase::send_close) {
            self.close_state.advance_to(ClosePhase::CloseSent);
            self.send_control(MessageType::CloseConnection);
            self.link.close_writer();
        }
    }

    /// Sends a control message that ends the connection, whether or not the peer takes it.
    pub(super) fn send_control(&self, message_type: MessageType) {
        self.end_holding();
        let is_registered = self.reader_role.word().is_registered();
        self.link.send_bare(message_type, if is_registered { REACTOR_CONTROL_TIMEOUT } else { CONTROL_TIMEOUT });
    }

    /// Waits until the closing has come to this phase. A connection that takes longer is cut.
    pub(crate) fn await_close_phase(&self, close_phase: ClosePhase, deadline: Deadline) {
        if !self.close_state.await_close_phase(close_phase, deadline) {
            // Cut first: a CloseConnection after the last cancelled request would mean that none of them was
            // begun.
            self.cut();
            self.cancel(CancelledRequests::All, CancelReason::ShuttingDown);
        }
    }
}

/// Ends the reading of a connection when it is dropped, also by a panic. To be forgotten if another thread
/// reads on.
pub(super) struct CloseOnDrop<'c>(pub(super) &'c ServerConnection);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end_reading();
    }
}
