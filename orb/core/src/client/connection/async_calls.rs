//! Asynchronous calls: no thread waits for their replies.
//!
//! Their replies are read by the thread that has the reader role. Without one, the reactor reads: it calls
//! [`serve_ready`] for input and [`write_ready`] for room to write.
//! Nothing here waits. Octets that the transport does not take at once stay with the connection, and are
//! written before all later messages.
//!
//! With several calls in flight a request is appended ([`SendHalf::appends`]): the reactor writes all of them together,
//! after it has delivered the replies that it has read. Each queued message makes the registration want output, and only
//! the reactor takes that back once the queue is empty: so the reactor writes what no other thread has written.
//! A thread that writes a message of its own writes the queue first, except the one that has the reader role as well
//! (`call_exclusive`). That thread must write only its own request: the replies to others could fill the connection while
//! it waits for room. Requests are queued behind it.
//!
//! No receiver is notified while a lock is held: it may call again at once.
//!
//! At most `-ORBBufferLimit` octets and `-ORBPendingRequests` requests wait for a server that does not read
//! ([`buffer_limit_exceeded`]).

mod arrived_replies;
mod bidirectional;
mod flow_control;
mod kept_turns;
mod one_way_buffer;
mod registration;
mod run;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod unsent;
mod wake_batch;

use std::{any::Any, io, sync::OnceLock};

use spandrel_cdr::{Encoder, GiopVersion, Wire};
use spandrel_connection::{Abandoned, ConnectionEnd, EndCause, SendHalf, SentContexts, Written};
use spandrel_giop::{CancelRequest, CompletionStatus, Fragments, Message, SystemException, minor};
use spandrel_sync::{Arc, Mutex, MutexGuard, atomic::AtomicU64};
use spandrel_transport::Charge;

use super::super::{WriteLimits, urgency};
use super::{
    AsyncSide, CallFailure, ClientConnection, CloseOnPanic, UnsentState, Writer,
    async_side::HAS_ASYNC_SIDE,
    pending_calls::{PendingCalls, ReplyReceiver, ReplyWaiter},
};
use arrived_replies::ArrivedReplies;
use bidirectional::BidirectionalRole;
pub use bidirectional::{AdoptedReader, CallbackDispatcher};
use flow_control::FlowWaiters;
pub(crate) use kept_turns::KeptTurns;
pub(crate) use one_way_buffer::OneWayBuffer;
use registration::{MOST_AT_ONCE, Registration, WRITER_LOCK_TIMEOUT};
pub(crate) use registration::{ReactorRegistration, serve_ready, write_ready};
use run::Run;
pub(crate) use unsent::UnsentKind;
use unsent::{Unsent, UnsentMessage, WriteQueue};
pub(crate) use wake_batch::wake;

/// The most messages that may be queued when another one without a waiting call is written.
const MAX_UNTRACKED: usize = 1024;

/// A connection's state for asynchronous calls.
#[derive(Debug, Default)]
struct ConnectionState {
    /// Their messages that are still to be written.
    write_queue: Mutex<WriteQueue>,
    /// The number of writes by the reactor.
    written: AtomicU64,
    registration: Registration,
    /// The role in bidirectional use.
    role: OnceLock<BidirectionalRole>,
    /// The replies that an adopted connection has received.
    arrived: ArrivedReplies,
    flow_waiters: FlowWaiters,
}

/// Records that there are asynchronous calls, before the first of them.
pub(crate) fn plug_in() {
    HAS_ASYNC_SIDE.get_or_init(|| ());
}

impl AsyncSide for ConnectionState {
    fn is_bidirectional(&self) -> bool {
        self.role.get().is_some()
    }

    fn is_adopted(&self) -> bool {
        matches!(self.role.get(), Some(BidirectionalRole::Adopted { .. }))
    }

    fn ensure_reading(&self, connection: &ClientConnection, request_id: u32) -> Result<(), CallFailure> {
        connection.ensure_reading(request_id)
    }

    fn hand_over_reading(&self, pending: MutexGuard<'_, PendingCalls>, has_taken_all: bool) {
        if pending.needs_reactor() {
            let is_drained = has_taken_all || pending.reader.as_ref().is_none_or(|reader| reader.is_drained());
            self.registration.want_input();
            drop(pending);
            self.registration.update_interest(is_drained);
        }
    }

    fn dispatch(&self, connection: &ClientConnection, message: Message, is_batched: bool) -> Option<Message> {
        connection.dispatch_callback(message, is_batched)
    }

    fn has_queued(&self) -> bool {
        // A thread tells of output after it has queued its message.
        self.registration.wants_output() && !self.write_queue.lock().messages.is_empty()
    }

    fn send_first(
        &self,
        connection: &ClientConnection,
        unsent: &mut Option<Box<dyn UnsentState>>,
        message: &Encoder<'_>,
        update_timeout: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<bool> {
        let is_queued = self.has_queued();
        if let Some(unsent) = Unsent::find(unsent) {
            match &mut unsent.rest {
                Some(batch) if batch.is_batch() && message.position() <= connection.fragment_size && !is_queued => {
                    return OneWayBuffer::of(connection).send_after(unsent, message, update_timeout).map(|()| true);
                }
                Some(rest) => rest.write_whole(connection, update_timeout)?,
                None => {}
            }
        }
        if is_queued {
            connection.write_queue_whole(Unsent::get_or_make(unsent), update_timeout)?;
        }
        Ok(false)
    }

    fn write_failed(&self, connection: &ClientConnection) {
        connection.retire_after_failed_write();
        connection.fail_unsent();
    }

    fn flush_before_close(&self, connection: &ClientConnection) {
        OneWayBuffer::of(connection).write_last();
    }

    fn leave_reactor(&self) {
        self.registration.leave();
        self.flow_waiters.notify();
    }

    fn end_callbacks(&self, connection: &ClientConnection) {
        self.flow_waiters.notify();
        connection.end_callbacks();
    }
}

impl ClientConnection {
    /// The state of asynchronous calls, which the first of them makes.
    fn async_state(&self) -> &ConnectionState {
        let state: &dyn Any = &**self.async_state.get_or_init(|| {
            plug_in();
            Box::<ConnectionState>::default()
        });
        state.downcast_ref().expect("there is one kind")
    }

    /// The state of asynchronous calls, if there was one.
    fn find_async_state(&self) -> Option<&ConnectionState> {
        let state: &dyn Any = &**self.async_state.get()?;
        state.downcast_ref()
    }

    /// Whether the connection is registered with a reactor.
    pub(crate) fn is_registered(&self) -> bool {
        self.find_async_state().is_some_and(|state| state.registration.is_registered())
    }

    /// Registers the connection with a reactor, unless it is registered.
    ///
    /// # Errors
    /// Those of `register`.
    pub(crate) fn register_with(
        self: &Arc<Self>,
        register: impl FnOnce(&Arc<Self>) -> io::Result<Arc<dyn ReactorRegistration>>,
    ) -> io::Result<()> {
        self.async_state().registration.register_with(|| register(self))
    }

    /// The transport that a reactor waits on.
    pub fn transport(&self) -> &Arc<dyn crate::client::transport::ConnectionTransport> {
        &self.transport
    }

    /// Marks the code sets as sent, after the reply to a request with that context.
    pub(crate) fn mark_code_sets_received(&self) {
        self.mark_sent(SentContexts::CODE_SETS);
    }

    /// Sends a request without waiting. `receiver` is given the outcome, unless this fails.
    ///
    /// # Errors
    /// If it cannot be sent on this connection: the peer has not acted on it. TRANSIENT at one of the limits.
    pub(crate) fn send_async(
        &self,
        request_id: u32,
        request: &Encoder<'_>,
        kind: UnsentKind,
        receiver: Arc<dyn ReplyReceiver>,
        bounds: WriteLimits,
    ) -> Result<(), CallFailure> {
        // Made before the call has an entry: a thread that ends the connection fails the calls only if there is one.
        self.async_state();
        let (others, may_append);
        {
            let mut pending = self.pending.lock();
            pending.half.check_open()?;
            others = pending.half.pending();
            if others >= bounds.requests {
                return Err(self.too_many_pending(bounds.requests));
            }
            may_append = kind == UnsentKind::TwoWay && SendHalf::may_append(others);
            // Another thread may write an appended request at any time, and then records the contrary.
            let written = if may_append { Written::Partly } else { Written::Whole };
            let begun = pending.half.begin_written(request_id, receiver.into(), written);
            debug_assert!(begun.is_ok(), "it was open under the same lock");
            if pending.reader.is_some() {
                self.async_state().registration.want_input();
            }
        }
        self.async_state().registration.update_interest(true);
        if may_append {
            if self.append(request_id, request, others, bounds.octets) {
                return Ok(());
            }
            self.mark_written(request_id, Written::Whole);
        }
        self.write_or_queue(request_id, request, kind, bounds.octets, None)
    }

    /// Appends a request to those that the reactor writes together, if that is so with `others` in flight.
    fn append(&self, request_id: u32, request: &Encoder<'_>, others: usize, limit: usize) -> bool {
        let len = request.position();
        if len > self.fragment_size || self.is_retired() {
            return false;
        }
        let state = self.async_state();
        let mut write_queue = state.write_queue.lock();
        let appended = write_queue.octets;
        // Another thread that writes is followed by what is queued. Not waited for: that thread may wait for the queue.
        let appends = appended.saturating_add(len) <= limit
            && self.writer.try_lock().is_none_or(|writer| writer.half.appends(others, appended, len));
        if appends {
            // As far as the write side was open just now; it fails what is queued when it ends.
            let message = UnsentMessage::appended(write_queue.take_spare(), request_id, request);
            write_queue.push(message);
            drop(write_queue);
            state.registration.want_output();
        }
        appends
    }

    /// Writes as much as the transport takes without waiting, and leaves the rest to the reactor. Fails if
    /// more than `limit` octets would be unwritten then. `charge`: the memory that the rest is counted
    /// against.
    fn write_or_queue(
        &self,
        request_id: u32,
        message: &Encoder<'_>,
        kind: UnsentKind,
        limit: usize,
        mut charge: Option<Charge>,
    ) -> Result<(), CallFailure> {
        let fragments = self.fragments(message);
        // A reply, which is counted against a limit, has its place among urgent requests.
        let of_reply = charge.as_ref().map(|_| urgency::current());
        let mut unsent = |at| {
            let message = UnsentMessage::new(request_id, message, fragments.as_ref(), at, kind);
            UnsentMessage { urgency: of_reply.unwrap_or(message.urgency), _charge: charge.take(), ..message }
        };
        let mut queue = || {
            self.queue(unsent(0), limit)
                .or_else(|octets| self.refuse(request_id, |this| this.buffer_limit_exceeded(octets, limit)))
        };
        let Some(mut writer) = self.writer.try_lock() else { return queue() };
        if kind == UnsentKind::Untracked && !writer.half.may_write() {
            return Ok(());
        }
        if !writer.half.may_write() || self.is_retired() && kind != UnsentKind::Untracked {
            drop(writer);
            return self.refuse(request_id, |this| this.write_failed(io::ErrorKind::NotConnected.into()));
        }
        if writer.has_unsent() {
            drop(writer);
            return queue();
        }
        let is_next = if self.has_queued() { self.write_queue_ready(&mut writer) } else { Ok(true) };
        match is_next {
            Ok(true) => {}
            Ok(false) => {
                drop(writer);
                return queue();
            }
            Err(error) => {
                drop(writer);
                if kind != UnsentKind::Untracked {
                    self.mark_written(request_id, Written::Partly);
                }
                self.end_with_peer_reason(error);
                return Ok(());
            }
        }
        let (sent, len) = match &fragments {
            None => (self.transport.try_send_v(&message.parts()), message.position()),
            Some(fragments) => (self.transport.try_send_v(&fragments.slices(message)), fragments.total_len()),
        };
        match sent {
            Ok(sent) if sent == len => {
                drop(writer);
                if kind == UnsentKind::OneWay {
                    self.acknowledge(request_id);
                }
                Ok(())
            }
            Ok(sent) => {
                if kind != UnsentKind::Untracked {
                    self.mark_written(request_id, Written::Partly);
                }
                Unsent::get_or_make(&mut writer.unsent).rest = Some(unsent(sent));
                drop(writer);
                self.async_state().registration.want_output();
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                drop(writer);
                queue()
            }
            Err(error) => {
                writer.half.cut();
                drop(writer);
                if kind != UnsentKind::Untracked {
                    self.mark_written(request_id, Written::Partly);
                }
                self.end_with_peer_reason(error);
                Ok(())
            }
        }
    }

    /// Writes the queued messages without waiting, before one that this thread writes. Returns whether the transport
    /// has taken all of them.
    fn write_queue_ready(&self, writer: &mut Writer) -> io::Result<bool> {
        let write_queue = &self.async_state().write_queue;
        loop {
            let mut run = Run::take(write_queue);
            if !run.has_unwritten() {
                run.put_back(write_queue);
                return Ok(true);
            }
            let sent = run.write(self, |parts| self.transport.try_send_v(parts));
            let unsent = Unsent::get_or_make(&mut writer.unsent);
            run.settle(unsent, &self.statistics);
            let is_partial = unsent.rest.is_some();
            run.put_back(write_queue);
            match sent {
                Ok(()) if is_partial => return Ok(false),
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => {
                    writer.half.cut();
                    return Err(error);
                }
            }
        }
    }

    /// Writes the queued messages, by a thread that waits for room to write a message of its own.
    fn write_queue_whole(
        &self,
        unsent: &mut Unsent,
        update_timeout: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let write_queue = &self.async_state().write_queue;
        loop {
            let mut run = Run::take(write_queue);
            let had_unwritten = run.has_unwritten();
            let mut sent = Ok(());
            while sent.is_ok() && run.has_unwritten() {
                sent = update_timeout().and_then(|()| run.write(self, |parts| self.transport.send_v(parts)));
            }
            if sent.is_ok() {
                run.settle(unsent, &self.statistics);
            }
            run.put_back(write_queue);
            if sent.is_err() || !had_unwritten {
                return sent;
            }
        }
    }

    /// Divides a message into fragments, if it is longer than the fragment size.
    fn fragments(&self, message: &Encoder<'_>) -> Option<Fragments> {
        if message.position() > self.fragment_size {
            return Fragments::of(message, self.fragment_size);
        }
        None
    }

    /// Writes a message that no call waits for, now or when there is room. Returns false if too many are queued.
    fn write_untracked(&self, request_id: u32, message: &Encoder<'_>) -> bool {
        self.async_state().write_queue.lock().messages.len() < MAX_UNTRACKED
            && self.write_or_queue(request_id, message, UnsentKind::Untracked, usize::MAX, None).is_ok()
    }

    /// Fails a request that cannot be written here, without reading the peer's reason first.
    fn refuse(&self, request_id: u32, reason: impl FnOnce(&Self) -> CallFailure) -> Result<(), CallFailure> {
        let removed = self.pending.lock().half.abandon(request_id, true);
        // If the connection was closed meanwhile, the receiver has been notified.
        if matches!(removed, Abandoned::Unknown) { Ok(()) } else { Err(reason(self)) }
    }

    /// Queues a message, because another thread writes or the transport has no room.
    ///
    /// # Errors
    /// The number of octets that are queued already, if they reach the limit.
    fn queue(&self, message: UnsentMessage, limit: usize) -> Result<(), usize> {
        // Recorded before another thread can write it, because that thread records the contrary.
        message.mark_written(self, Written::Partly);
        let mut write_queue = self.async_state().write_queue.lock();
        if write_queue.octets > 0
            && write_queue.octets + message.octets.len() > limit
            && message.kind != UnsentKind::Untracked
        {
            return Err(write_queue.octets);
        }
        write_queue.push(message);
        drop(write_queue);
        self.async_state().registration.want_output();
        Ok(())
    }

    /// Records whether the transport has taken the request's last octet, or may have.
    fn mark_written(&self, request_id: u32, written: Written) {
        self.pending.lock().half.set_written(request_id, written);
    }

    /// Completes a one-way that the transport has taken.
    fn acknowledge(&self, request_id: u32) {
        let waiter = self.pending.lock().half.remove(request_id);
        if let Some(ReplyWaiter::Task(receiver)) = waiter {
            receiver.complete(Ok(None));
        }
    }

    /// Ends the connection after a failed write, with the peer's reason if one has arrived. All calls fail.
    fn end_with_peer_reason(&self, error: io::Error) {
        self.retire();
        let reader = self.pending.lock().reader.take();
        let Some(mut reader) = reader else {
            // The reading thread sees the end by itself.
            return self.fail_unsent();
        };
        let guard = CloseOnPanic(self);
        let sent = self.read_available(&mut reader, (MOST_AT_ONCE, false), || {});
        drop(guard);
        let end = sent.err().unwrap_or_else(|| {
            let exception = SystemException::comm_failure(0, CompletionStatus::Maybe)
                .with_detail(|| format!("writing to {} failed", self.peer))
                .with_source(error);
            ConnectionEnd { cause: EndCause::Failed, exception }
        });
        self.close(end);
        self.return_reader(reader, None, true);
        self.fail_unsent();
    }

    /// Fails the calls whose requests can no longer be written, if the write side is broken.
    fn fail_unsent(&self) {
        // If the lock is held, nothing is broken yet, or its holder calls this after breaking it.
        let Some(mut writer) = self.writer.try_lock() else { return };
        if writer.half.may_write() {
            return;
        }
        let queued = std::mem::take(&mut *self.async_state().write_queue.lock());
        let unwritten: Vec<UnsentMessage> = Unsent::find(&mut writer.unsent)
            .and_then(|unsent| unsent.rest.take())
            .into_iter()
            .chain(queued.messages)
            .collect();
        drop(writer);
        unwritten.iter().for_each(|message| OneWayBuffer::of(self).record_lost(message));
        let unwritten_one_ways =
            unwritten.iter().filter(|message| message.is_whole() && message.kind == UnsentKind::OneWay);
        unwritten_one_ways.for_each(|message| self.acknowledge(message.request_id));
        if unwritten.is_empty() {
            return;
        }
        let is_unwritten = |id| {
            unwritten.iter().any(|message| message.has_receiver() && message.request_id == id && !message.is_whole())
        };
        let (tasks, loss) = self.pending.lock().half.fail_unwritten(is_unwritten, ReplyWaiter::is_thread);
        let exception = SystemException::comm_failure(0, CompletionStatus::No);
        let exception = exception.with_detail(|| format!("writing to {} was interrupted", self.peer));
        let failure = CallFailure::of(loss, exception);
        tasks.into_iter().filter_map(ReplyWaiter::task).for_each(|receiver| receiver.complete(Err(failure.clone())));
    }

    /// Abandons a request: its reply is dropped. Returns true if the peer may have the request.
    ///
    /// `wire`: the encoding of the request, if the peer is to be sent a CancelRequest. `retires`: the
    /// connection is not used for further calls, as after a time-out.
    pub(crate) fn abandon(&self, request_id: u32, wire: Option<Wire>, retires: bool) -> bool {
        if retires {
            self.retire_unread();
        }
        let wire = wire.filter(|wire| wire.version >= GiopVersion::V1_2);
        if let Some(wire) = wire
            && let Some(mut writer) = self.writer.try_lock_for(WRITER_LOCK_TIMEOUT)
            && Unsent::abort(&mut writer.unsent, request_id, wire)
        {
            // There will be no reply.
            let removed = self.pending.lock().half.abandon(request_id, true);
            drop(removed);
            return false;
        }
        let mut write_queue = self.async_state().write_queue.lock();
        let unwritten =
            write_queue.messages.iter().position(|message| message.has_receiver() && message.request_id == request_id);
        let unwritten = unwritten.and_then(|at| write_queue.take(at));
        drop(write_queue);
        let mut pending = self.pending.lock();
        let abandoned = pending.half.abandon(request_id, unwritten.is_some());
        let is_excessive = pending.half.has_too_many_abandoned();
        drop(pending);
        // Destructors of waiters may run code of the application.
        match abandoned {
            Abandoned::Unknown => return true,
            Abandoned::NotSent(_) => return false,
            Abandoned::InDoubt(_) => {}
        }
        if is_excessive {
            self.retire();
        }
        // Also if the transport has taken a part only: the rest follows, before messages of others.
        let Some(wire) = wire else { return true };
        let mut out = Encoder::new(wire);
        if (CancelRequest { request_id }).encode(&mut out).is_ok() {
            // It may be lost: the server then completes a request whose reply is dropped.
            let _ = self.write_or_queue(request_id, &out, UnsentKind::Untracked, usize::MAX, None);
        }
        true
    }

    /// Closes the connection from this side. `minor`: the minor code of the COMM_FAILURE of calls that wait.
    pub fn end_for(&self, minor: u32, reason: &str) {
        let detail = || format!("cannot read replies of {}: {reason}", self.peer);
        let exception = SystemException::comm_failure(minor, CompletionStatus::Maybe).with_detail(detail);
        self.close(ConnectionEnd { cause: EndCause::Failed, exception });
    }

    fn too_many_pending(&self, limit: usize) -> CallFailure {
        self.statistics.refused_pending();
        let detail =
            || format!("{limit} requests to {} wait for their replies, the limit (`-ORBPendingRequests`)", self.peer);
        CallFailure::new(SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No).with_detail(detail))
    }

    fn buffer_limit_exceeded(&self, octets: usize, limit: usize) -> CallFailure {
        self.statistics.refused_memory();
        let detail = || {
            format!(
                "{} does not read: {octets} octets wait to be written, and the limit is {limit} (`-ORBBufferLimit`)",
                self.peer
            )
        };
        CallFailure::new(SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No).with_detail(detail))
    }
}
