//! The sending side of an accepted connection: writes whole messages one at a time, and ends the connection
//! in order.
//!
//! Reading, and the thread that reads, belong to the connection. A reply that the transport does not take at
//! once is charged against the memory limits. The connection's own thread then waits until the reply is
//! written; any other thread leaves the rest in a [`ReplyQueue`].

use std::{io, mem, sync::OnceLock, time::Duration};

use spandrel_cdr::{Encoder, GiopVersion, Wire};
use spandrel_connection::agree_on_code_sets;
use spandrel_giop::{MessageType, ServiceContexts, SystemException, TransmissionCodeSets, bare_message};
use spandrel_orb::internal::ClientConnection;
use spandrel_sync::{
    Arc, Condition, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    time::Instant,
};
use spandrel_transport::{Address, Charge, MemoryLimitExceeded, ReactorTransport, ReceiveBudget, send_octets};

use super::reply_queue::{Cork, OutgoingMessage, QueuedMessage, ReplyQueue};
use crate::{reply_urgency, upcall::origin::AnswerKind};

/// The size from which on a reply is charged before any of it is written.
const LONG_REPLY: usize = 64 << 10;
/// The number of waits that the send time-out is divided into, so that a client's progress is noticed.
const WAITS_PER_TIMEOUT: u32 = 4;
/// The time after which replies that wait for a task are written with the next one.
pub(super) const TASK_HOLD_TIME: Duration = Duration::from_micros(500);

/// A client's transport, and the state of writing to it. The fields that each request needs come first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Link {
    /// Whether a reply waits to be written, or a thread waits while it writes one.
    is_blocked: AtomicBool,
    /// The minor GIOP version of the last message read, which the peer supports.
    spoken: AtomicU8,
    /// The byte order and the limits. The version comes from each message, and the client chooses the code
    /// sets.
    wire: Wire,
    transport: Arc<dyn ReactorTransport>,
    /// The size above which messages are sent in fragments.
    fragment_size: usize,
    /// The code sets that the client has chosen, once it has.
    code_sets: OnceLock<TransmissionCodeSets>,
    /// The connection for this side's requests, once the client has announced that it accepts some.
    adopted: OnceLock<Arc<ClientConnection>>,
    writer: Mutex<ReplyQueue>,
    /// The memory that this connection uses, and its limits.
    intake: Arc<ReceiveBudget>,
    /// Notified when `is_blocked` ends.
    unblocked: Condition,
    /// Grows with each piece of a waiting reply that the transport takes.
    progress: AtomicU64,
    from: Arc<Address>,
    /// The text of that address, for messages.
    peer: String,
}

impl Link {
    /// `send_timeout`: the longest time in which the client may take no octets before the connection is given
    /// up.
    pub(crate) fn new(
        from: Address,
        transport: Arc<dyn ReactorTransport>,
        wire: Wire,
        send_timeout: Option<Duration>,
        intake: Arc<ReceiveBudget>,
    ) -> Self {
        let peer = from.to_string();
        if let Err(error) = transport.set_send_timeout(send_timeout.map(|timeout| timeout / WAITS_PER_TIMEOUT)) {
            tracing::debug!(%peer, %error, "cannot set the send time-out; progress shows only after each call");
        }
        let spoken = AtomicU8::new(GiopVersion::V1_0.minor);
        let code_sets = OnceLock::new();
        Self {
            from: Arc::new(from),
            peer,
            transport,
            wire,
            writer: Mutex::default(),
            is_blocked: AtomicBool::new(false),
            unblocked: Condition::new(),
            progress: AtomicU64::new(0),
            intake,
            fragment_size: usize::MAX,
            spoken,
            code_sets,
            adopted: OnceLock::new(),
        }
    }

    /// Returns the link with a limit of `octets`, above which messages are sent in fragments.
    pub(crate) fn with_fragments_of(mut self, octets: usize) -> Self {
        self.fragment_size = octets;
        self
    }

    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    /// The client's address.
    pub(crate) fn from(&self) -> &Arc<Address> {
        &self.from
    }

    pub(crate) fn transport(&self) -> &dyn ReactorTransport {
        &*self.transport
    }

    pub(crate) fn shared_transport(&self) -> &Arc<dyn ReactorTransport> {
        &self.transport
    }

    /// The encoding of an answer to a message of this version.
    pub(crate) fn wire(&self, version: GiopVersion) -> Wire {
        self.code_sets().on(Wire { version, ..self.wire })
    }

    /// The code sets of text on this connection.
    #[inline]
    pub(crate) fn code_sets(&self) -> TransmissionCodeSets {
        self.code_sets.get().copied().unwrap_or(TransmissionCodeSets::UNNEGOTIATED)
    }

    /// Records the code sets that the client has chosen, if its contexts contain them.
    ///
    /// # Errors
    /// CODESET_INCOMPATIBLE for unknown code sets; MARSHAL if it has chosen others before.
    pub(crate) fn record_code_sets(&self, contexts: &ServiceContexts<'_>) -> Result<(), SystemException> {
        record_code_sets(&self.code_sets, contexts)
    }

    /// Records the peer's GIOP version, for messages that answer none.
    pub(crate) fn record_version(&self, version: GiopVersion) {
        self.spoken.store(version.minor, Ordering::Relaxed);
    }

    /// Writes a message, or keeps it until the transport takes it. The reader notices a peer that is gone.
    ///
    /// `waits`: whether this thread serves no other connection. It then returns once the transport has taken
    /// the whole message, if there is memory to keep the request as long.
    ///
    /// # Errors
    /// There is no memory to keep the message. Nothing of it was written.
    #[inline]
    pub(crate) fn send(
        &self,
        message: &Encoder<'_>,
        kind: AnswerKind,
        waits: impl FnOnce() -> bool,
    ) -> Result<SendProgress, NoMemory> {
        let mut writer = self.writer.lock();
        if let Some(adopted) = self.adopted.get() {
            // Its lock orders the messages from the time on when both sides send requests.
            drop(writer);
            return self.send_adopted(adopted, message, kind);
        }
        let outgoing = OutgoingMessage::new(message, self.fragment_size);
        if writer.cork != Cork::None && self.hold(&mut writer, &outgoing) {
            return Ok(match writer.cork {
                Cork::Scheduled => self.write_held(&mut writer),
                _ => SendProgress::Whole,
            });
        }
        let mut written = 0;
        if writer.is_idle() && outgoing.len() < LONG_REPLY && writer.half.may_write() {
            match outgoing.try_send(&*self.transport) {
                Ok(count) if count == outgoing.len() => return Ok(SendProgress::Whole),
                Ok(count) => written = count,
                Err(error) => {
                    self.give_up(&mut writer, &error);
                    return Ok(SendProgress::Abandoned);
                }
            }
        }
        self.send_long(writer, &outgoing, written, kind, waits())
    }

    /// Holds a short reply of a corked link, if that is possible. Otherwise writes the held ones, and returns false: the reply is written
    /// behind them.
    #[cold]
    fn hold(&self, writer: &mut MutexGuard<'_, ReplyQueue>, message: &OutgoingMessage<'_, '_>) -> bool {
        let may_hold = |writer: &ReplyQueue| writer.is_idle() && writer.half.may_write();
        if may_hold(writer) && writer.hold(message, &self.intake) {
            return true;
        }
        self.write_held(writer);
        may_hold(writer) && writer.hold(message, &self.intake)
    }

    /// Writes the held replies behind the queued ones.
    fn write_held(&self, writer: &mut MutexGuard<'_, ReplyQueue>) -> SendProgress {
        if !writer.holds() {
            return SendProgress::Whole;
        }
        if writer.is_writing {
            writer.queue_held();
            self.is_blocked.store(true, Ordering::SeqCst);
            return SendProgress::Whole;
        }
        match writer.write_held(&*self.transport) {
            Ok(true) => {
                if self.is_blocked.load(Ordering::SeqCst) {
                    self.unblock(writer);
                }
                SendProgress::Whole
            }
            Ok(false) => {
                self.is_blocked.store(true, Ordering::SeqCst);
                SendProgress::InPart
            }
            Err(error) => {
                self.give_up(writer, &error);
                SendProgress::Abandoned
            }
        }
    }

    /// Holds short replies from now on, if `still_reads`, which is checked under the lock. Writes those that were held
    /// for `hold_time`. `end_schedule` is called under the lock if a task was to uncork the link.
    pub(crate) fn cork(
        &self,
        now: Instant,
        hold_time: Duration,
        still_reads: impl FnOnce() -> bool,
        end_schedule: impl FnOnce(),
    ) -> SendProgress {
        let mut writer = self.writer.lock();
        if writer.cork != Cork::Reader && self.adopted.get().is_none() && still_reads() {
            // A task that is under way leaves the replies to this thread.
            if mem::replace(&mut writer.cork, Cork::Reader) == Cork::Scheduled {
                end_schedule();
            }
        }
        match writer.held_since() {
            Some(since) if now.saturating_duration_since(since) >= hold_time => self.write_held(&mut writer),
            _ => SendProgress::Whole,
        }
    }

    /// Holds no replies any more, and writes those that are held. Returns the cork that there was.
    pub(crate) fn uncork(&self) -> (SendProgress, Cork) {
        let mut writer = self.writer.lock();
        let cork = mem::take(&mut writer.cork);
        (self.write_held(&mut writer), cork)
    }

    /// Holds a short reply that may wait for others, if that is possible, until a task has [uncorked](Self::uncork) the
    /// link. `begin` is called under the lock if it was not corked.
    pub(crate) fn hold_until_task(&self, message: &Encoder<'_>, begin: impl FnOnce()) -> Option<HeldUntilTask> {
        let mut writer = self.writer.lock();
        if writer.cork == Cork::Reader || self.adopted.get().is_some() {
            return None;
        }
        if !self.hold(&mut writer, &OutgoingMessage::new(message, self.fragment_size)) {
            return None;
        }
        if writer.cork == Cork::None {
            writer.cork = Cork::Scheduled;
            begin();
        }
        let is_late = writer.held_since().is_some_and(|since| since.elapsed() >= TASK_HOLD_TIME);
        let progress = if is_late { self.write_held(&mut writer) } else { SendProgress::Whole };
        Some(HeldUntilTask { progress, needs_task: !mem::replace(&mut writer.has_uncork_task, true) })
    }

    /// The octets of the replies that are held until a task has run; `None` if there are none, or if they have waited long
    /// enough.
    pub(crate) fn octets_held_for_task(&self) -> Option<usize> {
        let writer = self.writer.lock();
        let is_due = writer.held_since().is_none_or(|since| since.elapsed() >= TASK_HOLD_TIME);
        if writer.cork == Cork::Scheduled && !is_due { Some(writer.octets_held()) } else { None }
    }

    /// Uncorks the link for the task that was to do so. `None` if another thread has, or will.
    pub(crate) fn end_uncork_task(&self) -> Option<SendProgress> {
        let mut writer = self.writer.lock();
        writer.has_uncork_task = false;
        if writer.cork != Cork::Scheduled {
            return None;
        }
        writer.cork = Cork::None;
        Some(self.write_held(&mut writer))
    }

    /// Writes a message that is long, that the transport has not taken whole, or that waits behind others.
    #[cold]
    fn send_long(
        &self,
        mut writer: MutexGuard<'_, ReplyQueue>,
        message: &OutgoingMessage<'_, '_>,
        mut written: usize,
        kind: AnswerKind,
        mut waits: bool,
    ) -> Result<SendProgress, NoMemory> {
        if !writer.half.may_write() {
            return Ok(SendProgress::Abandoned);
        }
        let len = message.len();
        self.intake.record_long_reply(len);
        let mut charge = match self.charge(len, kind, waits) {
            Ok((charge, keeps_request)) => {
                waits = keeps_request;
                charge
            }
            Err(no_room) if written == 0 => return Err(no_room.into()),
            // The peer waits for the rest of the message.
            Err(no_room) => {
                self.give_up(&mut writer, &no_room);
                return Ok(SendProgress::Abandoned);
            }
        };
        if writer.is_idle() && waits {
            self.write_and_wait(writer, |progress| message.write_rest(&*self.transport, written, progress));
            return Ok(SendProgress::Whole);
        }
        if writer.is_idle() && written == 0 {
            match message.try_send(&*self.transport) {
                Ok(count) if count == len => return Ok(SendProgress::Whole),
                Ok(count) => written = count,
                Err(error) => {
                    self.give_up(&mut writer, &error);
                    return Ok(SendProgress::Abandoned);
                }
            }
        }
        charge.reduce_to(len - written);
        match QueuedMessage::rest_of(message, written, charge) {
            Some(rest) => writer.push(rest),
            None if written == 0 => return Err(NoMemory::OfSystem),
            None => {
                self.give_up(&mut writer, &"no memory for the rest of a message");
                return Ok(SendProgress::Abandoned);
            }
        }
        self.is_blocked.store(true, Ordering::SeqCst);
        Ok(if writer.is_writing { SendProgress::Whole } else { SendProgress::InPart })
    }

    /// Begins the sending of a short message in a batch: no other is written before [`end_batched`](Self::end_batched).
    /// False if the message must be sent by itself.
    pub(crate) fn begin_batched(&self, octets: usize) -> bool {
        let mut writer = self.writer.lock();
        let is_idle =
            writer.is_idle() && writer.cork == Cork::None && writer.half.may_write() && self.adopted.get().is_none();
        if !is_idle || octets > self.fragment_size || self.transport.send_socket().is_none() {
            return false;
        }
        writer.is_writing = true;
        self.is_blocked.store(true, Ordering::SeqCst);
        true
    }

    /// Ends the sending of a message in a batch. Octets that the transport has not taken are left for a reactor.
    pub(crate) fn end_batched(&self, octets: &[u8], sent: io::Result<usize>) -> SendProgress {
        let mut writer = self.writer.lock();
        writer.is_writing = false;
        let written = match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            sent => sent,
        };
        match written {
            Ok(count) if count < octets.len() && writer.half.may_write() => {
                match Charge::new(&self.intake, octets.len() - count) {
                    Ok(charge) => writer.push_front(QueuedMessage::of(&octets[count..], charge)),
                    Err(no_room) => {
                        self.give_up(&mut writer, &no_room);
                        self.unblock(&writer);
                        return SendProgress::Abandoned;
                    }
                }
            }
            Ok(_) => {}
            Err(ref error) => self.give_up(&mut writer, error),
        }
        if !writer.is_idle() {
            return SendProgress::InPart;
        }
        self.unblock(&writer);
        if written.is_ok() { SendProgress::Whole } else { SendProgress::Abandoned }
    }

    /// Charges a message. If the thread waits and there is room, also charges the request that the message
    /// answers, since the request is kept as long. Returns true in that case.
    fn charge(&self, len: usize, kind: AnswerKind, waits: bool) -> Result<(Charge, bool), MemoryLimitExceeded> {
        match kind {
            AnswerKind::Reply { request_octets, .. } if waits => {
                Charge::new(&self.intake, len.saturating_add(request_octets))
                    .map(|both| (both, true))
                    .or_else(|_| Charge::new(&self.intake, len).map(|reply| (reply, false)))
            }
            AnswerKind::Reply { .. } => Charge::new(&self.intake, len).map(|reply| (reply, false)),
            AnswerKind::Refusal => Charge::beyond_limit(&self.intake, len).map(|refusal| (refusal, waits)),
        }
    }

    /// Writes a message without the lock, then the messages that other threads have left meanwhile.
    fn write_and_wait<'l>(
        &'l self,
        mut writer: MutexGuard<'l, ReplyQueue>,
        write: impl FnOnce(&dyn Fn()) -> io::Result<()>,
    ) {
        let progress = || {
            self.progress.fetch_add(1, Ordering::Relaxed);
        };
        writer.is_writing = true;
        self.is_blocked.store(true, Ordering::SeqCst);
        drop(writer);
        let mut result = write(&progress);
        loop {
            let mut writer = self.writer.lock();
            if let (Err(error), true) = (&result, writer.half.may_write()) {
                self.give_up(&mut writer, error);
            }
            let Some(next) = writer.take() else {
                writer.is_writing = false;
                self.unblock(&writer);
                return;
            };
            drop(writer);
            result = next.write_all(&*self.transport, progress);
        }
    }

    /// Stops writing: a message to the peer is truncated, or the peer is gone.
    fn give_up(&self, writer: &mut MutexGuard<'_, ReplyQueue>, why: &dyn std::fmt::Display) {
        tracing::debug!(peer = %self.peer, error = %why, "cannot write a reply");
        writer.cut();
        self.transport.close();
        if !writer.is_writing {
            self.unblock(writer);
        }
    }

    fn unblock(&self, _writer: &MutexGuard<'_, ReplyQueue>) {
        self.is_blocked.store(false, Ordering::SeqCst);
        self.unblocked.notify_all();
    }

    /// Whether the client has not taken all of its replies. Nothing further is then read from it, unless
    /// reading is needed to go on.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::SeqCst) || self.adopted.get().is_some_and(|adopted| adopted.is_blocked())
    }

    /// A number that changes with each piece of a waiting reply that the client takes; `None` while no reply
    /// waits.
    pub(crate) fn progress(&self) -> Option<u64> {
        if self.is_blocked.load(Ordering::SeqCst) {
            return Some(self.progress.load(Ordering::Relaxed));
        }
        self.adopted.get().and_then(|adopted| adopted.write_progress())
    }

    /// Writes the octets that the transport takes without waiting, for a reactor's thread. False if some are
    /// left for that reactor.
    pub(crate) fn write_ready(&self) -> bool {
        let mut writer = self.writer.lock();
        if writer.is_writing {
            return true;
        }
        let progress = || {
            self.progress.fetch_add(1, Ordering::Relaxed);
        };
        match writer.write_ready(&*self.transport, progress) {
            Ok(false) => return false,
            Ok(true) => self.unblock(&writer),
            Err(error) => self.give_up(&mut writer, &error),
        }
        true
    }

    /// Whether messages wait that no thread writes.
    pub(crate) fn waits_for_reactor(&self) -> bool {
        let writer = self.writer.lock();
        !writer.is_writing && !writer.is_idle()
    }

    /// Waits until the client has taken all of its replies, or never will. With `writes`, this thread writes
    /// them if no other does.
    #[cold]
    pub(crate) fn await_unblocked(&self, writes: bool) {
        let mut writer = self.writer.lock();
        if !writer.is_writing
            && writes
            && let Some(next) = writer.take()
        {
            return self.write_and_wait(writer, |progress| next.write_all(&*self.transport, progress));
        }
        while !writer.is_idle() {
            self.unblocked.wait(&mut writer);
        }
    }

    fn send_adopted(
        &self,
        adopted: &ClientConnection,
        message: &Encoder<'_>,
        kind: AnswerKind,
    ) -> Result<SendProgress, NoMemory> {
        let (charge, _) = self.charge(message.position(), kind, false)?;
        adopted.answer(message, charge, reply_urgency::on_shared_connection());
        Ok(if adopted.is_blocked() { SendProgress::InPart } else { SendProgress::Whole })
    }

    /// Creates the connection for this side's requests. Answers then go through it, too, because both sides
    /// send requests.
    pub(crate) fn adopt(
        &self,
        connection: impl FnOnce(&Arc<dyn ReactorTransport>) -> Arc<ClientConnection>,
    ) -> &Arc<ClientConnection> {
        // No thread may be in the middle of a message, and no reply may be held.
        let mut writer = self.writer.lock();
        loop {
            while !writer.is_idle() {
                self.unblocked.wait(&mut writer);
            }
            writer.queue_held();
            let Some(next) = writer.take() else { break };
            self.write_and_wait(writer, |progress| next.write_all(&*self.transport, progress));
            writer = self.writer.lock();
        }
        self.adopted.get_or_init(|| connection(&self.transport))
    }

    /// The connection for this side's requests, if there is one.
    #[inline]
    pub(crate) fn adopted(&self) -> Option<&Arc<ClientConnection>> {
        self.adopted.get()
    }

    /// Writes a message that is only a header and announces the connection's end. Waits for the lock and for
    /// a slow peer, each at most for `courtesy`.
    pub(crate) fn send_bare(&self, message_type: MessageType, courtesy: Duration) {
        let version = GiopVersion { major: 1, minor: self.spoken.load(Ordering::Relaxed) };
        let message = bare_message(version, self.wire.order, message_type);
        let Some(mut writer) = self.writer.try_lock_for(courtesy) else { return };
        if let Some(adopted) = self.adopted.get() {
            return adopted.send_last(&message, message_type, courtesy);
        }
        if writer.cork == Cork::Reader {
            writer.cork = Cork::None;
        }
        if !writer.half.may_write() {
            return;
        }
        if writer.is_idle() {
            let octets = [&writer.take_held()[..], &message].concat();
            if message_type == MessageType::CloseConnection {
                writer.half.close(false);
            }
            let _ = self.transport.set_send_timeout(Some(courtesy));
            let _ = send_octets(&*self.transport, &octets);
        } else if let Ok(charge) = Charge::beyond_limit(&self.intake, message.len()) {
            // Sent after the waiting replies.
            writer.queue_held();
            writer.push(QueuedMessage::of(&message, charge));
        }
    }

    /// Ends the sending side, so that the peer sees the end of file.
    pub(crate) fn close_writer(&self) {
        // A thread that holds the lock is writing, and will fail.
        if let Some(mut writer) = self.writer.try_lock() {
            writer.half.shut();
        }
        self.transport.close_writer();
    }

    /// Closes the transport at once. The reader sees the end.
    pub(crate) fn cut(&self) {
        self.transport.close();
        self.drop_unwritten();
    }

    /// As [`cut`](Self::cut), for a client that may send without end: it does not wait for room any more once the
    /// connection is dropped.
    pub(crate) fn abort(&self) {
        self.transport.abort();
        self.drop_unwritten();
    }

    /// Drops what waits to be written to a transport that was closed.
    fn drop_unwritten(&self) {
        let mut writer = self.writer.lock();
        writer.cut();
        if !writer.is_writing {
            self.unblock(&writer);
        }
    }
}

/// The progress of sending a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SendProgress {
    /// The transport has the whole message, another thread writes what is left, or the message is held.
    Whole,
    /// A part of the message waits, and a reactor has to call [`Link::write_ready`].
    InPart,
    /// Nothing more is written: writing has failed, or the connection closes.
    Abandoned,
}

/// A reply that waits for a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldUntilTask {
    /// The progress of those that were held too long.
    pub(crate) progress: SendProgress,
    /// Whether no such task is under way.
    pub(crate) needs_task: bool,
}

/// The error of a message for which there is no memory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoMemory {
    #[error(transparent)]
    Limit(#[from] MemoryLimitExceeded),
    #[error("the system has no memory for the message")]
    OfSystem,
}

/// Records the code sets that a client has chosen, if its contexts contain them.
///
/// # Errors
/// CODESET_INCOMPATIBLE for unknown code sets; MARSHAL if it has chosen others before.
pub(crate) fn record_code_sets(
    known: &OnceLock<TransmissionCodeSets>,
    contexts: &ServiceContexts<'_>,
) -> Result<(), SystemException> {
    agree_on_code_sets(contexts, |used| *known.get_or_init(|| used))
}
