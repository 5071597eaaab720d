//! One connection to a peer, used by one thread or shared by several.
//!
//! What threads that wait for a reply do is here, and who waits in [`mux`]; calls that no thread waits for are in [`task`].

mod mux;
mod reply;
#[cfg(feature = "asynchronous")]
mod task;
#[cfg(not(feature = "asynchronous"))]
#[path = "connection/no_task.rs"]
mod task;

use std::{
    cell::{Cell, RefCell},
    io,
};

use spandrel_cdr::{Encoder, GiopVersion, Wire};
use spandrel_giop::{
    CancelRequest, CompletionStatus, GiopError, Message, MessageType, SystemException, SystemExceptionKind, ids, minor,
};
use spandrel_sync::{
    Arc, Condition, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU32, Ordering},
    thread_local,
};

#[cfg(feature = "asynchronous")]
pub(crate) use mux::Awaiting;
pub(crate) use mux::Told;
use mux::{Mux, Waiter, Who};
pub(crate) use reply::{CallFailure, Reply, ReplyKind};
#[cfg(feature = "asynchronous")]
pub(crate) use task::{Kind, Seat};
use task::{Soon, Unsent};

use super::PeerName;
use crate::{
    reader::{Deadline, MessageReader, ReadError},
    transport::{Transport, is_timeout, send_message},
};

/// How long to look for what the peer said before it made a write fail.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_millis(200);

/// How long the message that a reply is no longer awaited may take to be written, when the caller's time is up already.
const HINT: std::time::Duration = std::time::Duration::from_millis(10);

/// A connection that this process opened.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    /// For messages about it.
    peer: Arc<PeerName>,
    transport: Arc<dyn Transport>,
    writer: Mutex<Writer>,
    mux: Mutex<Mux>,
    next_request_id: AtomicU32,
    /// Set when it must not be given to further callers.
    retired: AtomicBool,
    /// What asynchronous calls need.
    soon: Soon,
    /// A request was written that says which code sets are in force; those that are written from now on need not.
    has_said_code_sets: AtomicBool,
}

#[derive(Debug, Default)]
struct Writer {
    /// What the transport was told last.
    timeout: Option<std::time::Duration>,
    /// A message was not written to its end: whatever followed would be read as the rest of it.
    is_cut: bool,
    /// A message that an asynchronous call could not write to its end without waiting: comes before all others.
    rest: Option<Unsent>,
}

thread_local! {
    /// What this thread waits on while another leads.
    static WAKE: Arc<Condition> = Arc::new(Condition::new());
    /// Where the connections lie that this thread reads, and whose calls it is telling.
    static TELLING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// Whether there are any.
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

impl ClientConnection {
    pub(crate) fn new(peer: Arc<PeerName>, transport: Arc<dyn Transport>, reader: MessageReader) -> Self {
        Self {
            peer,
            transport,
            writer: Mutex::new(Writer::default()),
            mux: Mutex::new(Mux { reader: Some(Box::new(reader)), waiters: Vec::new(), closed: None }),
            next_request_id: AtomicU32::new(1),
            retired: AtomicBool::new(false),
            soon: Soon::default(),
            has_said_code_sets: AtomicBool::new(false),
        }
    }

    /// True once the server knows which code sets are in force.
    #[inline]
    pub(crate) fn has_said_code_sets(&self) -> bool {
        self.has_said_code_sets.load(Ordering::Acquire)
    }

    /// A request that says which has been written.
    pub(crate) fn note_code_sets_said(&self) {
        self.has_said_code_sets.store(true, Ordering::Release);
    }

    /// An id that no other request on this connection has.
    #[inline]
    pub(crate) fn request_id(&self) -> u32 {
        self.next_request_id.fetch_add(1, Ordering::Relaxed)
    }

    /// True once no further caller should get it.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    /// Sends a request that wants no reply.
    pub(crate) fn one_way(&self, request: &Encoder<'_>, deadline: Option<&Deadline>) -> Result<(), CallFailure> {
        // Retired before it is closed, so that the usual case needs no lock; whoever comes in between fails to write.
        if self.is_retired()
            && let Some(failure) = &self.mux.lock().closed
        {
            return Err(CallFailure::stale(failure.exception.clone().with_completed(CompletionStatus::No)));
        }
        let sent = self.send_in_turn(request, deadline);
        sent.map_err(|error| self.write_failed(error))
    }

    /// Sends once nobody else writes, if that comes in time.
    fn send_in_turn(&self, request: &Encoder<'_>, deadline: Option<&Deadline>) -> io::Result<()> {
        let mut writer = match deadline {
            None => self.writer.lock(),
            Some(deadline) => {
                self.writer.try_lock_for(deadline.to_send().remaining()).ok_or(io::ErrorKind::TimedOut)?
            }
        };
        if self.is_retired() {
            // Somebody left without its reply, which nobody may be reading now: the server would block on it, and this
            // thread on the server.
            return Err(io::ErrorKind::NotConnected.into());
        }
        self.send(&mut writer, request, deadline)
    }

    /// Sends a request and waits for its reply.
    #[inline]
    pub(crate) fn two_way(
        &self,
        request_id: u32,
        request: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure> {
        let mut mux = self.mux.lock();
        if let Some(failure) = &mux.closed {
            return Err(CallFailure::stale(failure.exception.clone().with_completed(CompletionStatus::No)));
        }
        // Nobody waits, nobody reads, nobody writes: this thread does it all and need not be found by others. Taking the
        // writer while the lock is held keeps everybody else's request behind this one, so that nobody's reply can fill
        // the connection while the one who would read it writes.
        if mux.waiters.is_empty()
            && mux.reader.is_some()
            && !self.is_retired()
            && let Some(writer) = self.writer.try_lock()
            && writer.rest.is_none()
            && let Some(reader) = mux.reader.take()
        {
            drop(mux);
            return self.alone(writer, reader, request_id, request, deadline);
        }
        mux.waiters.push(Waiter { request_id, reply: None, who: Who::Thread(None) });
        drop(mux);
        match self.send_in_turn(request, deadline) {
            Ok(()) => self.await_reply(request_id, request.wire(), deadline),
            Err(error) if has_no_last_words(&error) => {
                self.mux.lock().remove(request_id);
                Err(self.write_failed(error))
            }
            Err(error) => {
                let said = self.await_reply(request_id, request.wire(), Some(&Deadline::after(LAST_WORDS)));
                Err(self.last_words(error, said))
            }
        }
    }

    /// The whole of a call on a connection that nobody else uses at its beginning.
    #[inline]
    fn alone(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        mut reader: Box<MessageReader>,
        request_id: u32,
        request: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure> {
        let sent = self.send(&mut writer, request, deadline);
        drop(writer);
        let outcome = match sent {
            Ok(()) => self.lead(&mut reader, request_id, deadline),
            Err(error) if has_no_last_words(&error) => Err(self.write_failed(error)),
            Err(error) => {
                let said = self.lead(&mut reader, request_id, Some(&Deadline::after(LAST_WORDS)));
                Err(self.last_words(error, said))
            }
        };
        self.put_back(reader, None, false);
        outcome.map_err(|failure| self.tell_of_timeout(failure, request_id, request.wire()))
    }

    fn send(&self, writer: &mut Writer, message: &Encoder<'_>, deadline: Option<&Deadline>) -> io::Result<()> {
        if writer.is_cut {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let Writer { timeout, is_cut, rest } = writer;
        let deadline = deadline.map(|deadline| deadline.to_send());
        let mut arm = || {
            let wanted = match deadline {
                None => None,
                Some(deadline) => Some(deadline.wait().ok_or(io::ErrorKind::TimedOut)?),
            };
            if *timeout != wanted {
                self.transport.set_send_timeout(wanted)?;
                *timeout = wanted;
            }
            Ok(())
        };
        let sent = match rest {
            Some(rest) => self.finish_rest(rest, &mut arm).and_then(|()| send_message(&*self.transport, message, arm)),
            None => send_message(&*self.transport, message, arm),
        };
        sent.inspect_err(|_| *is_cut = true)
    }

    /// A failed write may have a reason that the peer gave: a CloseConnection that was still unread.
    fn last_words(&self, error: io::Error, said: Result<Reply, CallFailure>) -> CallFailure {
        match said {
            Err(said) if said.stale => said,
            Err(said) if said.is_explained => {
                self.retire();
                CallFailure { exception: said.exception.with_completed(CompletionStatus::No), ..said }
            }
            _ => self.write_failed(error),
        }
    }

    fn write_failed(&self, error: io::Error) -> CallFailure {
        self.retire();
        self.fail_unsent();
        if is_timeout(&error) {
            let detail = || format!("the request could not be written to {} within the time-out", self.peer);
            return CallFailure::new(
                SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::No)
                    .with_detail(detail)
                    .with_source(error),
            );
        }
        let detail = || format!("writing to {} failed", self.peer);
        CallFailure::stale(
            SystemException::comm_failure(0, CompletionStatus::No).with_detail(detail).with_source(error),
        )
    }

    fn await_reply(&self, request_id: u32, wire: Wire, deadline: Option<&Deadline>) -> Result<Reply, CallFailure> {
        let mut mux = self.mux.lock();
        loop {
            let waiter = mux.position(request_id);
            if let Some(reply) = mux.waiters[waiter].reply.take() {
                mux.waiters.swap_remove(waiter);
                return Ok(reply);
            }
            if let Some(failure) = &mux.closed {
                let failure = failure.clone();
                mux.waiters.swap_remove(waiter);
                return Err(failure);
            }
            if let Some(mut reader) = mux.reader.take() {
                drop(mux);
                let outcome = self.lead(&mut reader, request_id, deadline);
                self.put_back(reader, Some(request_id), false);
                return outcome.map_err(|failure| self.tell_of_timeout(failure, request_id, wire));
            }
            let wake = WAKE.with(Arc::clone);
            mux.waiters[waiter].who = Who::Thread(Some(Arc::clone(&wake)));
            match deadline {
                None => wake.wait(&mut mux),
                Some(deadline) => {
                    let remaining = deadline.remaining();
                    if remaining.is_zero() {
                        mux.waiters.swap_remove(waiter);
                        drop(mux);
                        return Err(self.tell_of_timeout(self.reply_timed_out(), request_id, wire));
                    }
                    wake.wait_for(&mut mux, remaining);
                }
            }
        }
    }

    /// Reads for everybody until this thread's own reply has come.
    fn lead(
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
            match self.sort(message) {
                Ok(reply) if reply.request_id == request_id => return Ok(reply),
                Ok(reply) => self.deliver(reply),
                Err(failure) => return Err(self.close(failure)),
            }
        }
    }

    /// Reads the header of a reply, or the reason for which there will be none.
    #[inline]
    fn sort(&self, message: Message) -> Result<Reply, CallFailure> {
        match message.header.message_type {
            MessageType::Reply | MessageType::LocateReply => {
                Reply::parse(message).map_err(|error| self.unreadable(error))
            }
            other => Err(self.is_no_reply(other)),
        }
    }

    #[cold]
    fn unreadable(&self, error: GiopError) -> CallFailure {
        CallFailure::new(
            SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, CompletionStatus::Maybe)
                .with_detail(|| format!("{} sent a reply that cannot be read", self.peer))
                .with_source(error),
        )
    }

    #[cold]
    fn is_no_reply(&self, message_type: MessageType) -> CallFailure {
        let maybe = CompletionStatus::Maybe;
        match message_type {
            // No request without a reply was or will be processed (9.4.7): safe to send again.
            MessageType::CloseConnection => CallFailure::stale(
                SystemException::comm_failure(0, CompletionStatus::No)
                    .with_detail(|| format!("{} closed the connection in an orderly way", self.peer)),
            ),
            MessageType::MessageError => CallFailure {
                exception: SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, maybe).with_detail(|| format!(
                    "{} could not read a message and answered MessageError (it may be longer than the peer accepts)",
                    self.peer
                )),
                stale: false,
                is_explained: true,
            },
            other => CallFailure::new(
                SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, maybe)
                    .with_detail(|| format!("{} sent a {other}, which only clients may send", self.peer)),
            ),
        }
    }

    /// Puts the reader back, of whose thread this was the request, and sees to it that somebody reads on for those who still
    /// wait: the next leader, or the reactor. `has_looked`: that is the reactor, which has taken all messages that are there.
    #[inline]
    fn put_back(&self, reader: Box<MessageReader>, request_id: Option<u32>, has_looked: bool) {
        let mut mux = self.mux.lock();
        if let Some(request_id) = request_id {
            mux.remove(request_id);
        }
        mux.reader = Some(reader);
        if !mux.waiters.is_empty() {
            self.hand_on(mux, has_looked);
        }
    }

    /// Somebody else has to read now.
    fn hand_on(&self, mux: MutexGuard<'_, Mux>, has_looked: bool) {
        if mux.wake_next_leader() || !mux.has_tasks() {
            return;
        }
        let is_drained = has_looked || mux.reader.as_ref().is_none_or(|reader| task::is_drained(reader));
        self.want_input();
        drop(mux);
        self.tell_reactor(is_drained);
    }

    /// Replies that nobody waits for any more are dropped.
    fn deliver(&self, reply: Reply) {
        let told = self.mux.lock().deliver(reply);
        if let Some((told, reply)) = told {
            let _telling = Telling::begin(self);
            told.done(Ok(Some(reply)));
        }
    }

    /// True if this thread reads here, and is telling somebody what came: it would wait for itself.
    #[inline]
    pub(crate) fn is_read_here(&self) -> bool {
        IS_TELLING.with(Cell::get)
            && TELLING.with(|telling| telling.borrow().contains(&std::ptr::from_ref(self).addr()))
    }

    /// Nothing more will come: all who wait learn why.
    fn close(&self, failure: CallFailure) -> CallFailure {
        self.retire();
        self.transport.close();
        let mut mux = self.mux.lock();
        mux.closed = Some(failure.clone());
        mux.threads().for_each(|wake| wake.notify_one());
        let tasks = mux.take_tasks();
        drop(mux);
        self.fail_all(tasks, &failure);
        failure
    }

    fn read_failed(&self, error: ReadError) -> CallFailure {
        if let ReadError::Giop(GiopError::TooLarge { len, limit }) = error {
            return CallFailure::new(
                SystemException::imp_limit(ids::IMP_LIMIT_MESSAGE, CompletionStatus::Maybe).with_detail(|| {
                    format!(
                        "{} sent a reply of {len} octets, more than the limit of {limit} (`-ORBMaxMessageSize`)",
                        self.peer
                    )
                }),
            );
        }
        let detail = || match &error {
            ReadError::EndOfFile | ReadError::CutOff => {
                format!("{} closed the connection before it replied", self.peer)
            }
            ReadError::Giop(_) => format!("{} sent what is not a GIOP reply", self.peer),
            _ => format!("reading from {} failed", self.peer),
        };
        CallFailure::new(
            SystemException::comm_failure(0, CompletionStatus::Maybe).with_detail(detail).with_source(error),
        )
    }

    fn reply_timed_out(&self) -> CallFailure {
        CallFailure::new(
            SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe)
                .with_detail(|| format!("no reply from {} within the time-out", self.peer)),
        )
    }

    /// After a time-out the late reply would find nobody: the connection ends with its last user, and the server is told.
    fn tell_of_timeout(&self, failure: CallFailure, request_id: u32, wire: Wire) -> CallFailure {
        if is_reply_timeout(&failure.exception) {
            self.retire();
            let mut out = Encoder::new(wire);
            let encoded = CancelRequest { request_id }.encode(&mut out);
            // omniORB 4.2 reads a CancelRequest of an older version for ever, at full load.
            match self.writer.try_lock() {
                // A hint: if it cannot be sent, the server merely works in vain.
                Some(mut writer) if encoded.is_ok() && wire.version >= GiopVersion::V1_2 => {
                    let _ = self.send(&mut writer, &out, Some(&Deadline::after(HINT)));
                }
                Some(_) => {}
                None => self.free_writer(),
            }
        }
        failure
    }

    /// Another writes, and this thread, whose time is up, may have been the last to read. A server that answers one request after the
    /// other, and is busy with the late reply, would read no further, and the writer would wait for ever. Its request goes
    /// elsewhere then; if the transport has just taken the last of it, the reply can still be read.
    fn free_writer(&self) {
        if self.writer.try_lock_for(HINT).is_some() {
            return;
        }
        let mux = self.mux.lock();
        let is_read = mux.reader.is_none() || mux.has_tasks() || mux.threads().next().is_some();
        drop(mux);
        if !is_read {
            tracing::debug!(peer = %self.peer, "a connection is written to no more after a time-out");
            self.transport.close_writer();
        }
    }
}

/// True if the request was written whole and its reply did not come in time.
fn is_reply_timeout(exception: &SystemException) -> bool {
    exception.kind() == SystemExceptionKind::Timeout && exception.completed() == CompletionStatus::Maybe
}

/// True if a write failed for a reason of ours, so that the peer need not be asked for its own.
fn has_no_last_words(error: &io::Error) -> bool {
    is_timeout(error) || error.kind() == io::ErrorKind::NotConnected
}

/// The time in which a thread that reads tells somebody what came for him. That is anybody's code, and may make calls.
struct Telling(());

impl Telling {
    fn begin(connection: &ClientConnection) -> Self {
        TELLING.with(|telling| telling.borrow_mut().push(std::ptr::from_ref(connection).addr()));
        IS_TELLING.with(|is_telling| is_telling.set(true));
        Self(())
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        let still = TELLING.with(|telling| {
            let mut telling = telling.borrow_mut();
            telling.pop();
            !telling.is_empty()
        });
        IS_TELLING.with(|is_telling| is_telling.set(still));
    }
}

/// Whoever panics while it reads for others must not leave them waiting.
struct CloseOnPanic<'c>(&'c ClientConnection);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let exception = SystemException::internal(0, CompletionStatus::Maybe);
            self.0.close(CallFailure::new(exception.with_detail("a thread panicked while it read replies")));
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.leave_reactor();
        self.transport.close();
    }
}
