//! One connection to a peer, used by one thread or shared by several.
//!
//! This file has the calls of threads that wait for their reply. The pending calls are in `pending_calls`, the
//! write lock in [`writing`], and the end of a connection in [`closing`]. Asynchronous calls are in
//! `async_calls`, which are reached through [`AsyncSide`].

#[cfg(feature = "asynchronous")]
mod async_calls;
mod async_side;
mod closing;
mod pending_calls;
mod reply;
#[cfg_attr(not(feature = "asynchronous"), path = "connection/unshared_writes.rs")]
mod shared_writes;
mod writing;

pub(crate) use writing::SendFragmented;
pub use writing::send_fragmented;

use std::{io, sync::OnceLock};

use spandrel_cdr::Encoder;
pub use spandrel_connection::CallFailure;
pub(crate) use spandrel_connection::RequestLoss;
use spandrel_connection::{ClientHalf, ConnectionEnd, SentContexts, WriteStart, WriteTurn, Written};
use spandrel_giop::{Message, MessageType};
use spandrel_sync::{
    Arc, Condition, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering},
    thread_local,
};
use spandrel_transport::{Address, Deadline, MessageReader, ReadError};

#[cfg(feature = "asynchronous")]
pub use async_calls::{AdoptedReader, CallbackDispatcher};
#[cfg(feature = "asynchronous")]
pub(crate) use async_calls::{
    KeptTurns, OneWayBuffer, ReactorRegistration, UnsentKind, plug_in, serve_ready, wake, write_ready,
};
pub(super) use async_side::has_async_calls;
use async_side::{AsyncSide, UnsentState};
use closing::CloseOnPanic;
pub(crate) use pending_calls::ReplyReceiver;
use pending_calls::{NotificationScope, PendingCalls, ReplyWaiter};
pub use reply::Reply;
pub(crate) use reply::ReplyKind;
use shared_writes::AppendedRequests;
use writing::{Writer, is_local_failure};

use super::ConnectionSlot;
use crate::{
    client::transport::ConnectionTransport,
    diagnostics::{
        ConnectionMetrics,
        statistics::{Level, Statistics},
    },
};

/// How long the peer's reason for a failed write is read for.
const PEER_REASON_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(200);

/// The time-out for writing a message that may be lost, such as a CancelRequest after the caller's deadline.
const ADVISORY_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(10);

/// A connection over which this ORB sends requests.
#[derive(Debug)]
pub struct ClientConnection {
    /// The peer's address, for log and error texts.
    peer: Arc<Address>,
    statistics: Statistics,
    /// The counts of requests and octets, if the ORB is measured.
    metrics: ConnectionMetrics,
    transport: Arc<dyn ConnectionTransport>,
    writer: Mutex<Writer>,
    /// The length beyond which messages are sent in fragments.
    fragment_size: usize,
    send_fragmented: Option<SendFragmented>,
    pending: Mutex<PendingCalls>,
    /// Whether there may be appended requests; those are in `pending`.
    has_appended: AtomicBool,
    next_request_id: AtomicU32,
    /// Whether it must not be used for further calls.
    retired: AtomicBool,
    /// Whether its end has been counted, or is not to be: a connection is counted as closed at most once.
    is_end_counted: AtomicBool,
    /// The state of asynchronous calls, once there was one.
    async_state: OnceLock<Box<dyn AsyncSide>>,
    /// The bits of the [`SentContexts`]; further requests leave them out.
    sent_contexts: AtomicU8,
    /// Its slot among the open connections, if it is counted.
    _slot: Option<ConnectionSlot>,
}

thread_local! {
    /// The condition variable of this thread, while another thread reads.
    static WAKE: Arc<Condition> = Arc::new(Condition::new());
}

impl ClientConnection {
    pub(crate) fn new(
        peer: Arc<Address>,
        transport: Arc<dyn ConnectionTransport>,
        reader: MessageReader,
        statistics: Statistics,
    ) -> Self {
        statistics.connection_opened();
        statistics.change(Level::ClientConnections, 1);
        Self::over(peer, transport, Some(Box::new(reader)), statistics)
    }

    fn over(
        peer: Arc<Address>,
        transport: Arc<dyn ConnectionTransport>,
        reader: Option<Box<MessageReader>>,
        statistics: Statistics,
    ) -> Self {
        Self {
            peer,
            statistics,
            metrics: ConnectionMetrics::default(),
            transport,
            writer: Mutex::new(Writer::default()),
            fragment_size: usize::MAX,
            send_fragmented: None,
            pending: Mutex::new(PendingCalls {
                reader,
                half: ClientHalf::default(),
                appended: AppendedRequests::default(),
            }),
            has_appended: AtomicBool::new(false),
            next_request_id: AtomicU32::new(0),
            retired: AtomicBool::new(false),
            is_end_counted: AtomicBool::new(false),
            async_state: OnceLock::new(),
            sent_contexts: AtomicU8::new(SentContexts::NONE.bits()),
            _slot: None,
        }
    }

    /// Sends messages in fragments of at most so many octets.
    pub fn with_fragments_of(mut self, fragments: Option<(usize, SendFragmented)>) -> Self {
        if let Some((octets, send_fragmented)) = fragments {
            (self.fragment_size, self.send_fragmented) = (octets, Some(send_fragmented));
        }
        self
    }

    /// Counts the connection among the open ones.
    pub(crate) fn with_slot(mut self, slot: Option<ConnectionSlot>) -> Self {
        self._slot = slot;
        self
    }

    pub(crate) fn metrics(&self) -> &ConnectionMetrics {
        &self.metrics
    }

    /// The address that the connection was opened to.
    pub fn peer(&self) -> &Address {
        &self.peer
    }

    /// Returns an unused request id: even on the side that opened the connection, odd on the other (9.4.2.1).
    #[inline]
    pub(crate) fn request_id(&self) -> u32 {
        self.next_request_id.fetch_add(2, Ordering::Relaxed)
    }

    /// Whether it must not be used for further calls.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    /// The contexts that were sent on the connection.
    #[inline]
    pub(crate) fn sent_contexts(&self) -> SentContexts {
        SentContexts::from_bits(self.sent_contexts.load(Ordering::Acquire))
    }

    /// Has the listen points sent again, because there are new ones.
    pub(crate) fn resend_listen_points(&self) {
        self.sent_contexts.fetch_and(!SentContexts::LISTEN_POINTS.bits(), Ordering::Release);
    }

    /// Marks further contexts as sent.
    pub(crate) fn mark_sent(&self, contexts: SentContexts) {
        if !self.sent_contexts().contains(contexts) {
            self.sent_contexts.fetch_or(contexts.bits(), Ordering::Release);
        }
    }

    /// Whether no context is left to be sent on the connection.
    #[inline]
    pub(crate) fn has_sent_contexts(&self) -> bool {
        self.sent_contexts() == SentContexts::ALL
    }

    /// Sends a request without a reply.
    pub(crate) fn one_way(&self, request: &Encoder<'_>, deadline: Option<&Deadline>) -> Result<(), CallFailure> {
        self.check_open()?;
        let sent = Writer::lock_and_send(self, request, deadline);
        sent.map_err(|error| self.write_failed(error))
    }

    /// Fails if the connection has ended.
    fn check_open(&self) -> Result<(), CallFailure> {
        // It is retired before it is closed, so that the usual case needs no lock. A caller in between fails
        // to write.
        if self.is_retired() { self.pending.lock().half.check_open() } else { Ok(()) }
    }

    /// Sends a request and waits for its reply.
    #[inline]
    pub(crate) fn two_way(
        &self,
        request_id: u32,
        request: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure> {
        let mut pending = self.pending.lock();
        pending.half.check_open()?;
        // No thread waits, reads or writes: this one does all and needs no entry. The write lock is taken
        // under the lock of pending calls, so that other requests follow this one. No other reply can fill
        // the connection then while the only reader writes.
        if pending.half.is_free()
            && pending.reader.is_some()
            && !self.is_retired()
            && let Some(writer) = self.writer.try_lock()
            && !writer.has_unsent()
            && !self.has_queued()
            && let Some(reader) = pending.reader.take()
        {
            drop(pending);
            return self.call_exclusive(writer, reader, request_id, request, deadline);
        }
        self.two_way_with_others(pending, request_id, request, deadline)
    }

    /// Makes a call on a connection that others use.
    fn two_way_with_others<'c>(
        &'c self,
        mut pending: MutexGuard<'c, PendingCalls>,
        request_id: u32,
        request: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure> {
        let begun = pending.half.begin(request_id, ReplyWaiter::THREAD);
        debug_assert!(begun.is_ok(), "it was open under the same lock");
        if let Some(side) = self.async_side().filter(|side| side.is_adopted()) {
            drop(pending);
            side.ensure_reading(self, request_id)?;
            pending = self.pending.lock();
        }
        let start = self.begin_write(&mut pending, request_id, request);
        drop(pending);
        let sent = match start {
            WriteStart::Write => self.write_shared(request_id, request, deadline),
            WriteStart::Append => Ok(()),
            WriteStart::Alone => Writer::lock_and_send(self, request, deadline),
        };
        match sent {
            Ok(()) => self.await_reply(request_id, request, deadline),
            Err(error) => self.end_unwritten(request_id, request, error),
        }
    }

    /// Ends a call whose request could not be written.
    #[cold]
    fn end_unwritten(&self, request_id: u32, request: &Encoder<'_>, error: io::Error) -> Result<Reply, CallFailure> {
        if !is_local_failure(&error) {
            let read = self.await_reply(request_id, request, Some(&Deadline::after(PEER_REASON_TIMEOUT)));
            return Err(self.peer_reason(error, read));
        }
        let mut pending = self.pending.lock();
        pending.leave(request_id);
        if pending.reader.is_some() && !pending.half.is_free() {
            self.hand_over_reading(pending, false);
        } else {
            drop(pending);
        }
        Err(self.write_failed(error))
    }

    /// Makes a call on a connection without other users.
    #[inline]
    fn call_exclusive(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        mut reader: Box<MessageReader>,
        request_id: u32,
        request: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure> {
        // Alone: while the only reader writes, it must not write the requests that others queue meanwhile. Their replies
        // could fill the connection.
        let sent = writer.send_alone(self, request, deadline);
        drop(writer);
        let outcome = match sent {
            Ok(()) => self.read_until_reply(&mut reader, request_id, deadline),
            Err(error) if is_local_failure(&error) => Err(self.write_failed(error)),
            Err(error) => {
                let read = self.read_until_reply(&mut reader, request_id, Some(&Deadline::after(PEER_REASON_TIMEOUT)));
                Err(self.peer_reason(error, read))
            }
        };
        self.return_reader(reader, None, false);
        self.retire_if_timed_out(&outcome);
        outcome
    }

    /// Waits for the reply to a request that is written or appended.
    fn await_reply(
        &self,
        request_id: u32,
        request: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure> {
        let mut pending = self.pending.lock();
        loop {
            pending.end_write(request_id);
            let PendingCalls { reader, half, appended } = &mut *pending;
            let mut call = half.call(request_id).expect("a thread stays registered until it has taken its outcome");
            if let Some(reply) = call.waiter().take_reply() {
                pending.leave(request_id);
                return Ok(reply);
            }
            if let Some(failure) = call.failure() {
                pending.leave(request_id);
                return Err(failure);
            }
            let mut remaining = deadline.map(Deadline::remaining);
            match appended.turn(request_id) {
                WriteTurn::Written => {
                    if let Some(mut reader) = reader.take() {
                        drop(pending);
                        let outcome = self.read_until_reply(&mut reader, request_id, deadline);
                        self.return_reader(reader, Some(request_id), false);
                        self.retire_if_timed_out(&outcome);
                        return outcome;
                    }
                }
                WriteTurn::Write => {
                    half.set_written(request_id, Written::Whole);
                    self.has_appended.store(appended.appended().next().is_some(), Ordering::Relaxed);
                    drop(pending);
                    if let Err(error) = self.write_shared(request_id, request, deadline) {
                        return self.end_unwritten(request_id, request, error);
                    }
                    pending = self.pending.lock();
                    continue;
                }
                WriteTurn::BeingWritten => {}
                WriteTurn::Wait => remaining = deadline.map(Deadline::left_to_send),
                WriteTurn::Lost => {
                    drop(pending);
                    return self.end_unwritten(request_id, request, io::ErrorKind::NotConnected.into());
                }
            }
            if remaining.is_some_and(|remaining| remaining.is_zero()) {
                let is_taken_back = pending.leave(request_id);
                drop(pending);
                if is_taken_back {
                    return Err(self.write_failed(io::ErrorKind::TimedOut.into()));
                }
                let failure = self.reply_timed_out();
                self.retire_after_timeout(&failure);
                return Err(failure);
            }
            let wake = WAKE.with(Arc::clone);
            *call.waiter() = ReplyWaiter::Thread { wake: Some(Arc::clone(&wake)), reply: None };
            match remaining {
                None => wake.wait(&mut pending),
                Some(remaining) => drop(wake.wait_for(&mut pending, remaining)),
            }
        }
    }

    /// Reads for all calls until this thread's own reply has come.
    fn read_until_reply(
        &self,
        reader: &mut MessageReader,
        request_id: u32,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure> {
        let _guard = CloseOnPanic(self);
        loop {
            let message = match reader.next(&*self.transport, deadline) {
                Ok(message) => message,
                Err(ReadError::TimedOut) => return Err(self.reply_timed_out()),
                Err(error) => return Err(self.close(self.read_failed(error))),
            };
            match self.parse_message(message, false) {
                Ok(Some(reply)) if reply.request_id == request_id => return Ok(reply),
                Ok(Some(reply)) => self.deliver(reply),
                Ok(None) => {}
                Err(end) => return Err(self.close(end)),
            }
        }
    }

    /// Whether the connection is open after a pause in which no call used it. Reads what the peer has sent
    /// meanwhile without waiting: in most cases nothing, or its end. If messages are awaited, another thread
    /// reads, and sees the end itself; so does the reactor if the peer may send requests.
    #[cold]
    pub(super) fn is_open_after_pause(&self) -> bool {
        /// A peer that sends on and on must not keep the caller, which has a deadline, and the lock of its pool.
        const MOST_MESSAGES: usize = 16;
        if self.accepts_callbacks() {
            return !self.is_retired();
        }
        let mut pending = self.pending.lock();
        let reader = if pending.half.is_free() { pending.reader.take() } else { None };
        drop(pending);
        let Some(mut reader) = reader else { return !self.is_retired() };
        let guard = CloseOnPanic(self);
        let outcome = self.read_available(&mut reader, (MOST_MESSAGES, false), || {});
        let outcome = outcome.map_err(|end| self.close(end));
        drop(guard);
        self.return_reader(reader, None, !matches!(outcome, Ok(false)));
        outcome.is_ok()
    }

    /// Reads the messages that have arrived, at most so many, and delivers the replies. Returns whether these were
    /// all; otherwise the reader may have buffered further ones. `end_read` runs after the last whole message of a read.
    /// `handle_shows_rest`: whether a reactor learns of further octets by the handle, so that no read has to show that
    /// there are none.
    fn read_available(
        &self,
        reader: &mut MessageReader,
        (most, handle_shows_rest): (usize, bool),
        end_read: impl Fn(),
    ) -> Result<bool, ConnectionEnd> {
        for _ in 0..most {
            match reader.next_ready(&*self.transport) {
                Ok(Some(message)) => {
                    if let Some(reply) = self.parse_message(message, true)? {
                        self.deliver(reply);
                    }
                    if reader.is_drained() {
                        end_read();
                        if handle_shows_rest {
                            return Ok(true);
                        }
                    }
                }
                Ok(None) => return Ok(true),
                Err(error) => return Err(self.read_failed(error)),
            }
        }
        Ok(false)
    }

    /// Reads the header of a reply, or the reason why none will come. Returns `None` for a request, which is
    /// dispatched: with the others of one read if this `is_batched`.
    // See `Reply::parse`.
    #[inline(always)]
    fn parse_message(&self, message: Message, is_batched: bool) -> Result<Option<Reply>, ConnectionEnd> {
        match message.header.message_type {
            MessageType::Reply | MessageType::LocateReply => {
                let version = message.header.version;
                Reply::parse(message).map(Some).map_err(|error| self.unreadable(error, version))
            }
            _ => self.dispatch_or_fail(message, is_batched),
        }
    }

    #[cold]
    fn dispatch_or_fail(&self, message: Message, is_batched: bool) -> Result<Option<Reply>, ConnectionEnd> {
        let message = match self.async_side() {
            Some(side) => side.dispatch(self, message, is_batched),
            None => Some(message),
        };
        let Some(message) = message else { return Ok(None) };
        Err(self.end_for_message(&message.header))
    }

    /// Puts the reader back, removes the entry of this thread's request, and hands reading over for pending
    /// calls. `has_taken_all`: the reactor calls, and has taken all available messages.
    #[inline]
    fn return_reader(&self, reader: Box<MessageReader>, request_id: Option<u32>, has_taken_all: bool) {
        let mut pending = self.pending.lock();
        if let Some(request_id) = request_id {
            pending.half.remove(request_id);
        }
        pending.reader = Some(reader);
        if !pending.half.is_free() {
            self.hand_over_reading(pending, has_taken_all);
        }
    }

    /// Hands reading over to a waiting thread, or to the reactor.
    fn hand_over_reading(&self, pending: MutexGuard<'_, PendingCalls>, has_taken_all: bool) {
        if pending.wake_next_reader() {
            return;
        }
        match self.async_side() {
            Some(side) => side.hand_over_reading(pending, has_taken_all),
            None => drop(pending),
        }
        if self.is_retired() {
            // A late reply may come that this thread would have read.
            self.unblock_writer();
        }
    }

    /// Delivers a reply to its waiter; one for an abandoned call is dropped.
    fn deliver(&self, reply: Reply) {
        let receiver = self.pending.lock().deliver(reply);
        if let Some((receiver, reply)) = receiver {
            let _scope = NotificationScope::begin(self);
            receiver.complete(Ok(Some(reply)));
        }
    }

    /// Whether the peer may send further requests: the connection is read at all times then.
    pub(crate) fn accepts_callbacks(&self) -> bool {
        self.is_bidirectional() && !self.is_retired()
    }

    /// Whether it may be closed once no call uses it: not with unwritten messages, nor if it is adopted or
    /// the peer may send requests over it.
    pub(crate) fn may_be_closed(&self) -> bool {
        let has_unsent = |writer: MutexGuard<'_, Writer>| writer.has_unsent() || self.has_queued();
        if self.writer.try_lock().is_none_or(|writer| has_unsent(writer) && !self.is_retired()) {
            return false;
        }
        !self.is_adopted() && !self.accepts_callbacks()
    }

    /// Whether messages are queued, which come before those of the threads that write now.
    #[inline]
    fn has_queued(&self) -> bool {
        self.async_side().is_some_and(|side| side.has_queued())
    }

    /// The asynchronous side, if the connection has a state for it.
    #[inline]
    fn async_side(&self) -> Option<&dyn AsyncSide> {
        if has_async_calls() { self.async_state.get().map(|side| &**side) } else { None }
    }

    /// Whether the peer may send requests. Such a connection is not idle because this side sends none.
    fn is_bidirectional(&self) -> bool {
        self.async_side().is_some_and(|side| side.is_bidirectional())
    }

    /// Whether the peer has opened the connection.
    fn is_adopted(&self) -> bool {
        self.async_side().is_some_and(|side| side.is_adopted())
    }

    /// Whether this thread is notifying a call of this connection: a call on it would wait for its own
    /// thread.
    #[inline]
    pub(crate) fn is_notifying_thread(&self) -> bool {
        NotificationScope::is_entered(self)
    }

    #[inline]
    fn retire_if_timed_out(&self, outcome: &Result<Reply, CallFailure>) {
        if let Err(failure) = outcome {
            self.retire_after_timeout(failure);
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.statistics.change(Level::ClientConnections, -i64::from(!self.is_adopted()));
        if let Some(side) = self.async_side() {
            side.flush_before_close(self);
            side.leave_reactor();
        }
        self.close_transport();
    }
}
