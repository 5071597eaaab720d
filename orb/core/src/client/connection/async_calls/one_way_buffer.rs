//! Batches of one-ways with the sync scope NONE (design decision 10).
//!
//! The first one after a pause is written at once; those that follow join a buffer. The buffer is the
//! connection's next message ([`Unsent::rest`](super::Unsent)), so that each writer writes it first: a
//! two-way sends it with its own request in one write. Otherwise the buffer is written when it is full, on a
//! flush, and when its time has come, by the [`MaintenanceThread`].
//!
//! Only a one-way that finds the buffer at its limit waits for the peer, which does not read then.
//!
//! A one-way with another sync scope is written by the thread of its call (`invocation`).

use std::{io, time::Duration};

use spandrel_cdr::Encoder;
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::{Arc, Weak, time::Instant};
use spandrel_transport::{Deadline, is_timeout};

use super::super::writing::update_timeout;
use super::{CallFailure, ClientConnection, Unsent, UnsentMessage, Writer, unsent::Batching};
use crate::{
    client::{
        Buffering,
        maintenance::{Maintained, MaintenanceThread},
    },
    diagnostics::statistics::Level,
};

/// A connection without writes for this long writes the next one-way at once.
const QUIET_TIME: Duration = Duration::from_micros(200);

/// The shortest and the longest delay before a peer that did not read is tried again.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// The time for writing the buffer when the connection is closed.
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The reason why a one-way was not accepted.
enum Refusal {
    /// This many octets are buffered, and the deadline has passed.
    Full(usize),
    Broken(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// The buffer of one-ways of a connection.
#[derive(Debug)]
pub(crate) struct OneWayBuffer<'c> {
    connection: &'c ClientConnection,
}

impl<'c> OneWayBuffer<'c> {
    pub(crate) fn of(connection: &'c ClientConnection) -> Self {
        Self { connection }
    }

    /// Buffers a one-way request. At most `limit` octets are buffered, but at least one message; beyond, this
    /// waits.
    pub(crate) fn send(
        connection: &'c Arc<ClientConnection>,
        request: &Encoder<'_>,
        buffering: &Buffering,
        limit: usize,
        maintenance_thread: &Arc<MaintenanceThread>,
        deadline: Option<&Deadline>,
    ) -> Result<(), CallFailure> {
        let this = Self { connection };
        if request.position() > connection.fragment_size {
            // Too long to be copied, and to be sent unfragmented.
            return connection.one_way(request, deadline);
        }
        connection.check_open()?;
        // Plugs in the asynchronous side, which writes the buffer before other messages and before the end.
        connection.async_state();
        let mut writer = Writer::lock(connection, deadline).map_err(|error| connection.write_failed(error))?;
        if connection.is_retired() || !writer.half.may_write() {
            drop(writer);
            return Err(connection.write_failed(io::ErrorKind::NotConnected.into()));
        }
        let accepted = this.batch_or_queue(&mut writer, request, (buffering, limit), deadline);
        let Unsent { rest, batching } = Unsent::get_or_make(&mut writer.unsent);
        let must_schedule = rest.is_some() && !std::mem::replace(&mut batching.is_scheduled, rest.is_some());
        drop(writer);
        if must_schedule
            && !maintenance_thread.schedule(Arc::downgrade(connection) as Weak<dyn Maintained>, buffering.timeout)
        {
            // No thread can write it later.
            this.flush(deadline)?;
        }
        match accepted {
            Ok(()) => Ok(()),
            Err(Refusal::Full(octets)) => Err(this.buffer_full(octets, limit)),
            Err(Refusal::Broken(error)) => Err(connection.write_failed(error)),
        }
    }

    /// Writes the request, or adds it to the buffer or the write queue.
    fn batch_or_queue(
        &self,
        writer: &mut Writer,
        request: &Encoder<'_>,
        (buffering, limit): (&Buffering, usize),
        deadline: Option<&Deadline>,
    ) -> Result<(), Refusal> {
        let len = request.position();
        let Writer { unsent, half, .. } = writer;
        let Unsent { rest, batching } = Unsent::get_or_make(unsent);
        match rest {
            None if self.connection.async_state().registration.wants_output() => self.queue(batching, request, limit),
            None => self.begin_batch(writer, request, buffering),
            Some(batch) if batch.is_batch() => {
                if batch.unwritten() + len <= buffering.octets && batch.messages + 1 < buffering.messages {
                    batch.append(request, &self.connection.statistics);
                    return Ok(());
                }
                let mut parts = request.parts();
                parts.insert(0, io::IoSlice::new(&batch.octets[batch.at..]));
                let sent = self.connection.transport.try_send_v(&parts).or_else(zero_if_blocked);
                drop(parts);
                let before = batch.unwritten();
                let sent = sent.inspect_err(|_| half.cut())?;
                if sent < before {
                    batch.at += sent;
                    return self.append_or_flush(writer, request, limit, deadline);
                }
                batching.last_write = Some(Instant::now());
                batching.end(rest, true, &self.connection.statistics);
                if sent < before + len {
                    *rest = Some(batching.begin(request, sent - before, &self.connection.statistics));
                }
                Ok(())
            }
            Some(_) => self.queue(batching, request, limit),
        }
    }

    /// Queues a one-way behind the messages of asynchronous calls, which the reactor writes.
    fn queue(&self, batching: &mut Batching, request: &Encoder<'_>, limit: usize) -> Result<(), Refusal> {
        let mut message = batching.begin(request, 0, &self.connection.statistics);
        message.request_id = self.connection.request_id();
        self.connection.queue(message, limit).map_err(Refusal::Full)
    }

    /// Handles the first one-way of a batch, or one after a pause.
    fn begin_batch(&self, writer: &mut Writer, request: &Encoder<'_>, buffering: &Buffering) -> Result<(), Refusal> {
        let Writer { unsent, half, .. } = writer;
        let Unsent { rest, batching } = Unsent::get_or_make(unsent);
        let now = Instant::now();
        let is_quiet =
            || batching.last_write.is_none_or(|last_write| now.saturating_duration_since(last_write) >= QUIET_TIME);
        let len = request.position();
        let is_due = buffering.is_prompt && is_quiet() || len >= buffering.octets || buffering.messages <= 1;
        let sent = if is_due {
            batching.last_write = Some(now);
            let sent = self.connection.transport.try_send_v(&request.parts()).or_else(zero_if_blocked);
            sent.inspect_err(|_| half.cut())?
        } else {
            0
        };
        if sent < len {
            batching.flush_at = now.checked_add(buffering.timeout);
            batching.retry_delay = Duration::ZERO;
            *rest = Some(batching.begin(request, sent, &self.connection.statistics));
        }
        Ok(())
    }

    /// Handles a one-way that may exceed the limit: the peer does not read.
    fn append_or_flush(
        &self,
        writer: &mut Writer,
        request: &Encoder<'_>,
        limit: usize,
        deadline: Option<&Deadline>,
    ) -> Result<(), Refusal> {
        let Some(Unsent { rest: Some(batch), .. }) = Unsent::find(&mut writer.unsent) else { return Ok(()) };
        if batch.unwritten() + request.position() > limit {
            self.write_batch(writer, deadline)?;
            let Unsent { rest, batching } = Unsent::get_or_make(&mut writer.unsent);
            *rest = Some(batching.begin(request, 0, &self.connection.statistics));
            return Ok(());
        }
        batch.append(request, &self.connection.statistics);
        Ok(())
    }

    /// Waits until the transport has taken the batch.
    fn write_batch(&self, writer: &mut Writer, deadline: Option<&Deadline>) -> Result<(), Refusal> {
        let Writer { timeout, unsent, half } = writer;
        let Some(Unsent { rest, batching }) = Unsent::find(unsent) else { return Ok(()) };
        let Some(batch) = rest.as_mut().filter(|batch| batch.is_batch()) else { return Ok(()) };
        let mut update_timeout = || update_timeout(self.connection, timeout, deadline, Deadline::wait);
        match batch.write_whole(self.connection, &mut update_timeout) {
            Ok(()) => {
                batching.last_write = Some(Instant::now());
                batching.end(rest, true, &self.connection.statistics);
                Ok(())
            }
            Err(error) if is_timeout(&error) => Err(Refusal::Full(batch.unwritten())),
            Err(error) => {
                half.cut();
                Err(Refusal::Broken(error))
            }
        }
    }

    /// Writes the batch and then this message, in one write if the transport takes it.
    pub(super) fn send_after(
        &self,
        Unsent { rest, batching }: &mut Unsent,
        message: &Encoder<'_>,
        update_timeout: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(batch) = rest else { return Ok(()) };
        let before = batch.octets.len();
        let mut at = batch.at;
        let mut parts = message.parts();
        parts.insert(0, io::IoSlice::new(&batch.octets[at..]));
        let end = before + message.position();
        let mut slices = &mut parts[..];
        let mut failure = None;
        while at < end {
            let sent = update_timeout().and_then(|()| match self.connection.transport.send_v(slices)? {
                0 => Err(io::ErrorKind::WriteZero.into()),
                sent => Ok(sent),
            });
            match sent {
                Ok(sent) => {
                    at += sent;
                    io::IoSlice::advance_slices(&mut slices, sent);
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        drop(parts);
        batch.at = at.min(before);
        if batch.is_whole() {
            batching.end(rest, true, &self.connection.statistics);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Writes all buffered one-ways.
    pub(crate) fn flush(&self, deadline: Option<&Deadline>) -> Result<(), CallFailure> {
        let mut writer = Writer::lock(self.connection, deadline).map_err(|error| self.not_flushed(error))?;
        if !writer.half.may_write() {
            return Ok(());
        }
        let written = self.write_batch(&mut writer, deadline);
        drop(writer);
        match written {
            Ok(()) => Ok(()),
            Err(Refusal::Full(_)) => Err(self.not_flushed(io::ErrorKind::TimedOut.into())),
            Err(Refusal::Broken(error)) => Err(self.connection.write_failed(error)),
        }
    }

    /// Writes as much of the batch as the peer reads.
    pub(crate) fn write_ready(&self) {
        // The thread that holds the lock writes the batch first.
        let Some(mut writer) = self.connection.writer.try_lock() else { return };
        let Writer { unsent, half, .. } = &mut *writer;
        let Some(Unsent { rest, batching }) = Unsent::find(unsent) else { return };
        let Some(batch) = rest.as_mut().filter(|batch| batch.is_batch() && half.may_write()) else { return };
        match batch.write_ready(self.connection) {
            Ok(true) => batching.end(rest, true, &self.connection.statistics),
            Ok(false) => {}
            Err(error) => {
                half.cut();
                drop(writer);
                self.connection.end_with_peer_reason(error);
            }
        }
    }

    /// Writes the batch before the connection is closed.
    pub(super) fn write_last(&self) {
        let Some(mut writer) = self.connection.writer.try_lock() else { return };
        if !writer.has_unsent() || !writer.half.may_write() {
            return;
        }
        // An error changes nothing: the connection is closed in any case.
        let _ = self.write_batch(&mut writer, Some(&Deadline::after(FINAL_FLUSH_TIMEOUT)));
        if let Some(Unsent { rest: Some(batch), .. }) = Unsent::find(&mut writer.unsent) {
            self.record_lost(batch);
        }
    }

    /// Counts and logs one-ways whose calls have returned and that will not arrive.
    pub(super) fn record_lost(&self, batch: &UnsentMessage) {
        if batch.is_batch() && !batch.is_whole() {
            let messages = batch.messages;
            (0..messages).for_each(|_| self.connection.statistics.one_way_dropped());
            self.connection.statistics.change(Level::OneWaysUnsent, -i64::from(messages));
            tracing::warn!(peer = %self.connection.peer, messages, "buffered one-ways (SYNC_NONE) are lost, at most this number");
        }
    }

    fn buffer_full(&self, octets: usize, limit: usize) -> CallFailure {
        let detail = || {
            format!(
                "{} does not read: {octets} octets of one-ways wait to be written, and the limit is {limit} (`-ORBBufferLimit`)",
                self.connection.peer
            )
        };
        CallFailure::new(SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::No).with_detail(detail))
    }

    fn not_flushed(&self, error: io::Error) -> CallFailure {
        let detail =
            || format!("buffered one-ways could not be written to {} within the time-out", self.connection.peer);
        CallFailure::new(
            SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::No)
                .with_detail(detail)
                .with_source(error),
        )
    }
}

/// Writes the batch at its time.
impl Maintained for ClientConnection {
    fn maintain(&self, now: Instant) -> Option<Duration> {
        // The thread that holds the lock writes the batch first.
        let Some(mut writer) = self.writer.try_lock() else { return Some(QUIET_TIME) };
        let Writer { unsent, half, .. } = &mut *writer;
        let Unsent { rest, batching } = Unsent::find(unsent)?;
        let Some(batch) = rest.as_mut().filter(|batch| batch.is_batch() && half.may_write()) else {
            batching.is_scheduled = false;
            return None;
        };
        let left = batching.flush_at.map_or(Duration::ZERO, |flush_at| flush_at.saturating_duration_since(now));
        if !left.is_zero() {
            return Some(left);
        }
        match batch.write_ready(self) {
            Ok(true) => {
                batching.last_write = Some(now);
                batching.end(rest, false, &self.statistics);
                batching.is_scheduled = false;
                None
            }
            Ok(false) => {
                let [shortest, longest] = RETRY_DELAYS;
                batching.retry_delay = (batching.retry_delay * 2).clamp(shortest, longest);
                Some(batching.retry_delay)
            }
            Err(error) => {
                half.cut();
                batching.is_scheduled = false;
                drop(writer);
                self.end_with_peer_reason(error);
                None
            }
        }
    }
}

/// Maps `WouldBlock` to zero octets.
fn zero_if_blocked(error: io::Error) -> io::Result<usize> {
    if error.kind() == io::ErrorKind::WouldBlock { Ok(0) } else { Err(error) }
}
