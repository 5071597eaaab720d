//! Connections on which both sides send requests (CORBA 3.3 Part 2, 9.8).
//!
//! A connection that this side has opened is read at all times, by a thread that waits for a reply or by the
//! reactor. Requests of the peer are passed to a [`CallbackDispatcher`], which runs them in other threads:
//! the reading thread may be waiting for a reply of its own.
//!
//! A connection that the peer has opened is *adopted*. Its [`AdoptedReader`] reads all messages and passes
//! the replies on; replies and requests are written under this side's lock.

use std::{
    sync::{OnceLock, Weak},
    time::Duration,
};

use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};
use spandrel_connection::{Incoming, Role, SentContexts, Urgency, classify};
use spandrel_giop::{GiopError, Message, MessageType, ServiceContext, SystemException, bare_message};
use spandrel_sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};
use spandrel_transport::{Address, Charge, Deadline, ReactorTransport, ReadError, send_octets};

use super::{super::Reply, CallFailure, ClientConnection, ReplyWaiter, Unsent, UnsentKind, Writer};
use crate::{
    client::{ClientReactor, task::Task, urgency::UrgencyScope},
    diagnostics::statistics::Statistics,
};

/// The id of messages that no call waits for. A request on an adopted connection may have the same id:
/// [`UnsentKind::Untracked`] tells them apart.
const NO_CALL: u32 = 1;
/// The id of the entry of a thread that waits for the connection's end.
const END_ENTRY: u32 = 3;

/// The time for writing a message that only announces the end.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// The receiver of requests that come over a connection that this side has opened.
pub trait CallbackDispatcher: Send + Sync + std::fmt::Debug {
    /// Accepts a Request, LocateRequest or CancelRequest. Must not wait: the caller reads for all calls. It may leave
    /// requests to [`dispatch_accepted`](Self::dispatch_accepted), which the caller calls before it waits for input, and
    /// when it stops reading.
    fn dispatch(&self, message: Message);

    /// Has the requests run that were accepted so far.
    fn dispatch_accepted(&self);

    /// Ends the dispatcher: no more requests come, and replies will not arrive.
    fn end(&self);

    /// Whether no request runs or waits, so that CloseConnection may be sent.
    fn is_idle(&self) -> bool;
}

/// The server side's reader of a connection that the client side shares (bidirectional GIOP).
pub trait AdoptedReader: Send + Sync + std::fmt::Debug {
    /// Ensures that a thread other than the caller reads. The caller is about to wait for a reply.
    ///
    /// # Errors
    /// TRANSIENT if no thread can.
    fn ensure_reading(&self) -> Result<(), SystemException>;

    /// Handles a broken write side: the peer will not understand anything that is written.
    fn cut(&self);

    /// Handles the end of the write queue: all waiting replies have been written.
    fn written(&self);

    /// Runs the notification of a call in a thread that reads no adopted connection.
    ///
    /// # Errors
    /// As those of `ClientReactor::run`.
    fn run_in_other_thread(&self, notify: Task) -> Result<(), SystemException>;
}

/// A connection's role in bidirectional use.
#[derive(Debug)]
pub(super) enum BidirectionalRole {
    /// This side has opened the connection.
    Opener(Arc<dyn CallbackDispatcher>),
    /// The peer has opened the connection.
    Adopted {
        adopted_reader: Weak<dyn AdoptedReader>,
        /// The code set context of this side's first request: one agreement holds for all.
        code_sets: OnceLock<Option<ServiceContext>>,
    },
}

impl ClientConnection {
    /// Makes a connection for this side's requests from one that the peer has opened. `adopted_reader` reads
    /// it.
    pub fn adopted(
        peer: Arc<Address>,
        transport: Arc<dyn ReactorTransport>,
        adopted_reader: Weak<dyn AdoptedReader>,
        statistics: Statistics,
    ) -> Self {
        let mut connection = Self::over(peer, transport, None, statistics);
        let role = BidirectionalRole::Adopted { adopted_reader, code_sets: OnceLock::new() };
        // It is new and has no role yet.
        let _ = connection.async_state().role.set(role);
        connection.next_request_id = AtomicU32::new(1);
        // The server counts the connection.
        connection.is_end_counted = AtomicBool::new(true);
        connection.sent_contexts = SentContexts::LISTEN_POINTS.bits().into();
        connection
    }

    /// Whether requests with this code set context may be sent on an adopted connection. The first call
    /// decides.
    pub fn accepts_code_sets(&self, sent: Option<&ServiceContext>) -> bool {
        match self.role() {
            Some(BidirectionalRole::Adopted { code_sets, .. }) => {
                code_sets.get_or_init(|| sent.cloned()).as_ref() == sent
            }
            _ => true,
        }
    }

    /// The connection's role, if it is used in both directions.
    pub(super) fn role(&self) -> Option<&BidirectionalRole> {
        self.find_async_state()?.role.get()
    }

    fn dispatcher(&self) -> Option<&Arc<dyn CallbackDispatcher>> {
        match self.role()? {
            BidirectionalRole::Opener(dispatcher) => Some(dispatcher),
            BidirectionalRole::Adopted { .. } => None,
        }
    }

    fn adopted_reader(&self) -> Option<Arc<dyn AdoptedReader>> {
        match self.role()? {
            BidirectionalRole::Opener(_) => None,
            BidirectionalRole::Adopted { adopted_reader, .. } => adopted_reader.upgrade(),
        }
    }

    /// Accepts requests of the peer from now on. The caller ensures that the connection is
    /// registered.
    pub fn accept_callbacks(&self, dispatcher: impl FnOnce() -> Arc<dyn CallbackDispatcher>) {
        let mut pending = self.pending.lock();
        if pending.half.ended().is_some() || self.is_bidirectional() {
            return;
        }
        self.async_state().role.get_or_init(|| BidirectionalRole::Opener(dispatcher()));
        pending.half.accept_requests();
        if pending.reader.is_some() {
            self.async_state().registration.want_input();
        }
        drop(pending);
        self.async_state().registration.update_interest(true);
    }

    /// Passes a request to the dispatcher, if the connection has one. `is_batched`: the caller calls
    /// [`dispatch_accepted_callbacks`](Self::dispatch_accepted_callbacks) after what one read has brought.
    pub(super) fn dispatch_callback(&self, message: Message, is_batched: bool) -> Option<Message> {
        let is_call = || {
            let incoming = classify(&message.header, Role::BidirectionalClient);
            matches!(incoming, Ok(Incoming::Request | Incoming::LocateRequest | Incoming::CancelRequest))
        };
        match self.dispatcher() {
            Some(dispatcher) if is_call() => {
                dispatcher.dispatch(message);
                if !is_batched {
                    dispatcher.dispatch_accepted();
                }
                None
            }
            _ => Some(message),
        }
    }

    /// Has the requests run that one read has brought.
    pub(super) fn dispatch_accepted_callbacks(&self) {
        if let Some(dispatcher) = self.dispatcher() {
            dispatcher.dispatch_accepted();
        }
    }

    /// Ends the dispatcher of a connection that has ended.
    pub(super) fn end_callbacks(&self) {
        if let Some(dispatcher) = self.dispatcher() {
            dispatcher.end();
        }
    }

    /// Sends CloseConnection on those connections whose peers may send requests, and waits up to `timeout` until
    /// they close.
    pub fn close_bidirectional(mut connections: Vec<Arc<Self>>, timeout: Duration) {
        connections.retain(|connection| connection.send_close());
        let deadline = Deadline::after(timeout);
        connections.iter().for_each(|connection| connection.await_end(&deadline));
    }

    /// Sends CloseConnection, if that leaves no request of either side in doubt. Nothing more is written
    /// then.
    fn send_close(&self) -> bool {
        let pending = self.pending.lock();
        let is_idle = pending.half.ended().is_none() && pending.half.pending() == 0;
        drop(pending);
        let is_idle = is_idle && self.dispatcher().is_some_and(|dispatcher| dispatcher.is_idle());
        if is_idle {
            // Closed because the ORB ends, like the other connections at shutdown, which are not counted either.
            self.is_end_counted.store(true, Ordering::Relaxed);
            self.retire();
            let close_connection = bare_message(GiopVersion::V1_2, ByteOrder::NATIVE, MessageType::CloseConnection);
            self.send_last(&close_connection, MessageType::CloseConnection, CLOSE_TIMEOUT);
            self.transport.close_writer();
        }
        is_idle
    }

    /// Waits until the peer has closed its side, too, so that input from it does not destroy the last message
    /// to it.
    fn await_end(&self, deadline: &Deadline) {
        if self.pending.lock().half.begin(END_ENTRY, ReplyWaiter::THREAD).is_err() {
            return;
        }
        // There is no reply to this: the connection ends, or the time is up.
        let _ = self.await_reply(END_ENTRY, &Encoder::new(Wire::default()), Some(deadline));
    }

    /// Sends a message without a body, if that is possible without waiting.
    pub fn send_control(&self, message_type: MessageType) {
        let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2));
        bare_message(GiopVersion::V1_2, ByteOrder::NATIVE, message_type).into_iter().for_each(|octet| out.u8(octet));
        self.write_untracked(NO_CALL, &out);
    }

    /// Writes a message that no call waits for, now or when there is room. Returns false if too many are queued.
    pub fn send_control_later(&self, message: &Encoder<'_>) -> bool {
        self.write_untracked(NO_CALL, message)
    }

    /// Writes a reply, or leaves the rest to a reactor. `charge`: the memory that the rest is counted
    /// against. `urgency`: its place among the messages that have not begun.
    pub fn answer(&self, answer: &Encoder<'_>, charge: Charge, urgency: Urgency) {
        let _urgency = UrgencyScope::enter(urgency);
        // If this fails, the connection ends.
        let _ = self.write_or_queue(NO_CALL, answer, UnsentKind::Untracked, usize::MAX, Some(charge));
    }

    /// The length beyond which a message is sent in fragments, in octets.
    pub fn fragment_size(&self) -> usize {
        self.fragment_size
    }

    /// Whether octets wait to be written.
    pub fn is_blocked(&self) -> bool {
        self.async_state().registration.wants_output()
    }

    /// Returns a number that changes with each write of queued octets; `None` while none are queued.
    pub fn write_progress(&self) -> Option<u64> {
        self.is_blocked().then(|| self.async_state().written.load(Ordering::Relaxed))
    }

    /// Registers the connection with the ORB's reactor, which writes the queued octets.
    ///
    /// # Errors
    /// NO_RESOURCES if the reactor cannot be started.
    pub fn write_in(self: &Arc<Self>, client_reactor: &ClientReactor) -> Result<(), SystemException> {
        client_reactor.register_connection(self)?;
        self.async_state().registration.update_interest(true);
        Ok(())
    }

    /// Handles the end of the write queue.
    pub(super) fn notify_written(&self) {
        if let Some(adopted_reader) = self.adopted_reader() {
            adopted_reader.written();
        }
    }

    /// Accepts a message that the reader of an adopted connection has read: a reply to a request of this
    /// side.
    ///
    /// # Errors
    /// If the message is no reply; the connection has to end.
    pub fn receive(self: &Arc<Self>, message: Message) -> Result<(), GiopError> {
        let reply = Reply::parse(message)?;
        let receiver = self.pending.lock().deliver(reply);
        if let Some((receiver, reply)) = receiver {
            match self.adopted_reader() {
                Some(adopted_reader) => self.complete_in_other_thread(&*adopted_reader, receiver, reply),
                None => receiver.complete(Ok(Some(reply))),
            }
        }
        Ok(())
    }

    /// Ends an adopted connection that the peer has closed. `is_orderly`: by CloseConnection, so that
    /// unanswered requests were not executed.
    pub fn end_of_input(&self, is_orderly: bool) {
        let end = match is_orderly {
            true => self.closed_by_peer(),
            false => self.read_failed(ReadError::EndOfFile),
        };
        self.close(end);
    }

    /// Writes a last message, if that is possible within `limit`.
    pub fn send_last(&self, octets: &[u8], message_type: MessageType, limit: Duration) {
        let Some(mut writer) = self.writer.try_lock_for(limit) else { return };
        let Writer { timeout, half, unsent } = &mut *writer;
        if !half.may_write() || self.transport.set_send_timeout(Some(limit)).is_err() {
            return;
        }
        *timeout = Some(limit);
        let rest = Unsent::find(unsent).and_then(|unsent| unsent.rest.as_mut());
        let before = rest.map_or(Ok(()), |rest| rest.write_whole(self, &mut || Ok(())));
        match before.and_then(|()| send_octets(&*self.transport, octets)) {
            Ok(()) if message_type == MessageType::CloseConnection => {
                half.close(false);
            }
            Ok(()) => {}
            Err(_) => half.cut(),
        }
    }

    /// Closes the transport: the peer would not understand anything further. The reading thread sees the end.
    pub fn cut(&self) {
        self.retire();
        self.transport.close();
    }

    /// Whether no more input comes.
    pub fn is_closed(&self) -> bool {
        self.pending.lock().half.ended().is_some()
    }

    /// Handles a request that could not be written. The connection stays in use if no octet of it was
    /// written.
    pub(super) fn retire_after_failed_write(&self) {
        let Some(adopted_reader) = self.adopted_reader() else { return self.retire() };
        if self.writer.try_lock().is_none_or(|writer| writer.half.may_write()) {
            return;
        }
        self.retire();
        adopted_reader.cut();
    }

    /// Before a thread waits for a reply: another thread has to read an adopted connection.
    #[inline]
    pub(super) fn ensure_reading(&self, request_id: u32) -> Result<(), CallFailure> {
        let Some(adopted_reader) = self.adopted_reader() else { return Ok(()) };
        adopted_reader.ensure_reading().map_err(|exception| {
            self.pending.lock().half.remove(request_id);
            CallFailure::new(exception)
        })
    }
}
