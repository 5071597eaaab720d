//! Whose turn it is to write on a connection, and what follows where that fails.

use std::{io, time::Duration};

use spandrel_cdr::Encoder;
use spandrel_giop::{CompletionStatus, Fragments, SystemException, minor};
use spandrel_sync::MutexGuard;
use spandrel_transport::{Deadline, Transport, is_timeout, send_message, send_slices};

#[cfg(feature = "asynchronous")]
use super::batch;
use super::{CallFailure, ClientConnection, HINT, Reply, RequestLoss, UnsentMessage};

/// What there is to know for whoever writes.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// What the transport was told last.
    pub(super) timeout: Option<Duration>,
    /// A message was not written to its end: whatever followed would be read as the rest of it.
    pub(super) is_cut: bool,
    /// A message that an asynchronous call could not write to its end without waiting: comes before all others.
    pub(super) rest: Option<UnsentMessage>,
    #[cfg(feature = "asynchronous")]
    pub(super) batching: batch::Batching,
}

impl ClientConnection {
    /// Waits until nobody else writes.
    pub(super) fn lock_writer(&self, deadline: Option<&Deadline>) -> io::Result<MutexGuard<'_, Writer>> {
        match deadline {
            None => Ok(self.writer.lock()),
            Some(deadline) => {
                let left = deadline.left_to_send();
                self.writer.try_lock_for(left).ok_or_else(|| io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// Sends once nobody else writes, if that comes in time.
    pub(super) fn send_in_turn(&self, request: &Encoder<'_>, deadline: Option<&Deadline>) -> io::Result<()> {
        let mut writer = self.lock_writer(deadline)?;
        if self.is_retired() {
            // Somebody left without its reply, which nobody may be reading now: the server would block on it, and this
            // thread on the server.
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
        if writer.is_cut {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let Writer { timeout, is_cut, rest, .. } = writer;
        let mut has_begun = false;
        let mut arm = || {
            let armed = self.arm(timeout, deadline, Deadline::wait_to_send);
            has_begun |= armed.is_ok();
            armed
        };
        let before = match rest {
            #[cfg(feature = "asynchronous")]
            Some(batch) if batch.is_batch() && message.position() <= self.fragment_size => {
                let sent = self.send_after_batch((rest, &mut writer.batching), message, &mut arm);
                return sent.inspect_err(|_| *is_cut = true);
            }
            Some(rest) => self.finish_rest(rest, &mut arm),
            None => Ok(()),
        };
        let sent = before.and_then(|()| match self.send_fragmented {
            Some(send_fragmented) if message.position() > self.fragment_size => {
                send_fragmented(&*self.transport, message, self.fragment_size, &mut arm)
            }
            _ => send_message(&*self.transport, message, arm),
        });
        sent.inspect_err(|_| *is_cut = has_begun)
    }

    /// Sets the time-out for sending to what `wait` says of the deadline. `receiver`: the time-out that was set last.
    #[inline]
    pub(super) fn arm(
        &self,
        receiver: &mut Option<Duration>,
        deadline: Option<&Deadline>,
        wait: impl Fn(&Deadline) -> Option<Duration>,
    ) -> io::Result<()> {
        let wanted = match deadline {
            None => None,
            Some(deadline) => Some(wait(deadline).ok_or(io::ErrorKind::TimedOut)?),
        };
        if *receiver != wanted {
            self.transport.set_send_timeout(wanted)?;
            *receiver = wanted;
        }
        Ok(())
    }

    /// A failed write may have a reason that the peer gave: a CloseConnection that was still unread.
    pub(super) fn peer_reason(&self, error: io::Error, read: Result<Reply, CallFailure>) -> CallFailure {
        match read {
            Err(read) if read.may_repeat() => read,
            Err(read) if read.loss == RequestLoss::Explained => {
                self.retire();
                CallFailure::of(RequestLoss::Rejected, read.exception)
            }
            _ => self.write_failed(error),
        }
    }

    pub(super) fn write_failed(&self, error: io::Error) -> CallFailure {
        let is_abandoned = self.is_abandoned();
        #[cfg(feature = "server")]
        self.retire_unwritten();
        #[cfg(not(feature = "server"))]
        self.retire();
        self.fail_unsent();
        if is_timeout(&error) {
            self.statistics.timed_out_sending();
            let detail = || format!("the request could not be written to {} within the time-out", self.peer);
            return CallFailure::of(
                RequestLoss::LateToBeSent,
                SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::No)
                    .with_detail(detail)
                    .with_source(error),
            );
        }
        let (loss, why) = match is_abandoned {
            true => (RequestLoss::GivenUp, "ended: another call had given the connection up"),
            false => (RequestLoss::CutOff, "failed"),
        };
        let detail = || format!("writing to {} {why}", self.peer);
        CallFailure::of(
            loss,
            SystemException::comm_failure(0, CompletionStatus::No).with_detail(detail).with_source(error),
        )
    }

    /// Whether a call of this side has ended its use, and not the peer.
    #[cold]
    fn is_abandoned(&self) -> bool {
        self.is_retired() && self.pending.lock().closed.is_none()
    }

    /// Another writes, and this thread, whose time is up, may have been the last to read. A server that answers one request after the
    /// other, and is busy with the late reply, would read no further, and the writer would wait for ever. Its request goes
    /// elsewhere then; if the transport has just taken the last of it, the reply can still be read.
    pub(super) fn free_writer(&self) {
        if self.writer.try_lock_for(HINT).is_some() {
            return;
        }
        let pending = self.pending.lock();
        let is_read = pending.reader.is_none() || pending.has_tasks() || pending.threads().next().is_some();
        drop(pending);
        if !is_read {
            tracing::debug!(peer = %self.peer, "a connection is written to no more after a time-out");
            self.transport.close_writer();
        }
    }
}

/// True if a write failed for a reason of ours, so that the peer need not be asked for its own.
pub(super) fn is_local_failure(error: &io::Error) -> bool {
    is_timeout(error) || error.kind() == io::ErrorKind::NotConnected
}

/// [`send_fragmented`], for settings that may leave it out.
pub(crate) type SendFragmented =
    fn(&dyn Transport, &Encoder<'_>, usize, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;

/// Writes a message that is longer than `limit` in fragments, or whole if it cannot be cut. `before` runs before each call of the
/// transport.
pub(crate) fn send_fragmented(
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
