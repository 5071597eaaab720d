//! One accepted connection: reading requests, running them, answering.
//!
//! The thread that reads is chosen here. [`registration`] serves a connection by a reactor, and [`closing`] ends it.

mod bidirectional;
mod cancellation;
mod closing;
mod deferred;
mod dispatch_queue;
mod origin;
mod reader_role;
mod registration;
mod rejection;
mod writing;

use std::sync::OnceLock;

use spandrel_cdr::{Decoder, GiopVersion, Wire};
use spandrel_connection::{CancelledRequests, Incoming, ReaderWord, Role, ServerHalf, ServerPhase, classify};
use spandrel_giop::{CancelRequest, LocateRequestHeader, Message, MessageType, RequestHeader, ResponseFlags};
use spandrel_ipc::Pollable;
use spandrel_orb::{
    CancelReason, Orb, cancellation::CancellationSource, diagnostics::ConnectionMetrics,
    server_settings::ServerSettings, statistics::Event,
};
use spandrel_sync::{
    Arc, Condition, Mutex, Weak,
    atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
};
use spandrel_transport::{Address, Deadline, MessageReader, Monitored, ReactorTransport, ReadError, ReceiveBudget};

use super::{
    frame::{Frame, FrameScope},
    incoming_request::{IncomingRequest, RequestContext},
    link::Link,
    prediction::Prediction,
    upcall,
};
use crate::{ObjectAdapter, ServingOrb, UpcallMonitor};
use closing::CloseOnDrop;
pub(super) use closing::ClosePhase;
use dispatch_queue::DispatchQueue;
pub(super) use dispatch_queue::RequestTable as RequestQueue;
use reader_role::NextRead;
pub(super) use reader_role::{LongUpcall, LongUpcallAction, open_turn};
pub(super) use registration::{ReactorRegistration, VisitOutcome};
pub(super) use writing::no_room_for_reply;

/// A connection that a client opened.
#[derive(Debug)]
pub(crate) struct ServerConnection {
    orb: Orb,
    /// The ORB's adapter and monitor, which each request uses.
    adapter: Arc<dyn ObjectAdapter>,
    upcall_monitor: Arc<UpcallMonitor>,
    link: Link,
    /// What those have of it who measure.
    metrics: ConnectionMetrics,
    /// Itself, for what outlives an upcall.
    me: Weak<Self>,
    settings: Arc<ServerSettings>,
    reader: Mutex<MessageReader<Monitored>>,
    /// What shows of it while somebody reads, and the memory that it takes.
    intake: Arc<ReceiveBudget>,
    /// Grows with every step of whoever reads: odd while it runs an upcall, even while it reads. Who changes it from odd
    /// to even reads next: the thread itself, or the monitor for another. The bits of a [`ReaderWord`].
    turn: AtomicU64,
    /// Upcalls whose thread was relieved of reading and that still run.
    handed_over: AtomicU32,
    /// Requests whose upcalls have ended, and that will be answered later; and those that run and may be cancelled.
    requests: Mutex<ServerHalf<Arc<CancellationSource>>>,
    /// How many servants of running upcalls want to know whether they are cancelled.
    awaited_trips: AtomicU32,
    /// A thread was started to relieve the reading one, and has not tried yet.
    is_relief_due: AtomicBool,
    /// How often its client has named listen points.
    introductions: AtomicU32,
    /// The bits of the [`ServerPhase`].
    phase: AtomicU8,
    /// The ORB ends, and did not wait for the last of its requests.
    is_cut_off: AtomicBool,
    /// The upcall of the reading thread answers nobody.
    is_one_way: AtomicBool,
    /// What the last request was for.
    prediction: Prediction,
    close_phase: Mutex<ClosePhase>,
    /// Why this side ends it, where that is said.
    ended_for: OnceLock<Event>,
    /// Notified when the farewell goes on.
    parting: Condition,
    /// Its place in the reactor, unless it has a thread of its own.
    registration: Mutex<Option<Arc<dyn ReactorRegistration>>>,
    /// Held while the seat is told whether replies wait to be written.
    output: Mutex<()>,
    /// A reactor writes the replies that wait, although the connection has a thread of its own.
    has_writer: AtomicBool,
    /// The pool was told that an upcall keeps one of its threads.
    is_held_up: AtomicBool,
    has_own_thread: bool,
    /// Where its requests wait, if others run them than read them.
    dispatch_queue: Option<DispatchQueue>,
}

/// Who reads a connection's requests, and who runs them.
#[derive(Clone, Debug)]
pub(super) enum ServiceStrategy {
    /// A thread of its own, which is about to [serve](ServerConnection::serve).
    OwnThread,
    /// The threads of a reactor, which is about to [seat](ServerConnection::take_seat) it.
    Reactor,
    /// A reactor's thread reads; they are run by others.
    Queue(Arc<RequestQueue>),
}

impl ServerConnection {
    /// A connection that is served so.
    pub(super) fn new(
        orb: Orb,
        from: Address,
        transport: Box<dyn ReactorTransport>,
        settings: Arc<ServerSettings>,
        service: ServiceStrategy,
    ) -> Arc<Self> {
        let has_own_thread = matches!(service, ServiceStrategy::OwnThread);
        let word = if has_own_thread { ReaderWord::of_own_thread() } else { ReaderWord::of_reactor() };
        let dispatch_queue = match service {
            ServiceStrategy::Queue(queue) => Some(DispatchQueue::new(queue)),
            ServiceStrategy::OwnThread | ServiceStrategy::Reactor => None,
        };
        let intake = ReceiveBudget::new(settings.max_connection_memory, Arc::clone(orb.server().budget()));
        let reader = MessageReader::monitored(settings.max_message, settings.max_unfinished, Arc::clone(&intake));
        let wire = Wire { limits: settings.limits, ..Wire::new(settings.order, GiopVersion::V1_2) };
        let (adapter, upcall_monitor) = (Arc::clone(orb.adapter()), Arc::clone(orb.upcall_monitor()));
        Arc::new_cyclic(|me| Self {
            orb,
            adapter,
            upcall_monitor,
            link: Link::new(from, Arc::from(transport), wire, settings.send_timeout, Arc::clone(&intake))
                .with_fragments_of(settings.fragment_size),
            metrics: ConnectionMetrics::default(),
            me: Weak::clone(me),
            settings,
            intake,
            reader: Mutex::new(reader),
            turn: AtomicU64::new(word.bits()),
            handed_over: AtomicU32::new(0),
            requests: Mutex::default(),
            awaited_trips: AtomicU32::new(0),
            is_relief_due: AtomicBool::new(false),
            introductions: AtomicU32::new(0),
            phase: AtomicU8::new(ServerPhase::Open.bits()),
            is_cut_off: AtomicBool::new(false),
            is_one_way: AtomicBool::new(false),
            prediction: Prediction::default(),
            close_phase: Mutex::new(ClosePhase::No),
            ended_for: OnceLock::new(),
            parting: Condition::new(),
            registration: Mutex::new(None),
            output: Mutex::new(()),
            has_writer: AtomicBool::new(false),
            is_held_up: AtomicBool::new(false),
            has_own_thread,
            dispatch_queue,
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

    pub(super) fn metrics(&self) -> &ConnectionMetrics {
        &self.metrics
    }

    pub(super) fn has_own_thread(&self) -> bool {
        self.has_own_thread
    }

    pub(super) fn pollable(&self) -> Option<&dyn Pollable> {
        self.link.transport().pollable()
    }

    /// Reads and runs requests until the connection ends, another thread takes over, or a reactor does.
    pub(super) fn serve(self: &Arc<Self>) {
        let ending = CloseOnDrop(self);
        let mut registration = self.registration();
        let mut client_timeouts = registration::PATIENCE;
        loop {
            if self.is_blocked() {
                self.await_unblocked();
            }
            let deadline = registration.as_ref().map(|_| Deadline::after(client_timeouts));
            let next = self.reader.lock().next(self.link.transport(), deadline.as_ref());
            let served = match next {
                Ok(message) => self.handle(&message),
                Err(ReadError::TimedOut) => match self.return_to_reactor(&mut registration) {
                    true => return std::mem::forget(ending),
                    false => {
                        client_timeouts = registration::LONGEST_PATIENCE.min(client_timeouts * 2);
                        Ok(NextRead::Continue)
                    }
                },
                Err(error) => self.handle_read_failure(error).map(|()| NextRead::Continue),
            };
            match served {
                Ok(NextRead::Continue) => {}
                Ok(NextRead::Relieved) => return std::mem::forget(ending),
                Err(error) => {
                    self.read_failed(&error);
                    return;
                }
            }
        }
    }

    fn handle(&self, message: &Message) -> Result<NextRead, ReadError> {
        self.link.note_version(message.header.version);
        // Both roles of a server accept it.
        if message.header.message_type == MessageType::Request {
            return self.request(message);
        }
        self.handle_other(message)
    }

    /// Handles any message but the usual one.
    #[inline(never)]
    fn handle_other(&self, message: &Message) -> Result<NextRead, ReadError> {
        let incoming = classify(&message.header, self.role());
        match incoming.map_err(|violation| ReadError::Unexpected(violation.message_type))? {
            Incoming::Request => self.request(message),
            Incoming::LocateRequest => self.locate(message),
            Incoming::CancelRequest => {
                // Advisory (9.4.4): a request whose upcall runs is answered all the same, unless its servant looks.
                let cancelled = self.cancelled_by(message)?;
                self.reader.lock().cancel(cancelled);
                self.cancel(CancelledRequests::Request(cancelled), CancelReason::ClientCancelled);
                Ok(NextRead::Continue)
            }
            Incoming::Reply => self.reply(message),
            Incoming::CloseConnection => {
                self.end_adopted(true);
                Err(ReadError::EndOfFile)
            }
            Incoming::MessageError => {
                log_limited!(warn, self.orb, "MessageError", peer = %self.link.peer(), "the client could not read a message");
                Err(ReadError::EndOfFile)
            }
        }
    }

    /// The role for [`classify`].
    fn role(&self) -> Role {
        if self.is_bidirectional() { Role::BidirectionalServer } else { Role::Server }
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

    /// The request that is cancelled.
    fn cancelled_by(&self, message: &Message) -> Result<u32, ReadError> {
        Ok(CancelRequest::decode(&mut self.decoder(message))?.request_id)
    }

    fn request(&self, message: &Message) -> Result<NextRead, ReadError> {
        let mut arguments = self.decoder(message);
        match RequestHeader::decode(&mut arguments) {
            // Left where it is, since it is not small.
            Ok(ref request) => {
                // In the order of reading: the next request may be run by another thread.
                let request_context = self.note_contexts(request, message);
                let request_context = request_context.as_ref();
                let run = |turn| self.upcall(message, request, request_context, turn, &mut arguments);
                Ok(self.begin_upcall(is_one_way(request), run))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Remembers what a request says for all that follow: what is wrong with that, and until when the request is worth anything.
    #[inline]
    fn note_contexts(&self, request: &RequestHeader<'_>, message: &Message) -> Option<RequestContext> {
        if request.service_contexts.is_empty() { None } else { Some(self.mark_sent(request, message.header.version)) }
    }

    /// Runs a request, of which `arguments` are what follows the header, and `request_context` what was [noted](Self::note_contexts) of it.
    // Two callers, and nothing but what has to be done for each request.
    #[inline(always)]
    fn upcall<'m>(
        &'m self,
        message: &'m Message,
        request: &RequestHeader<'m>,
        request_context: Option<&RequestContext>,
        turn: u64,
        arguments: &mut Decoder<'m>,
    ) {
        let (connection, request_id) = (std::ptr::from_ref(self).addr(), request.request_id);
        let frame = Frame { connection, turn, request_id, is_one_way: is_one_way(request) };
        let _frame = FrameScope::enter(&self.orb, frame);
        let is_answered = AtomicBool::new(false);
        let request =
            IncomingRequest { turn, request_context, ..IncomingRequest::new(self, message, request, &is_answered) };
        let code_sets = self.link.code_sets();
        arguments.set_code_sets(code_sets.char_set, code_sets.wchar_set);
        upcall::run(&request, arguments);
    }

    #[cold]
    fn mark_sent(&self, request: &RequestHeader<'_>, version: GiopVersion) -> RequestContext {
        let contexts = &request.service_contexts;
        RequestContext::from_contexts(contexts, self.settings.context_limits, || {
            self.note_listen_points(request, version);
            self.link.note_code_sets(contexts)
        })
    }

    /// Ends a copy of the process that an upcall has made, and that comes back to what is the original's: it would read the original's
    /// requests and write into its answers. Nothing is said, since saying it may take a lock that no thread holds any more.
    #[inline]
    pub(super) fn exit_forked_copy(&self) {
        if self.orb.is_copied() {
            std::process::abort();
        }
    }

    fn locate(&self, message: &Message) -> Result<NextRead, ReadError> {
        let request = LocateRequestHeader::decode(&mut self.decoder(message))?;
        Ok(self.begin_upcall(false, |_| upcall::handle_locate_request(self, &request, message.header.version)))
    }

    /// Odd while a message is half read; the same as long as nothing more of it comes.
    pub(super) fn progress(&self) -> u64 {
        self.intake.progress()
    }

    /// Whether nothing is asked of it, and nobody uses it otherwise.
    pub(super) fn has_no_requests(&self) -> bool {
        !self.is_busy() && !self.is_bidirectional()
    }

    /// True while requests of this connection run.
    fn is_busy(&self) -> bool {
        self.word().is_in_upcall()
            || self.handed_over.load(Ordering::SeqCst) != 0
            || self.link.is_blocked()
            || self.requests.lock().deferred() != 0
    }

    /// True if the upcall that keeps the reading thread is a one-way's.
    pub(super) fn is_one_way(&self) -> bool {
        self.is_one_way.load(Ordering::Relaxed)
    }
}

/// Whether nobody waits for its answer, or only for the server's.
#[inline]
fn is_one_way(request: &RequestHeader<'_>) -> bool {
    request.response != ResponseFlags::TWO_WAY
}
