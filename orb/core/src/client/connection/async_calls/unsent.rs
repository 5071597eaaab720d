//! Messages that are still to be written: those that the transport did not take at once, and batches of one-ways.
//!
//! `async_calls` (`write_or_queue`, `queue`) adds messages and checks the limits: `-ORBBufferLimit` octets for a server that does
//! not read, and `-ORBPendingRequests`; `one_way_buffer` checks that of one-ways.

use std::{any::Any, collections::VecDeque, io, time::Duration};

use spandrel_cdr::{Encoder, Wire};
use spandrel_connection::Written;
use spandrel_giop::{CancelRequest, Fragments};
use spandrel_sync::{atomic::Ordering, time::Instant};
use spandrel_transport::Charge;

use super::super::{ClientConnection, UnsentState};
use crate::{
    client::urgency::{self, Urgency},
    diagnostics::statistics::{Level, Statistics},
};

/// The most buffers of written requests that a connection keeps for further ones.
const MOST_SPARES: usize = 128;
/// The largest of them.
const LARGEST_SPARE: usize = 256;

/// A written buffer with a larger capacity than this is not reused.
const MAX_SPARE_CAPACITY: usize = 128 * 1024;

/// Messages of which no octet was written yet: the most urgent first, and those of equal urgency in their order.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    pub(super) messages: VecDeque<UnsentMessage>,
    pub(super) octets: usize,
    /// The memory of written requests.
    spares: Vec<Vec<u8>>,
    /// The memory of a run.
    spare_run: VecDeque<UnsentMessage>,
}

impl WriteQueue {
    pub(super) fn push(&mut self, message: UnsentMessage) {
        self.octets += message.octets.len();
        // From the end: all messages are of equal urgency in most programs.
        let at = self.messages.iter().rposition(|before| before.urgency >= message.urgency).map_or(0, |at| at + 1);
        self.messages.insert(at, message);
    }

    /// An empty buffer for a request.
    pub(super) fn take_spare(&mut self) -> Vec<u8> {
        self.spares.pop().unwrap_or_default()
    }

    /// Keeps the buffers of requests that were written, and the memory of their run.
    pub(super) fn give_spares(&mut self, spares: &mut Vec<Vec<u8>>, run: VecDeque<UnsentMessage>) {
        if self.spares.is_empty() {
            std::mem::swap(&mut self.spares, spares);
        }
        self.spares.append(spares);
        self.spares.truncate(MOST_SPARES);
        if run.capacity() > self.spare_run.capacity() {
            self.spare_run = run;
        }
    }

    /// The memory of an earlier run, without messages.
    pub(super) fn take_run(&mut self) -> VecDeque<UnsentMessage> {
        std::mem::take(&mut self.spare_run)
    }

    /// Adds a message that was queued before: it comes before those of its urgency.
    pub(super) fn put_back(&mut self, message: UnsentMessage) {
        self.octets += message.octets.len();
        let at = self.messages.iter().position(|later| later.urgency <= message.urgency);
        self.messages.insert(at.unwrap_or(self.messages.len()), message);
    }

    pub(super) fn take(&mut self, at: usize) -> Option<UnsentMessage> {
        let message = self.messages.remove(at)?;
        self.octets -= message.octets.len();
        Some(message)
    }
}

/// The state of the write side for asynchronous calls and buffered one-ways.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    /// The message that comes before all others.
    pub(super) rest: Option<UnsentMessage>,
    pub(super) batching: Batching,
}

impl Unsent {
    /// The unsent messages of a connection's write side, for the thread that holds its lock.
    pub(super) fn get_or_make(unsent: &mut Option<Box<dyn UnsentState>>) -> &mut Self {
        let state: &mut dyn Any = &mut **unsent.get_or_insert_with(|| Box::<Self>::default());
        state.downcast_mut().expect("there is one kind")
    }

    /// The unsent messages of a write side, if there were any.
    pub(super) fn find(unsent: &mut Option<Box<dyn UnsentState>>) -> Option<&mut Self> {
        let state: &mut dyn Any = &mut **unsent.as_mut()?;
        state.downcast_mut()
    }

    /// Ends a request between two of its fragments, if it is being written in fragments, with a CancelRequest
    /// (9.4.9).
    pub(super) fn abort(unsent: &mut Option<Box<dyn UnsentState>>, request_id: u32, wire: Wire) -> bool {
        let mut out = Encoder::new(wire);
        let rest = Self::find(unsent)
            .and_then(|unsent| unsent.rest.as_mut())
            .filter(|rest| rest.has_receiver() && rest.request_id == request_id);
        rest.is_some_and(|rest| (CancelRequest { request_id }).encode(&mut out).is_ok() && rest.abort(&out))
    }
}

impl UnsentState for Unsent {
    fn has_unsent(&self) -> bool {
        self.rest.is_some()
    }
}

/// The state of a connection's buffered one-ways.
#[derive(Debug, Default)]
pub(super) struct Batching {
    /// The time of the last write.
    pub(super) last_write: Option<Instant>,
    /// The time at which the buffer is to be written.
    pub(super) flush_at: Option<Instant>,
    /// Whether the maintenance thread will look at this connection.
    pub(super) is_scheduled: bool,
    /// The delay before a peer that does not read is tried again.
    pub(super) retry_delay: Duration,
    /// The last written buffer, for reuse.
    spare: Vec<u8>,
}

impl Batching {
    /// Begins a batch with this message, of which `at` octets were written.
    pub(super) fn begin(&mut self, message: &Encoder<'_>, at: usize, statistics: &Statistics) -> UnsentMessage {
        let mut octets = std::mem::take(&mut self.spare);
        octets.clear();
        let mut batch = UnsentMessage {
            request_id: 0,
            octets,
            at: 0,
            kind: UnsentKind::Batch,
            urgency: 0,
            boundaries: Vec::new(),
            _charge: None,
            messages: 0,
        };
        batch.append(message, statistics);
        batch.at = at;
        batch
    }

    /// Ends a batch that was written.
    pub(super) fn end(&mut self, batch: &mut Option<UnsentMessage>, keeps_buffer: bool, statistics: &Statistics) {
        let written = batch.take();
        if let Some(batch) = &written {
            statistics.batch_written();
            statistics.change(Level::OneWaysUnsent, -i64::from(batch.messages));
        }
        if let Some(UnsentMessage { octets, .. }) =
            written.filter(|batch| keeps_buffer && batch.octets.capacity() <= MAX_SPARE_CAPACITY)
        {
            self.spare = octets;
        }
    }
}

/// A message that is still to be written.
#[derive(Debug)]
pub(super) struct UnsentMessage {
    pub(super) request_id: u32,
    pub(super) octets: Vec<u8>,
    /// The number of octets that the transport has taken.
    pub(super) at: usize,
    pub(super) kind: UnsentKind,
    /// Its urgency among the queued messages; zero for one that no call of either side waits for.
    pub(super) urgency: Urgency,
    /// The ends of its fragments, without the last.
    pub(super) boundaries: Vec<usize>,
    /// The memory that a reply is counted against.
    pub(super) _charge: Option<Charge>,
    /// The number of messages in it.
    pub(super) messages: u32,
}

/// The kind of a queued message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum UnsentKind {
    TwoWay,
    OneWay,
    /// A message that no call waits for: a CancelRequest, another control message, or a reply.
    Untracked,
    /// One-ways whose calls have returned.
    Batch,
}

impl UnsentMessage {
    pub(super) fn new(
        request_id: u32,
        message: &Encoder<'_>,
        fragments: Option<&Fragments>,
        at: usize,
        kind: UnsentKind,
    ) -> Self {
        let urgency = if matches!(kind, UnsentKind::TwoWay | UnsentKind::OneWay) { urgency::current() } else { 0 };
        let whole =
            |octets, boundaries| Self { request_id, octets, at, kind, urgency, boundaries, _charge: None, messages: 1 };
        let Some(fragments) = fragments else { return whole(message.to_vec(), Vec::new()) };
        let mut boundaries: Vec<_> = fragments.boundaries().collect();
        boundaries.pop();
        whole(fragments.to_vec(message), boundaries)
    }

    /// A request that is appended, in this memory.
    pub(super) fn appended(mut octets: Vec<u8>, request_id: u32, request: &Encoder<'_>) -> Self {
        octets.clear();
        request.slices().for_each(|slice| octets.extend_from_slice(slice));
        let (kind, urgency) = (UnsentKind::TwoWay, urgency::current());
        Self { request_id, octets, at: 0, kind, urgency, boundaries: Vec::new(), _charge: None, messages: 1 }
    }

    /// The memory of a written request, for another one.
    pub(super) fn into_spare(self) -> Option<Vec<u8>> {
        (self.kind == UnsentKind::TwoWay && self.octets.capacity() <= LARGEST_SPARE).then_some(self.octets)
    }

    /// Ends the message after the fragment that is being written, and appends `cancel`, with which the server
    /// discards the request. Returns false if the message is not fragmented, or its last fragment is being
    /// written.
    pub(super) fn abort(&mut self, cancel: &Encoder<'_>) -> bool {
        let end = self.boundaries.iter().find(|end| **end >= self.at).copied();
        let Some(end) = end else { return false };
        self.octets.truncate(end);
        self.octets.extend_from_slice(&cancel.to_vec());
        (self.kind, self.boundaries) = (UnsentKind::Untracked, Vec::new());
        true
    }

    /// Writes to a connection without waiting; returns true once the transport has taken all octets.
    pub(super) fn write_ready(&mut self, connection: &ClientConnection) -> io::Result<bool> {
        while !self.is_whole() {
            // Set before the write: if the connection ends from now on, the peer may have the whole request.
            self.mark_written(connection, Written::Whole);
            match connection.transport.try_send_v(&[io::IoSlice::new(&self.octets[self.at..])]) {
                Ok(sent) => {
                    self.at += sent;
                    connection.async_state().written.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    self.mark_written(connection, Written::Partly);
                    return if error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) };
                }
            }
            if !self.is_whole() {
                self.mark_written(connection, Written::Partly);
            }
        }
        Ok(true)
    }

    /// Writes all, by a thread that waits for room to write a message of its own. The reactor completes the
    /// call.
    pub(super) fn write_whole(
        &mut self,
        connection: &ClientConnection,
        update_timeout: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        while !self.is_whole() {
            update_timeout()?;
            self.mark_written(connection, Written::Whole);
            let sent = connection.transport.send(&self.octets[self.at..]);
            self.at += sent.as_ref().map_or(0, |sent| *sent);
            if !self.is_whole() {
                self.mark_written(connection, Written::Partly);
            }
            sent?;
        }
        Ok(())
    }

    /// Records for its call whether the transport has taken the last octet, or may have.
    pub(super) fn mark_written(&self, connection: &ClientConnection, written: Written) {
        if self.has_receiver() {
            connection.mark_written(self.request_id, written);
        }
    }

    pub(super) fn is_batch(&self) -> bool {
        self.kind == UnsentKind::Batch
    }

    pub(super) fn unwritten(&self) -> usize {
        self.octets.len() - self.at
    }

    /// Appends one more message.
    pub(super) fn append(&mut self, message: &Encoder<'_>, statistics: &Statistics) {
        statistics.one_way_batched();
        statistics.change(Level::OneWaysUnsent, 1);
        if self.at > self.octets.len() / 2 {
            self.octets.drain(..self.at);
            self.at = 0;
        }
        for part in &message.parts() {
            self.octets.extend_from_slice(part);
        }
        self.messages += 1;
    }

    pub(super) fn is_whole(&self) -> bool {
        self.at == self.octets.len()
    }

    /// Whether a call waits for its outcome.
    pub(super) fn has_receiver(&self) -> bool {
        matches!(self.kind, UnsentKind::TwoWay | UnsentKind::OneWay)
    }
}
