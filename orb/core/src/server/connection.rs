//! One accepted connection: reading requests, running them, answering.
//!
//! Who reads is decided here; how a connection is served by a reactor is in [`seat`], and how it ends in [`parting`].

mod deferred;
mod origin;
mod parting;
mod seat;

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::Duration,
};

use spandrel_cdr::{ByteOrder, Decoder, GiopVersion, Limits, Wire};
use spandrel_giop::{CancelRequest, LocateRequestHeader, Message, MessageType, Reaction, RequestHeader, ResponseFlags};
use spandrel_ipc::Pollable;
use spandrel_sync::{
    Arc, Condition, Mutex, Weak,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use deferred::{Cancelled, Deferred};
use parting::Ending;
pub(super) use parting::Farewell;
pub(super) use seat::{Ready, Seat};

use super::{asked::Asked, call, link::Link, prediction::Prediction, threads};
use crate::{
    Orb,
    reader::{Deadline, MessageReader, ReadError},
    transport::Transport,
};

/// The bit of `turn` that says that no further request is accepted.
const CLOSING: u64 = 1 << 63;
/// The bit of `turn` that says that the reactor's threads read, and not one that took over from them.
///
/// In the same word as the upcall, so that one compare-and-swap takes an upcall's reading and the seat with it.
const SEATED: u64 = 1 << 62;

/// What the server side of an ORB is configured with.
#[derive(Clone, Debug)]
pub(crate) struct ServerSettings {
    /// Order of the octets of what is sent.
    pub(crate) order: ByteOrder,
    pub(crate) limits: Limits,
    pub(crate) max_message: usize,
    pub(crate) max_unfinished: usize,
    /// Requests of one connection that may run at once.
    pub(crate) max_in_flight: u32,
    pub(crate) max_connections: usize,
    /// Connections that have a thread of their own; the reactor serves the others.
    pub(crate) max_threaded: usize,
    /// Requests are looked up first where the last one of their connection was found.
    pub(crate) is_adaptive: bool,
    /// How long a client may take nothing of what it is sent.
    pub(crate) send_timeout: Option<Duration>,
    /// The reactor has so many threads and no more; otherwise as many as are needed.
    pub(crate) pool_threads: Option<usize>,
    /// The reactor's threads serve others while they wait for replies.
    pub(crate) nests: bool,
    pub(crate) send_queue: Option<usize>,
    pub(crate) recv_queue: Option<usize>,
}

/// A connection that a client opened.
#[derive(Debug)]
pub(crate) struct ServerConnection {
    orb: Orb,
    link: Link,
    /// Itself, for what outlives an upcall.
    me: Weak<Self>,
    settings: Arc<ServerSettings>,
    reader: Mutex<MessageReader>,
    /// Grows with every step of whoever reads: odd while it runs an upcall, even while it reads. Who changes it from odd
    /// to even reads next: the thread itself, or the watcher for another. With [`CLOSING`] and [`SEATED`] on top.
    turn: AtomicU64,
    /// Upcalls whose thread was relieved of reading and that still run.
    relieved: AtomicU32,
    /// Requests whose upcalls have ended, and that will be answered later.
    deferred: Mutex<Deferred>,
    /// A thread was started to relieve the reading one, and has not tried yet.
    is_relief_due: AtomicBool,
    /// The end of what the peer sends was read, or it sent what cannot be read.
    is_read_out: AtomicBool,
    /// Nobody runs or answers anything any more.
    is_finished: AtomicBool,
    /// Nor is anything read and dropped.
    is_gone: AtomicBool,
    /// The upcall of the reading thread answers nobody.
    is_one_way: AtomicBool,
    /// What the last request was for.
    prediction: Prediction,
    farewell: Mutex<Farewell>,
    /// Notified when the farewell goes on.
    parting: Condition,
    /// Its place in the reactor, unless it has a thread of its own.
    seat: Mutex<Option<Arc<dyn Seat>>>,
    /// The pool was told that an upcall keeps one of its threads.
    is_held_up: AtomicBool,
    has_own_thread: bool,
}

/// What became of the thread that served.
#[derive(Debug, Eq, PartialEq)]
enum Served {
    /// There is more to read.
    Continue,
    /// Another thread reads now.
    Relieved,
}

impl ServerConnection {
    /// A connection that [`serve`](Self::serve) will be called for (`has_own_thread`), or that a reactor will
    /// [seat](Self::take_seat).
    pub(super) fn new(
        orb: Orb,
        peer: String,
        transport: Box<dyn Transport>,
        settings: Arc<ServerSettings>,
        has_own_thread: bool,
    ) -> Arc<Self> {
        let reader = MessageReader::new(settings.max_message, settings.max_unfinished);
        let wire = Wire { limits: settings.limits, ..Wire::new(settings.order, GiopVersion::V1_2) };
        Arc::new_cyclic(|me| Self {
            orb,
            link: Link::new(peer, transport, wire, settings.send_timeout),
            me: Weak::clone(me),
            settings,
            reader: Mutex::new(reader),
            turn: AtomicU64::new(if has_own_thread { 0 } else { SEATED }),
            relieved: AtomicU32::new(0),
            deferred: Mutex::default(),
            is_relief_due: AtomicBool::new(false),
            is_read_out: AtomicBool::new(false),
            is_finished: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            is_one_way: AtomicBool::new(false),
            prediction: Prediction::default(),
            farewell: Mutex::new(Farewell::No),
            parting: Condition::new(),
            seat: Mutex::new(None),
            is_held_up: AtomicBool::new(false),
            has_own_thread,
        })
    }

    /// Itself, for what outlives an upcall.
    pub(super) fn shared(&self) -> Arc<Self> {
        self.me.upgrade().expect("it is shared from its beginning, and used now")
    }

    pub(super) fn orb(&self) -> &Orb {
        &self.orb
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    pub(super) fn has_own_thread(&self) -> bool {
        self.has_own_thread
    }

    pub(super) fn pollable(&self) -> Option<&dyn Pollable> {
        self.link.transport().pollable()
    }

    /// Reads and runs requests until the connection ends, another thread takes over, or a reactor does.
    pub(super) fn serve(self: &Arc<Self>) {
        let ending = Ending(self);
        let mut seat = self.seat();
        let mut patience = seat::PATIENCE;
        loop {
            let deadline = seat.as_ref().map(|_| Deadline::after(patience));
            let next = self.reader.lock().next(self.link.transport(), deadline.as_ref());
            let served = match next {
                Ok(message) => self.handle(&message),
                Err(ReadError::TimedOut) => match self.goes_back(&mut seat) {
                    true => return std::mem::forget(ending),
                    false => {
                        patience = seat::LONGEST_PATIENCE.min(patience * 2);
                        Ok(Served::Continue)
                    }
                },
                Err(error) => Err(error),
            };
            match served {
                Ok(Served::Continue) => {}
                Ok(Served::Relieved) => return std::mem::forget(ending),
                Err(error) => {
                    self.read_failed(&error);
                    return;
                }
            }
        }
    }

    fn handle(&self, message: &Message) -> Result<Served, ReadError> {
        self.link.note_version(message.header.version);
        match message.header.message_type {
            MessageType::Request => self.request(message),
            MessageType::LocateRequest => self.locate(message),
            MessageType::CancelRequest => {
                // Advisory (9.4.4): a request whose upcall runs is answered all the same.
                let cancelled = CancelRequest::decode(&mut self.decoder(message))?;
                self.reader.lock().cancel(cancelled.request_id);
                self.cancel_deferred(Cancelled::Request(cancelled.request_id));
                Ok(Served::Continue)
            }
            MessageType::CloseConnection => Err(ReadError::EndOfFile),
            MessageType::MessageError => {
                tracing::warn!(peer = %self.link.peer(), "the client could not read a message");
                Err(ReadError::EndOfFile)
            }
            other => Err(ReadError::Unexpected(other)),
        }
    }

    /// What the last request was for, if the next one's is to be guessed.
    #[inline]
    pub(super) fn prediction(&self) -> Option<&Prediction> {
        self.settings.is_adaptive.then_some(&self.prediction)
    }

    #[inline]
    pub(super) fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m> {
        message.decoder(self.settings.limits).with_binder(&self.orb)
    }

    fn request(&self, message: &Message) -> Result<Served, ReadError> {
        let mut arguments = self.decoder(message);
        let request = RequestHeader::decode(&mut arguments)?;
        let is_one_way = request.response != ResponseFlags::TWO_WAY;
        // In the order of reading: the next request may be run by another thread.
        let contexts = &request.service_contexts;
        let said = if contexts.is_empty() { Ok(()) } else { self.link.note_code_sets(contexts) };
        let is_answered = AtomicBool::new(false);
        let asked = Asked::new(self, message, &request, &is_answered);
        let code_sets = self.link.code_sets();
        let arguments = arguments.with_code_sets(code_sets.char_set, code_sets.wchar_set);
        Ok(self.take_turn(is_one_way, || call::upcall(&asked, said, arguments)))
    }

    /// Answers, unless no further request is accepted.
    #[inline]
    fn take_turn(&self, is_one_way: bool, answer: impl FnOnce()) -> Served {
        self.is_one_way.store(is_one_way, Ordering::Relaxed);
        // Sequentially consistent because of the watcher; see there.
        let turn = self.turn.fetch_add(1, Ordering::SeqCst) + 1;
        if turn & CLOSING != 0 {
            // Not acted on: the CloseConnection that was or will be sent says so.
            self.turn.fetch_add(1, Ordering::SeqCst);
            self.let_go();
            self.say_goodbye_when_idle();
            return Served::Continue;
        }
        self.orb.watcher().note_upcall();
        let answered = catch_unwind(AssertUnwindSafe(answer));
        self.stay_original();
        let served = self.end_upcall(turn);
        match answered {
            Ok(()) => served,
            // It ends what it reads from, and nothing but that.
            Err(panic) if served == Served::Continue => resume_unwind(panic),
            Err(_) => {
                tracing::error!(peer = %self.link.peer(), "a request could not be answered: its thread panicked");
                served
            }
        }
    }

    /// Ends a copy of the process that an upcall has made, and that comes back to what is the original's: it would read the original's
    /// requests and write into its answers. Nothing is said, since saying it may take a lock that no thread holds any more.
    #[inline]
    pub(super) fn stay_original(&self) {
        if self.orb.is_copied() {
            std::process::abort();
        }
    }

    /// Goes back to reading, unless another thread does that already.
    fn end_upcall(&self, turn: u64) -> Served {
        let ended = self
            .turn
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |now| (now & !CLOSING == turn).then_some(now + 1));
        if turn & SEATED != 0 {
            self.let_go();
        }
        match ended {
            Ok(now) => {
                if now & CLOSING != 0 {
                    self.say_goodbye_when_idle();
                }
                Served::Continue
            }
            Err(_) => {
                self.one_less_relieved();
                // Looked at again: whoever has begun to close meanwhile took this upcall for a running one.
                if self.turn() & CLOSING != 0 {
                    self.say_goodbye_when_idle();
                }
                Served::Relieved
            }
        }
    }

    fn locate(&self, message: &Message) -> Result<Served, ReadError> {
        let request = LocateRequestHeader::decode(&mut self.decoder(message))?;
        Ok(self.take_turn(false, || call::say_where(self, &request, message.header.version)))
    }

    fn read_failed(&self, error: &ReadError) {
        match error {
            ReadError::EndOfFile => tracing::debug!(peer = %self.link.peer(), "closed"),
            ReadError::Giop(reason) => {
                tracing::warn!(peer = %self.link.peer(), %reason, "refused a message");
                if reason.reaction() == Reaction::SendMessageError {
                    self.say_bare(MessageType::MessageError);
                }
            }
            ReadError::Unexpected(_) => {
                tracing::warn!(peer = %self.link.peer(), reason = %error, "refused a message");
                self.say_bare(MessageType::MessageError);
            }
            other => tracing::debug!(peer = %self.link.peer(), reason = %other, "ended"),
        }
    }

    /// True while requests of this connection run.
    fn is_busy(&self) -> bool {
        self.turn() % 2 == 1 || self.relieved.load(Ordering::SeqCst) != 0 || !self.deferred.lock().is_empty()
    }

    /// True if the upcall that keeps the reading thread is a one-way's.
    pub(super) fn is_one_way(&self) -> bool {
        self.is_one_way.load(Ordering::Relaxed)
    }

    /// Odd while an upcall keeps the reading thread.
    pub(super) fn turn(&self) -> u64 {
        self.turn.load(Ordering::SeqCst)
    }

    /// The upcall of `turn` lasts. `keeps_reading`: not long enough to lose the reading.
    pub(super) fn overdue(self: &Arc<Self>, turn: u64, keeps_reading: bool) {
        if turn & SEATED != 0 {
            if self.orb.server().pool().is_fixed() {
                return;
            }
            self.hold_up(turn);
        }
        if !keeps_reading {
            self.relieve(turn);
        }
    }

    /// Starts a thread that takes the reading from the one whose upcall is still that of `turn`.
    fn relieve(self: &Arc<Self>, turn: u64) {
        let running = self.relieved.load(Ordering::Relaxed) + 1;
        if turn & CLOSING != 0
            || running >= self.settings.max_in_flight
            || self.is_relief_due.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let connection = Arc::clone(self);
        if let Err(error) = threads::spawn("spandrel-relief", move || connection.take_over(turn)) {
            // The next tick tries again; meanwhile requests behind the slow one wait.
            self.is_relief_due.store(false, Ordering::Release);
            tracing::error!(%error, peer = %self.link.peer(), "no thread to read on while a servant is busy");
        }
    }

    /// Reads on, if the upcall has not ended meanwhile.
    pub(super) fn take_over(self: &Arc<Self>, turn: u64) {
        // Counted before it happens, so that nobody takes the connection for idle in between.
        self.relieved.fetch_add(1, Ordering::SeqCst);
        let taken = self.turn.compare_exchange(turn, (turn + 1) & !SEATED, Ordering::SeqCst, Ordering::Relaxed);
        self.is_relief_due.store(false, Ordering::Release);
        if taken.is_ok() {
            if turn & SEATED != 0 {
                self.leave_reactor();
            }
            return self.serve();
        }
        self.one_less_relieved();
        if self.turn() & CLOSING != 0 {
            self.say_goodbye_when_idle();
        }
    }
}
