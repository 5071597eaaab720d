//! The end of a connection: its calls fail, and the peer is sent the reason. A failed write may be its cause.
//! Also the end of a call before its reply: CancelRequest (Part 2, 9.4.4).

use std::io;

use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};
use spandrel_connection::{EndCause, Incoming, Role, WriteFailure, Written, classify};
use spandrel_giop::{
    CancelRequest, CompletionStatus, GiopError, MessageHeader, Reaction, SystemException, SystemExceptionKind,
    bare_message, ids, minor,
};
use spandrel_sync::atomic::Ordering;
use spandrel_transport::{Deadline, ReadError, is_timeout};

use super::{ADVISORY_TIMEOUT, CallFailure, ClientConnection, ConnectionEnd, Reply, ReplyWaiter, RequestLoss};
use crate::diagnostics::statistics::Event;

impl ClientConnection {
    /// Closes the connection: all pending calls fail for this reason. Returns the failure of a call that was
    /// written whole.
    pub(super) fn close(&self, end: ConnectionEnd) -> CallFailure {
        let failure = end.failure(Written::Whole);
        tracing::debug!(peer = %self.peer, reason = %failure.exception, "a connection has ended");
        self.count_end(if failure.may_repeat() { Event::ClientClosedByPeer } else { Event::ClientClosedForFault });
        self.retire();
        self.close_transport();
        let mut pending = self.pending.lock();
        let tasks = pending.half.end(end, ReplyWaiter::is_thread);
        pending.half.waiters().filter_map(ReplyWaiter::wake).for_each(|wake| wake.notify_one());
        drop(pending);
        if let Some(side) = self.async_side() {
            for (waiter, failure) in tasks {
                if let Some(receiver) = waiter.task() {
                    receiver.complete(Err(failure));
                }
            }
            side.end_callbacks(self);
        }
        failure
    }

    /// Counts the connection as closed for this reason, unless its end was counted before.
    pub(crate) fn count_end(&self, reason: Event) {
        if !self.is_end_counted.swap(true, Ordering::Relaxed) {
            self.statistics.note(reason);
        }
    }

    /// Closes the transport, unless the server side reads it.
    pub(super) fn close_transport(&self) {
        if !self.is_adopted() {
            self.transport.close();
        }
    }

    /// Closes a connection without users in an orderly way: the peer is sent CloseConnection (CORBA 3.3 Part
    /// 2, 9.4.7).
    pub(crate) fn close_orderly(&self) {
        if let Some(side) = self.async_side() {
            side.flush_before_close(self);
        }
        let Some(mut writer) = self.writer.try_lock() else { return };
        if self.is_retired() {
            return;
        }
        let waits = writer.has_unsent() || self.has_queued();
        let Some(close_connection) = writer.half.close(waits) else { return };
        self.retire();
        let close_connection = bare_message(GiopVersion::V1_2, ByteOrder::NATIVE, close_connection);
        // If it is lost, the end of the stream has the same meaning.
        let _ = self
            .transport
            .set_send_timeout(Some(ADVISORY_TIMEOUT))
            .and_then(|()| self.transport.send(&close_connection));
    }

    #[cold]
    pub(super) fn unreadable(&self, error: GiopError, version: GiopVersion) -> ConnectionEnd {
        self.statistics.client_protocol_error();
        self.send_message_error(version);
        let exception = SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, CompletionStatus::Maybe)
            .with_detail(|| format!("{} sent a reply that cannot be read", self.peer))
            .with_source(error);
        ConnectionEnd { cause: EndCause::Failed, exception }
    }

    /// Returns the end that a message other than a reply or an accepted request brings.
    #[cold]
    pub(super) fn end_for_message(&self, header: &MessageHeader) -> ConnectionEnd {
        match classify(header, Role::Client) {
            Ok(Incoming::CloseConnection) => self.closed_by_peer(),
            Ok(Incoming::MessageError) => self.message_error_received(),
            Ok(Incoming::Request | Incoming::LocateRequest | Incoming::CancelRequest | Incoming::Reply) | Err(_) => {
                self.statistics.client_protocol_error();
                self.send_message_error(header.version);
                let (peer, message_type) = (&self.peer, header.message_type);
                let exception = SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, CompletionStatus::Maybe)
                    .with_detail(|| format!("{peer} sent a {message_type}, which a server may not send here"));
                ConnectionEnd { cause: EndCause::Failed, exception }
            }
        }
    }

    /// No request without a reply was or will be processed (9.4.7): safe to send again.
    pub(super) fn closed_by_peer(&self) -> ConnectionEnd {
        let exception = SystemException::comm_failure(0, CompletionStatus::No)
            .with_detail(|| format!("{} closed the connection in an orderly way", self.peer));
        ConnectionEnd { cause: EndCause::CloseConnection, exception }
    }

    fn message_error_received(&self) -> ConnectionEnd {
        self.statistics.client_protocol_error();
        let detail = || {
            format!(
                "{} could not read a message and answered MessageError (it may be longer than the peer accepts)",
                self.peer
            )
        };
        let exception = SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, CompletionStatus::Maybe);
        ConnectionEnd { cause: EndCause::MessageError, exception: exception.with_detail(detail) }
    }

    /// Sends MessageError, because a message cannot be understood (9.4.8), unless that would have to wait for
    /// other writers. The connection ends in any case.
    #[cold]
    fn send_message_error(&self, version: GiopVersion) {
        if !SystemException::KEEPS_DETAIL {
            return;
        }
        let Some(mut writer) = self.writer.try_lock() else { return };
        let waits = writer.has_unsent();
        let Some(message_error) = writer.half.report_error(waits) else { return };
        let sent = bare_message(version, ByteOrder::NATIVE, message_error);
        // It may be lost: the peer sees the end of the stream.
        let _ = self.transport.set_send_timeout(Some(ADVISORY_TIMEOUT)).and_then(|()| self.transport.send(&sent));
    }

    pub(super) fn read_failed(&self, error: ReadError) -> ConnectionEnd {
        if let ReadError::Giop(reason) = &error {
            self.statistics.client_protocol_error();
            if reason.reaction() == Reaction::SendMessageError {
                self.send_message_error(reason.answer_version().unwrap_or(GiopVersion::V1_0));
            }
        }
        let exception = if let ReadError::Giop(GiopError::TooLarge { len, limit }) = error {
            let detail = || {
                format!(
                    "{} sent a reply of {len} octets, more than the limit of {limit} (`-ORBMaxMessageSize`)",
                    self.peer
                )
            };
            SystemException::imp_limit(ids::IMP_LIMIT_MESSAGE, CompletionStatus::Maybe).with_detail(detail)
        } else {
            let detail = || match &error {
                ReadError::EndOfFile | ReadError::CutOff => {
                    format!("{} closed the connection before it replied", self.peer)
                }
                ReadError::Giop(_) => format!("{} sent octets that are no GIOP reply", self.peer),
                _ => format!("reading from {} failed", self.peer),
            };
            SystemException::comm_failure(0, CompletionStatus::Maybe).with_detail(detail).with_source(error)
        };
        ConnectionEnd { cause: EndCause::Failed, exception }
    }

    pub(super) fn reply_timed_out(&self) -> CallFailure {
        CallFailure::of(
            RequestLoss::InDoubt,
            SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe).with_detail(|| {
                format!(
                    "no reply from {} before the deadline of the call (-ORBRequestTimeout, or the timeout policy)",
                    self.peer
                )
            }),
        )
    }

    /// Retires the connection after a time-out: no thread would read the late reply. It closes with its last
    /// user.
    #[cold]
    pub(super) fn retire_after_timeout(&self, failure: &CallFailure) {
        if is_abandoned(&failure.exception) {
            self.statistics.timed_out_waiting();
            self.retire_unread();
            self.unblock_writer();
        }
    }

    /// Retires the connection, unless it is read at all times: no thread would read a late reply.
    pub(super) fn retire_unread(&self) {
        if !self.is_bidirectional() {
            self.count_end(Event::ClientClosedForTimeout);
            self.retire();
        }
    }

    /// Cancels a request after its time-out or the cancellation of its caller. To be called only for peers
    /// that handle CancelRequest: omniORB 4.2 may read one for ever, at full load, and nothing after it on
    /// that connection.
    #[cold]
    pub(crate) fn cancel(&self, request_id: u32, wire: Wire, failure: &CallFailure) {
        if !is_abandoned(&failure.exception) || wire.version < GiopVersion::V1_2 {
            return;
        }
        let mut out = Encoder::new(wire);
        // It may be lost: the server then completes a request whose reply is dropped.
        if let (Ok(()), Some(mut writer)) = (CancelRequest { request_id }.encode(&mut out), self.writer.try_lock()) {
            let _ = writer.send(self, &out, Some(&Deadline::after(ADVISORY_TIMEOUT)));
        }
    }

    /// Prefers the peer's reason for a failed write: a CloseConnection or MessageError that was still unread.
    pub(super) fn peer_reason(&self, error: io::Error, read: Result<Reply, CallFailure>) -> CallFailure {
        let Err(read) = read else { return self.write_failed(error) };
        match WriteFailure::Failed.loss(Some(read.loss)) {
            RequestLoss::PartiallyWritten => self.write_failed(error),
            loss => {
                self.retire();
                CallFailure::of(loss, read.exception)
            }
        }
    }

    pub(super) fn write_failed(&self, error: io::Error) -> CallFailure {
        let failure = match () {
            () if is_timeout(&error) => WriteFailure::TimedOut,
            () if self.is_abandoned() => WriteFailure::Abandoned,
            () => WriteFailure::Failed,
        };
        match self.async_side() {
            Some(side) => side.write_failed(self),
            None => self.retire(),
        }
        let (peer, no) = (&self.peer, CompletionStatus::No);
        let exception = match failure {
            WriteFailure::TimedOut => {
                self.statistics.timed_out_sending();
                let detail = || {
                    format!(
                        "the request could not be written to {peer} before its deadline (-ORBRequestTimeout, or the timeout policy)"
                    )
                };
                SystemException::timeout(minor::ROUND_TRIP_EXPIRED, no).with_detail(detail)
            }
            WriteFailure::Abandoned => {
                let detail = || format!("writing to {peer} ended: another call had given the connection up");
                SystemException::comm_failure(0, no).with_detail(detail)
            }
            WriteFailure::Failed => {
                SystemException::comm_failure(0, no).with_detail(|| format!("writing to {peer} failed"))
            }
        };
        CallFailure::of(failure.loss(None), exception.with_source(error))
    }

    /// Whether a call of this side has ended the use of the connection, and not the peer.
    #[cold]
    fn is_abandoned(&self) -> bool {
        self.is_retired() && self.pending.lock().half.ended().is_none()
    }

    /// Frees a blocked writer after a time-out, if no thread reads any more. A server that handles one
    /// request after the other is busy with the late reply and would read no further, so the writer would
    /// wait for ever. Closing the write side sends its request to another connection. If the transport has
    /// just taken its last octet, the reply can still be read.
    #[cold]
    pub(super) fn unblock_writer(&self) {
        if !self.is_read() && self.writer.try_lock_for(ADVISORY_TIMEOUT).is_none() && !self.is_read() {
            tracing::debug!(peer = %self.peer, "the sending side of a connection was closed after a time-out");
            self.transport.close_writer();
        }
    }

    /// Whether a thread reads, or will.
    fn is_read(&self) -> bool {
        let pending = self.pending.lock();
        pending.reader.is_none() || pending.needs_reactor() || pending.has_waiting_thread()
    }
}

/// Whether the request was written whole, and its caller stopped waiting for the reply.
fn is_abandoned(exception: &SystemException) -> bool {
    let is_cancelled =
        exception.kind() == SystemExceptionKind::Transient && exception.minor() == minor::REQUEST_CANCELLED;
    (exception.kind() == SystemExceptionKind::Timeout || is_cancelled)
        && exception.completed() == CompletionStatus::Maybe
}

/// Closes the connection if the thread that reads it panics, so that no pending call waits for ever.
pub(super) struct CloseOnPanic<'c>(pub(super) &'c ClientConnection);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let exception = SystemException::internal(0, CompletionStatus::Maybe)
                .with_detail(|| format!("a thread panicked while it read replies of {}", self.0.peer));
            self.0.close(ConnectionEnd { cause: EndCause::Failed, exception });
        }
    }
}
