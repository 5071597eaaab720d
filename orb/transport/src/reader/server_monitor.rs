//! The monitor of a server: reports the progress of a message, charges its memory, and discards rejected
//! requests.
//!
//! A message that arrives whole costs nothing here. One that arrives in pieces reports its progress in the
//! connection's [`ReceiveBudget`], and is charged before its memory is allocated. One that is longer than the
//! buffer stays charged until nobody holds it. A request that is too long, or exceeds a memory limit, is read to
//! its end and discarded if it can be answered.

use std::{cell::Cell, collections::VecDeque, mem};

use spandrel_cdr::{ByteOrder, GiopVersion, Limits};
use spandrel_giop::{CancelRequest, GiopError, HEADER_LEN, Message, MessageHeader, MessageType, RequestHeader};
use spandrel_message::{Memory, SharedAccount};
use spandrel_sync::{Arc, thread_local};

use super::{BUFFER_OCTETS, MessageReader, ReceiveMonitor};
use crate::{
    budget::ReceiveBudget,
    read_error::{DiscardedRequest, ReadError, RejectReason},
    transport::Transport,
};

/// Octets per step of progress.
const STRIDE: usize = 1 << 20;

/// Messages below this size are not charged.
const SMALL: usize = 1024;

/// Requests up to this multiple of the limit are read and discarded, so that clients that read only after
/// they have written see the reply. Beyond, the connection ends.
const DISCARD_FACTOR: usize = 16;

/// Octets of a request's header up to its id and response flags: all fields before the first of variable
/// length (GIOP 1.2).
const START_LEN: usize = HEADER_LEN + 5;

/// The beginning of a message up to this size is moved to memory of its own when other connections need the
/// thread's memory.
const SMALL_OCTETS: usize = 1024;

/// The most messages that are stored while looking ahead for CancelRequests.
const MAX_FOUND: usize = 64;

thread_local! {
    /// The memory of idle connections that this thread has served.
    static SPARE: Cell<Option<Memory>> = const { Cell::new(None) };
}

/// Enforces the limits of a server on the messages that a client sends. The fields that each message needs come first.
#[derive(Debug)]
#[repr(C)]
pub struct ServerMonitor {
    /// Whether a message is incomplete and reported as such by the progress.
    is_begun: bool,
    /// Whether memory has been charged, or a message is incomplete.
    is_partial: bool,
    /// Octets still to be discarded.
    to_discard: usize,
    /// Octets since the last step of progress.
    received: usize,
    charged: usize,
    budget: Arc<ReceiveBudget>,
    /// The results that [looking ahead](MessageReader::look_ahead) found and did not return, in their order.
    found: VecDeque<Result<Message, ReadError>>,
    /// The octets of the messages in `found`.
    found_octets: usize,
}

impl ServerMonitor {
    fn new(budget: Arc<ReceiveBudget>) -> Self {
        Self {
            budget,
            is_begun: false,
            is_partial: false,
            received: 0,
            charged: 0,
            to_discard: 0,
            found: VecDeque::new(),
            found_octets: 0,
        }
    }

    /// The CancelRequest among the found messages that is to be handled now: the first whose request is not among
    /// those before it, which have not begun.
    fn take_cancel_request(&mut self) -> Option<Message> {
        let is_due = |at: usize| {
            let id = self.found[at].as_ref().ok().and_then(cancelled_request)?;
            let mut before = self.found.iter().take(at).filter_map(|found| found.as_ref().ok());
            Some(before.all(|message| request_id(message) != Some(id)))
        };
        let at = (0..self.found.len()).find(|at| is_due(*at) == Some(true))?;
        self.remove_found(at)?.ok()
    }

    fn remove_found(&mut self, at: usize) -> Option<Result<Message, ReadError>> {
        let found = self.found.remove(at)?;
        self.found_octets -= found.as_ref().map_or(0, |message| message.octets().len());
        Some(found)
    }

    /// Stores a result for the next reader.
    fn store(&mut self, found: Result<Message, ReadError>) {
        // A copy, because the memory in which a short message arrived is for the next ones.
        let found = found.map(|message| message.kept());
        self.found_octets += found.as_ref().map_or(0, |message| message.octets().len());
        self.found.push_back(found);
    }

    /// Releases the charge beyond `held` octets.
    fn settle(&mut self, held: usize) {
        self.budget.release(self.charged.saturating_sub(held));
        self.charged = self.charged.min(held);
    }
}

impl ReceiveMonitor for ServerMonitor {
    #[inline]
    fn has_pending(&self) -> bool {
        !self.found.is_empty()
    }

    #[cold]
    fn take_pending(&mut self) -> Option<Result<Message, ReadError>> {
        self.remove_found(0)
    }

    #[inline]
    fn received(&mut self, octets: usize) {
        self.received += octets;
    }

    #[inline]
    fn discard(reader: &mut MessageReader<Self>) -> bool {
        reader.monitor.to_discard == 0 || reader.discard_more()
    }

    #[inline]
    fn incomplete(reader: &mut MessageReader<Self>) -> Result<(), ReadError> {
        if reader.buffer.filled().is_empty() && reader.assembler.unfinished() == 0 && reader.monitor.to_discard == 0 {
            return Ok(());
        }
        reader.record_partial()
    }

    #[inline]
    fn fragment(reader: &mut MessageReader<Self>) -> Result<(), ReadError> {
        reader.record_partial()
    }

    #[inline]
    fn complete(reader: &mut MessageReader<Self>) {
        if reader.monitor.is_partial {
            reader.record_complete();
        }
    }

    #[cold]
    fn too_long(reader: &mut MessageReader<Self>, header: MessageHeader) -> Result<Option<MessageHeader>, ReadError> {
        let (len, limit) = (header.total_len(), reader.max_message);
        let is_absurd = len / DISCARD_FACTOR > limit;
        if !is_discardable(header) || is_absurd {
            return Err(GiopError::TooLarge { len, limit }.into());
        }
        if reader.buffer.filled().len() < START_LEN {
            return Ok(None);
        }
        reader.header = Some(header);
        reader.discard_message(RejectReason::TooLong { len, limit }).map(|()| None)
    }
}

impl MessageReader<ServerMonitor> {
    /// A reader of a client's messages. `max_unfinished`: the number of messages that may arrive in fragments
    /// at a time.
    #[must_use]
    pub fn monitored(max_message: usize, max_unfinished: usize, budget: Arc<ReceiveBudget>) -> Self {
        let account: SharedAccount = Arc::<ReceiveBudget>::clone(&budget);
        let mut reader = Self::with(ServerMonitor::new(budget), max_message, max_unfinished);
        reader.buffer = reader.buffer.with_account(Arc::clone(&account));
        reader.assembler = reader.assembler.with_account(account);
        reader
    }

    /// A CancelRequest that is available now, for a thread that handles only these while no other thread reads.
    /// Other messages are stored for the next reader, and so is a CancelRequest for one of them. `transport`: where
    /// to read; without it only what is in memory counts.
    pub fn look_ahead(&mut self, transport: Option<&dyn Transport>) -> Option<Message> {
        let cancel_request = self.monitor.take_cancel_request();
        if cancel_request.is_some() {
            return cancel_request;
        }
        while self.may_look_further() {
            let next = match transport {
                Some(transport) => self.read_ready(transport),
                None => self.whole(),
            };
            self.stop();
            self.monitor.store(next.transpose()?);
            let cancel_request = self.monitor.take_cancel_request();
            if cancel_request.is_some() {
                return cancel_request;
            }
        }
        None
    }

    /// Whether [looking ahead](Self::look_ahead) may find more: it stores 64 messages, and as many octets
    /// as are read at once, and does not go beyond the end of the connection.
    #[must_use]
    pub fn may_look_further(&self) -> bool {
        let monitor = &self.monitor;
        monitor.found.len() < MAX_FOUND && monitor.found_octets <= BUFFER_OCTETS && !self.has_ended()
    }

    /// Whether looking ahead found the end of the connection.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let is_end = |error: &ReadError| !matches!(error, ReadError::Discarded(_));
        self.monitor.found.back().is_some_and(|found| found.as_ref().is_err_and(is_end))
    }

    /// Called before reading on a thread that serves many connections: takes the memory that the thread
    /// keeps.
    pub fn wake(&mut self) {
        SPARE.with(|spare| {
            if let Some(memory) = spare.take() {
                spare.set(self.buffer.use_memory(memory));
            }
        });
    }

    /// Called after reading: returns the memory to the thread, so that an idle connection, or one with the
    /// beginning of a small message, has none.
    pub fn rest(&mut self) {
        SPARE.with(|spare| {
            if let Some(memory) = self.buffer.take_memory_compacting(SMALL_OCTETS) {
                spare.set(Some(memory));
            }
        });
    }

    /// Called after the last read: returns the memory to the thread, whatever the buffer holds.
    pub fn end(&mut self) {
        SPARE.with(|spare| {
            if let Some(memory) = self.buffer.take_memory_discarding() {
                spare.set(Some(memory));
            }
        });
    }

    /// Drops the fragments of a request that its sender has cancelled.
    pub fn cancel(&mut self, request_id: u32) {
        self.assembler.cancel(request_id);
        self.record_complete();
    }

    /// The next message, if no further octet is needed.
    ///
    /// # Errors
    /// The errors of [`next_ready`](Self::next_ready), except the transport's.
    pub fn buffered(&mut self) -> Result<Option<Message>, ReadError> {
        if self.monitor.has_pending() {
            return self.monitor.take_pending().transpose();
        }
        self.whole()
    }

    /// Suspends progress checks: reading pauses for a reason on this side.
    pub fn stop(&mut self) {
        if mem::take(&mut self.monitor.is_begun) {
            self.monitor.budget.advance(1);
        }
    }

    /// Charges an incomplete message, and reports its progress.
    #[cold]
    fn record_partial(&mut self) -> Result<(), ReadError> {
        let filled = self.buffer.filled().len();
        let reading = match self.header {
            Some(header) => Self::at_once(header.total_len(), filled),
            None => filled,
        };
        // A longer message is charged with its memory.
        let is_charged = reading > SMALL && reading <= BUFFER_OCTETS;
        let wanted = self.assembler.held() + if is_charged { reading } else { 0 };
        let monitor = &mut self.monitor;
        monitor.is_partial = true;
        if !monitor.is_begun {
            monitor.is_begun = true;
            monitor.received = 0;
            monitor.budget.advance(1);
        } else if monitor.received >= STRIDE {
            monitor.received = 0;
            monitor.budget.advance(2);
        }
        if wanted > monitor.charged {
            match monitor.budget.charge(wanted - monitor.charged) {
                Ok(()) => monitor.charged = wanted,
                Err(exceeded) => return self.discard_message(exceeded.into()),
            }
        }
        if reading > BUFFER_OCTETS && !self.buffer.reserve_message(reading) {
            let exceeded = self.monitor.budget.exceeded_by(reading);
            return self.discard_message(exceeded.into());
        }
        Ok(())
    }

    /// Ends the report of an incomplete message that is complete or rejected.
    #[cold]
    fn record_complete(&mut self) {
        let held = self.assembler.held();
        self.monitor.settle(held);
        if self.assembler.unfinished() == 0 {
            self.monitor.is_partial = false;
            self.stop();
        }
    }

    /// Discards the received octets of a message. Returns whether these were the last.
    #[cold]
    fn discard_more(&mut self) -> bool {
        let count = self.monitor.to_discard.min(self.buffer.filled().len());
        self.monitor.to_discard -= count;
        let is_over = self.monitor.to_discard == 0;
        self.buffer.consume(count);
        if is_over {
            self.record_complete();
        }
        is_over
    }

    /// Discards the incomplete message: its received octets now, the rest on arrival.
    fn discard_message(&mut self, reason: RejectReason) -> Result<(), ReadError> {
        let filled = self.buffer.filled();
        let header = self.header.take().filter(|header| is_discardable(*header) && filled.len() >= START_LEN);
        let (Some(header), Some(start)) = (header, filled.get(HEADER_LEN..START_LEN)) else {
            return Err(ReadError::Rejected(reason.into()));
        };
        let id = [start[0], start[1], start[2], start[3]];
        let request_id = match header.order {
            ByteOrder::Big => u32::from_be_bytes(id),
            ByteOrder::Little => u32::from_le_bytes(id),
        };
        let expects_reply = start[4] & 1 != 0;
        let held = self.assembler.held();
        self.monitor.settle(held);
        self.monitor.to_discard = header.total_len();
        self.monitor.is_partial = true;
        self.discard_more();
        self.last_len = 0;
        Err(ReadError::Discarded(Box::new(DiscardedRequest { request_id, expects_reply, reason })))
    }
}

/// The id of the request that a CancelRequest means; `None` for other messages, and for one that cannot be decoded.
fn cancelled_request(message: &Message) -> Option<u32> {
    if message.header.message_type != MessageType::CancelRequest {
        return None;
    }
    CancelRequest::decode(&mut message.decoder(Limits::default())).ok().map(|cancelled| cancelled.request_id)
}

/// The request id, if the message is a Request whose header can be decoded.
fn request_id(message: &Message) -> Option<u32> {
    if message.header.message_type != MessageType::Request {
        return None;
    }
    RequestHeader::decode(&mut message.decoder(Limits::default())).ok().map(|request| request.request_id)
}

/// Whether a message is a request with its id and response flags at a fixed offset, and without further
/// fragments.
fn is_discardable(header: MessageHeader) -> bool {
    header.version >= GiopVersion::V1_2 && header.message_type == MessageType::Request && !header.more_fragments
}
