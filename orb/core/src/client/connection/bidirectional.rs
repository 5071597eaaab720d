//! Connections on which both sides send requests (CORBA 3.3 Part 2, 9.8).
//!
//! One that this side has opened is read from at all times, by whoever waits for a reply or by the reactor, and the requests that come are
//! handed to a [`CallbackDispatcher`], which runs them elsewhere: whoever reads may be waiting for a reply of its own. One that the
//! other side has opened is *adopted*: its owner, the [`AdoptedReader`], reads everything and hands the replies in; answers and
//! requests are written past one lock, which is this side's.

use std::{
    sync::{OnceLock, Weak},
    task::Poll,
    time::Duration,
};

use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};
use spandrel_giop::{GiopError, Message, MessageType, ServiceContext, SystemException, bare_message};
use spandrel_sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};
use spandrel_transport::{Address, Charge, Deadline, ReactorTransport, ReadError, send_octets};

use super::{CallFailure, ClientConnection, Reply, ReplyWaiter, UnsentKind, Waiter, Writer, sent_contexts};
use crate::{client::ClientReactor, statistics::Statistics, task::Task};

/// The id of the entry that stands for the peer. Those of requests that this side sends are even.
const PEER: u32 = 1;
/// That of a thread that waits for the connection's end.
const END: u32 = 3;

/// How long a peer is waited for to take a message that only tells it of the end.
const COURTESY: Duration = Duration::from_millis(200);

/// Who takes the requests that come over a connection that this side has opened.
pub(crate) trait CallbackDispatcher: Send + Sync + std::fmt::Debug {
    /// A Request, LocateRequest or CancelRequest has come. Must not wait, since the caller reads for others.
    fn take(&self, message: Message);

    /// Nothing more will come, and answers will not arrive.
    fn end(&self);

    /// True if nothing runs or waits, so that it can be said that nothing was left undone.
    fn is_idle(&self) -> bool;
}

/// Who reads an adopted connection.
pub(crate) trait AdoptedReader: Send + Sync + std::fmt::Debug {
    /// A thread is about to wait for a reply: somebody must read until it has come, also if this thread is the one that would.
    ///
    /// # Errors
    /// TRANSIENT if nobody can.
    fn ensure_reading(&self) -> Result<(), SystemException>;

    /// Nothing that is written will be understood any more.
    fn cut(&self);

    /// All answers that waited have been written.
    fn written(&self);

    /// Runs what tells calls that something has come for them, in a thread that reads no connection of this kind.
    ///
    /// # Errors
    /// As those of [`ClientReactor::run`](crate::client::Station::run).
    fn run_in_other_thread(&self, tell: Task) -> Result<(), SystemException>;
}

/// What makes a connection bidirectional.
#[derive(Debug, Default)]
pub(super) struct BidirectionalUse(OnceLock<ReaderRole>);

#[derive(Debug)]
enum ReaderRole {
    /// This side has opened it.
    Opener(Arc<dyn CallbackDispatcher>),
    /// The other side has.
    Adopted {
        adopted_reader: Weak<dyn AdoptedReader>,
        /// What this side's requests say of code sets, once one was to be sent: there is one agreement for all of them.
        code_sets: OnceLock<Option<ServiceContext>>,
    },
}

impl ClientConnection {
    /// A connection that the peer has opened, for requests of this side. `adopted_reader` reads it.
    pub(crate) fn adopted(
        peer: Arc<Address>,
        transport: Arc<dyn ReactorTransport>,
        adopted_reader: Weak<dyn AdoptedReader>,
        statistics: Statistics,
    ) -> Self {
        let mut connection = Self::over(peer, transport, None, statistics);
        connection.both_ways =
            BidirectionalUse(ReaderRole::Adopted { adopted_reader, code_sets: OnceLock::new() }.into());
        connection.next_request_id = AtomicU32::new(1);
        // It is the server's connection, and counted there.
        connection.is_end_counted = AtomicBool::new(true);
        connection.sent = sent_contexts::LISTEN_POINTS.into();
        connection
    }

    /// True if the peer may send requests. Such a connection is not idle because this side sends none.
    #[inline]
    pub(crate) fn is_bidirectional(&self) -> bool {
        self.both_ways.0.get().is_some()
    }

    /// True if the peer may send requests, and may go on to do so.
    pub(crate) fn is_open_both_ways(&self) -> bool {
        self.is_bidirectional() && !self.is_retired()
    }

    /// True if the peer has opened it.
    pub(crate) fn is_adopted(&self) -> bool {
        matches!(self.both_ways.0.get(), Some(ReaderRole::Adopted { .. }))
    }

    /// Whether requests that say this of code sets may be sent on an adopted connection. They are the only ones from then on.
    pub(crate) fn accepts_code_sets(&self, sent: Option<&ServiceContext>) -> bool {
        match self.both_ways.0.get() {
            Some(ReaderRole::Adopted { code_sets, .. }) => code_sets.get_or_init(|| sent.cloned()).as_ref() == sent,
            _ => true,
        }
    }

    fn called(&self) -> Option<&Arc<dyn CallbackDispatcher>> {
        match self.both_ways.0.get()? {
            ReaderRole::Opener(called) => Some(called),
            ReaderRole::Adopted { .. } => None,
        }
    }

    fn adopted_reader(&self) -> Option<Arc<dyn AdoptedReader>> {
        match self.both_ways.0.get()? {
            ReaderRole::Opener(_) => None,
            ReaderRole::Adopted { adopted_reader, .. } => adopted_reader.upgrade(),
        }
    }

    /// Takes requests from now on. Somebody has to see to it that there is a [seat](Self::take_seat).
    pub(crate) fn take_calls(&self, called: impl FnOnce() -> Arc<dyn CallbackDispatcher>) {
        let mut pending = self.pending.lock();
        if pending.closed.is_some() || self.is_bidirectional() {
            return;
        }
        self.both_ways.0.get_or_init(|| ReaderRole::Opener(called()));
        pending.waiters.push(Waiter { request_id: PEER, reply: None, waiter: ReplyWaiter::Peer });
        if pending.reader.is_some() {
            self.want_input();
        }
        drop(pending);
        self.update_interest(true);
    }

    /// Hands a request on, if this connection is one for requests.
    pub(super) fn dispatch_callback(&self, message: Message) -> Option<Message> {
        let is_call = matches!(
            message.header.message_type,
            MessageType::Request | MessageType::LocateRequest | MessageType::CancelRequest
        );
        match self.called() {
            Some(called) if is_call => {
                called.take(message);
                None
            }
            _ => Some(message),
        }
    }

    /// The connection has ended.
    pub(super) fn end_calls(&self) {
        if let Some(called) = self.called() {
            called.end();
        }
    }

    /// Tells the peer that the connection ends, if that leaves no request of either side in doubt. Nothing more is written then.
    pub(crate) fn send_close(&self) -> bool {
        let is_idle = self.pending.lock().waiters.len() == 1 && self.called().is_some_and(|called| called.is_idle());
        if is_idle {
            // Closed because the ORB ends, like the other connections at shutdown, which are not counted either.
            self.is_end_counted.store(true, Ordering::Relaxed);
            self.retire();
            let close_connection = bare_message(GiopVersion::V1_2, ByteOrder::NATIVE, MessageType::CloseConnection);
            self.send_last(&close_connection, COURTESY);
            self.transport.close_writer();
        }
        is_idle
    }

    /// Waits until the peer has closed its side, too, so that what was said to it last is not destroyed by what it sends meanwhile.
    pub(crate) fn await_end(&self, deadline: &Deadline) {
        self.pending.lock().waiters.push(Waiter { request_id: END, reply: None, waiter: ReplyWaiter::Thread(None) });
        // There is no reply to this: the connection ends, or the time is up.
        let _ = self.await_reply(END, Some(deadline));
    }

    /// Says something that nobody answers, if it can be said without waiting.
    pub(crate) fn send_control(&self, message_type: MessageType) {
        let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2));
        bare_message(GiopVersion::V1_2, ByteOrder::NATIVE, message_type).into_iter().for_each(|octet| out.u8(octet));
        self.hint(PEER, &out);
    }

    /// Writes what the peer may miss, now or when there is room. False if it takes none of it.
    pub(crate) fn send_control_later(&self, message: &Encoder<'_>) -> bool {
        self.hint(PEER, message)
    }

    /// Writes an answer, or leaves it to a reactor where the transport does not take it at once. `charge`: what it is counted against meanwhile.
    pub(crate) fn answer(&self, answer: &Encoder<'_>, charge: Charge) {
        // Where it fails, the connection ends.
        let _ = self.write_soon(PEER, answer, UnsentKind::Hint, usize::MAX, Some(charge));
    }

    /// Whether something waits to be written.
    pub(crate) fn is_blocked(&self) -> bool {
        self.async_writes.wants_output()
    }

    /// Changes with what is written of what waits; `None` while nothing waits.
    pub(crate) fn write_progress(&self) -> Option<u64> {
        self.is_blocked().then(|| self.async_writes.written())
    }

    /// Has the ORB's reactor write what waits.
    ///
    /// # Errors
    /// NO_RESOURCES if there is none.
    pub(crate) fn write_in(self: &Arc<Self>, client_reactor: &ClientReactor) -> Result<(), SystemException> {
        client_reactor.registration(self)?;
        self.update_interest(true);
        Ok(())
    }

    /// All that waited has been written.
    pub(super) fn notify_written(&self) {
        if let Some(adopted_reader) = self.adopted_reader() {
            adopted_reader.written();
        }
    }

    /// The peer has sent a message that only replies to requests of this side: for an adopted connection, whose feeder has read it.
    ///
    /// # Errors
    /// What the message is instead; the connection has to end.
    pub(crate) fn receive(&self, message: Message) -> Result<(), GiopError> {
        let reply = Reply::parse(message)?;
        let receiver = self.pending.lock().deliver(reply);
        if let Some((receiver, reply)) = receiver {
            self.notify_in_other_thread(move || receiver.done(Ok(Some(reply))));
        }
        Ok(())
    }

    /// What is told may call this peer again, and wait for a reply that this thread would have to read.
    fn notify_in_other_thread(&self, tell: impl FnOnce() + Send + 'static) {
        let Some(adopted_reader) = self.adopted_reader() else { return tell() };
        let mut tell = Some(tell);
        let receiver = adopted_reader.run_in_other_thread(Box::pin(std::future::poll_fn(move |_| {
            if let Some(tell) = tell.take() {
                tell();
            }
            Poll::Ready(())
        })));
        if let Err(exception) = receiver {
            tracing::error!(%exception, "no thread to tell a call of its reply");
        }
    }

    /// Nothing more will be fed, because the peer has gone. `is_orderly`: it has said that what it has not answered it has not acted on.
    pub(crate) fn end_of_input(&self, is_orderly: bool) {
        let failure = match is_orderly {
            true => self.is_no_reply(MessageType::CloseConnection, GiopVersion::V1_2),
            false => self.read_failed(ReadError::EndOfFile),
        };
        self.close(failure);
    }

    /// Tells the other side of the end, if that can be said soon.
    pub(crate) fn send_last(&self, octets: &[u8], courtesy: Duration) {
        let Some(mut writer) = self.writer.try_lock_for(courtesy) else { return };
        let Writer { timeout, is_cut, rest, .. } = &mut *writer;
        if *is_cut || self.transport.set_send_timeout(Some(courtesy)).is_err() {
            return;
        }
        *timeout = Some(courtesy);
        let before = rest.as_mut().map_or(Ok(()), |rest| self.finish_rest(rest, &mut || Ok(())));
        *is_cut = before.and_then(|()| send_octets(&*self.transport, octets)).is_err();
    }

    /// Nothing further that is written would be understood. Whoever reads sees the end.
    pub(crate) fn cut(&self) {
        self.retire();
        self.transport.close();
    }

    /// True once nothing comes any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.pending.lock().closed.is_some()
    }

    /// A request could not be written. What others have to say here can still be said if nothing of it was.
    pub(super) fn retire_unwritten(&self) {
        let Some(adopted_reader) = self.adopted_reader() else { return self.retire() };
        if self.writer.try_lock().is_none_or(|writer| !writer.is_cut) {
            return;
        }
        self.retire();
        adopted_reader.cut();
    }

    /// Before a thread waits for the reply to this request: somebody else has to read an adopted connection.
    #[inline]
    pub(super) fn ensure_reading(&self, request_id: u32) -> Result<(), CallFailure> {
        let Some(adopted_reader) = self.adopted_reader() else { return Ok(()) };
        adopted_reader.ensure_reading().map_err(|exception| {
            self.pending.lock().remove(request_id);
            CallFailure::new(exception)
        })
    }
}
