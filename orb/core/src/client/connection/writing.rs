//! The lock and the state of the write side, and the handling of failed writes.

use std::{io, time::Duration};

use spandrel_cdr::Encoder;
use spandrel_connection::{SendHalf, WriteFailure};
use spandrel_giop::{CompletionStatus, Fragments, SystemException, minor};
use spandrel_sync::MutexGuard;
use spandrel_transport::{Deadline, Transport, is_timeout, send_message, send_slices};

use super::{ADVISORY_TIMEOUT, ASYNC_SIDE, AsyncState, CallFailure, ClientConnection, Reply, RequestLoss};

/// The state of the write side, for the thread that holds its lock.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// The time-out that the transport has now.
    pub(super) timeout: Option<Duration>,
    /// The messages that may still be written.
    pub(super) half: SendHalf,
    /// The message that comes before all others: buffered one-ways, or one that an asynchronous call could not
    /// write whole without waiting.
    pub(super) unsent: Option<AsyncState>,
}

impl Writer {
    /// Whether a message comes before all others.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        self.unsent.as_ref().zip(ASYNC_SIDE.get()).is_some_and(|(unsent, side)| side.has_unsent(unsent))
    }
}

impl ClientConnection {
    /// Waits for the write lock until the deadline.
    pub(super) fn lock_writer(&self, deadline: Option<&Deadline>) -> io::Result<MutexGuard<'_, Writer>> {
        match deadline {
            None => Ok(self.writer.lock()),
            Some(deadline) => {
                let left = deadline.left_to_send();
                self.writer.try_lock_for(left).ok_or_else(|| io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// Sends a message under the write lock, unless the deadline passes before.
    pub(super) fn lock_and_send(&self, request: &Encoder<'_>, deadline: Option<&Deadline>) -> io::Result<()> {
        let mut writer = self.lock_writer(deadline)?;
        if self.is_retired() {
            // A call was abandoned, and its reply may have no reader now. The server would block on that
            // reply, and this thread on the server.
            return Err(io::ErrorKind::NotConnected.into());
        }
        self.send(&mut writer, request, deadline)
    }

    pub(super) fn send(
        &self,
        writer: &mut Writer,
        message: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> io::Result<()> {
        if !writer.half.may_write() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let Writer { timeout, half, unsent } = writer;
        let mut has_begun = false;
        let mut update_timeout = || {
            let result = self.update_timeout(timeout, deadline, Deadline::wait_to_send);
            has_begun |= result.is_ok();
            result
        };
        let before = match unsent.as_mut().zip(ASYNC_SIDE.get()) {
            Some((unsent, side)) => side.send_first(self, (unsent, half), message, &mut update_timeout),
            None => Ok(false),
        };
        let sent = before.and_then(|is_sent| match self.send_fragmented {
            _ if is_sent => Ok(()),
            Some(send_fragmented) if message.position() > self.fragment_size => {
                send_fragmented(&*self.transport, message, self.fragment_size, &mut update_timeout)
            }
            _ => send_message(&*self.transport, message, update_timeout),
        });
        sent.inspect_err(|_| {
            if has_begun {
                half.cut();
            }
        })
    }

    /// Sets the transport's time-out to the time that `wait` derives from the deadline. `current`: the
    /// time-out that was set last.
    #[inline]
    pub(super) fn update_timeout(
        &self,
        current: &mut Option<Duration>,
        deadline: Option<&Deadline>,
        wait: impl Fn(&Deadline) -> Option<Duration>,
    ) -> io::Result<()> {
        let new_timeout = match deadline {
            None => None,
            Some(deadline) => Some(wait(deadline).ok_or(io::ErrorKind::TimedOut)?),
        };
        if *current != new_timeout {
            self.transport.set_send_timeout(new_timeout)?;
            *current = new_timeout;
        }
        Ok(())
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
                let detail = || format!("the request could not be written to {peer} within the time-out");
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
    pub(super) fn unblock_writer(&self) {
        if self.writer.try_lock_for(ADVISORY_TIMEOUT).is_some() {
            return;
        }
        let pending = self.pending.lock();
        let is_read = pending.reader.is_none() || pending.needs_reactor() || pending.has_waiting_thread();
        drop(pending);
        if !is_read {
            tracing::debug!(peer = %self.peer, "the sending side of a connection was closed after a time-out");
            self.transport.close_writer();
        }
    }
}

/// Whether a write failed for a local reason, so that the peer's reason need not be read.
pub(super) fn is_local_failure(error: &io::Error) -> bool {
    is_timeout(error) || error.kind() == io::ErrorKind::NotConnected
}

/// The type of [`send_fragmented`], for settings that may leave it out.
pub(crate) type SendFragmented =
    fn(&dyn Transport, &Encoder<'_>, usize, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;

/// Writes a message that is longer than `limit` in fragments, or whole if it cannot be divided. `before` runs
/// before each call of the transport.
pub fn send_fragmented(
    transport: &dyn Transport,
    message: &Encoder<'_>,
    limit: usize,
    before: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    match Fragments::of(message, limit) {
        Some(fragments) => send_slices(transport, &mut fragments.slices(message), before),
        None => send_message(transport, message, before),
    }
}
