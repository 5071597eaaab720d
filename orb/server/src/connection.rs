//! An accepted connection: it reads requests, runs them and sends the replies.
//!
//! This module decodes the messages and begins the upcalls. It knows neither adapters nor servants:
//! [`upcall`] finds and calls them. [`reader_role`] decides which thread reads, [`registration`] serves the
//! connection by a reactor, [`dispatch_queue`] passes its requests to a pool's workers, and [`closing`] ends
//! it.

mod bidirectional;
mod cancellation;
mod closing;
mod deferred;
mod dispatch_queue;
pub(crate) mod link;
mod monitored;
mod origin;
pub(crate) mod pooled;
mod reader_role;
mod registration;
mod rejection;
pub(crate) mod reply_queue;
mod writing;

use std::sync::OnceLock;

use spandrel_cdr::{Decoder, GiopVersion, Wire};
use spandrel_connection::{CancelledRequests, Incoming, ReaderWord, Role, ServerHalf, ServerPhase, classify};
use spandrel_giop::{CancelRequest, LocateRequestHeader, Message, MessageType, RequestHeader, ResponseFlags};
use spandrel_ipc::Pollable;
use spandrel_orb::{
    CancelReason, Concurrency, Orb, cancellation::CancellationSource, diagnostics::ConnectionMetrics, statistics::Event,
};
use spandrel_reactor::LogLimit;
use spandrel_sync::{
    Arc, Condition, Mutex, Weak,
    atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
};
use spandrel_transport::{Address, Deadline, MessageReader, Monitored, ReactorTransport, ReadError, ReceiveBudget};

use crate::{
    frame::{Frame, FrameScope},
    queue::WorkerQueue,
    resources::ServerResources,
    threads::ServerThreads,
    upcall::{
        self,
        incoming_request::{IncomingRequest, RequestContext},
        prediction::Prediction,
    },
};
use closing::CloseOnDrop;
pub(super) use closing::ClosePhase;
use dispatch_queue::DispatchQueue;
pub(super) use dispatch_queue::RequestTable as RequestQueue;
use link::Link;
use reader_role::NextRead;
pub(super) use registration::{ReactorRegistration, VisitOutcome};
pub(super) use writing::no_room_for_reply;

/// A connection that a client opened.
#[derive(Debug)]
pub(crate) struct ServerConnection {
    orb: Orb,
    /// The resources that the ORB's connections share.
    resources: Arc<ServerResources>,
    /// Learns of the connection's end.
    owner: Weak<dyn ConnectionOwner>,
    link: Link,
    /// The counts of this connection, for diagnostics.
    metrics: ConnectionMetrics,
    /// A reference to the connection itself, for objects that outlive an upcall.
    me: Weak<Self>,
    reader: Mutex<MessageReader<Monitored>>,
    /// The connection's memory limit, and the progress of the message that it receives.
    intake: Arc<ReceiveBudget>,
    /// The bits of the [`ReaderWord`]. Its number grows with each step of the reading thread: it is odd while
    /// that thread runs an upcall, and even while it reads. The change from odd to even decides which thread
    /// reads next.
    turn: AtomicU64,
    /// Running upcalls whose threads have lost the reader role. With a dispatch queue: all accepted requests
    /// that have not ended.
    handed_over: AtomicU32,
    /// Deferred requests, and running ones whose servants have taken a cancellation token.
    requests: Mutex<ServerHalf<Arc<CancellationSource>>>,
    /// The number of running upcalls whose servants have taken a cancellation token.
    awaited_cancellations: AtomicU32,
    /// Whether a thread was started to take over reading and has not tried yet.
    is_relief_due: AtomicBool,
    /// How often the client has announced listen points.
    listen_point_contexts: AtomicU32,
    /// The bits of the [`ServerPhase`].
    phase: AtomicU8,
    /// Whether the shutdown of the ORB has cut the connection before its last request ended.
    is_cut_off: AtomicBool,
    /// Whether the upcall of the reading thread is a one-way's.
    is_one_way: AtomicBool,
    /// The object and the operation of the last request.
    prediction: Prediction,
    /// How far the closing has come.
    close_phase: Mutex<ClosePhase>,
    /// The event for the statistics, if this side has chosen one for the end.
    ended_for: OnceLock<Event>,
    /// Notified when `close_phase` advances.
    close_phase_changed: Condition,
    /// The registration with a reactor, unless the connection has a thread of its own.
    registration: Mutex<Option<Arc<dyn ReactorRegistration>>>,
    /// Held while the registration is updated with the presence of waiting replies.
    output: Mutex<()>,
    /// Whether a reactor writes the waiting replies, although the connection has a thread of its own.
    has_writer: AtomicBool,
    /// Whether the pool counts one of its threads as blocked by an upcall of this connection.
    is_held_up: AtomicBool,
    has_own_thread: bool,
    /// The requests that wait for a worker, if other threads run requests than the one that reads them.
    dispatch_queue: Option<DispatchQueue>,
}

/// The table of connections that a connection leaves when it has ended.
pub(crate) trait ConnectionOwner: Send + Sync + std::fmt::Debug {
    /// Removes a connection that has ended.
    fn forget(&self, connection: &ServerConnection);
}

/// The threads that read and run a connection's requests.
#[derive(Clone, Debug)]
pub(super) enum ServiceStrategy {
    /// A thread of the connection's own, in [`ServerConnection::serve`].
    OwnThread,
    /// The threads of a reactor, after [`ServerConnection::register_with`].
    Reactor,
    /// A reactor's thread reads requests, and the workers of this queue run them.
    Queue(Arc<RequestQueue>),
}

impl ServiceStrategy {
    /// The service of connections without a thread of their own.
    pub(super) fn pooled(concurrency: Concurrency, threads: &Arc<ServerThreads>, log_limit: &Arc<LogLimit>) -> Self {
        match concurrency {
            Concurrency::ThreadPool { threads: count, queue } => {
                Self::Queue(Arc::new(RequestQueue::new(queue, count, Arc::clone(threads), Arc::clone(log_limit))))
            }
            _ => Self::Reactor,
        }
    }

    /// The queue of the workers, if they run the requests.
    pub(super) fn queue(&self) -> Option<Arc<dyn WorkerQueue>> {
        match self {
            Self::Queue(queue) => Some(Arc::<RequestQueue>::clone(queue)),
            Self::OwnThread | Self::Reactor => None,
        }
    }
}

impl ServerConnection {
    /// Creates a connection that is served by these threads.
    pub(super) fn new(
        orb: Orb,
        resources: Arc<ServerResources>,
        owner: Weak<dyn ConnectionOwner>,
        from: Address,
        transport: Box<dyn ReactorTransport>,
        service: ServiceStrategy,
    ) -> Arc<Self> {
        let has_own_thread = matches!(service, ServiceStrategy::OwnThread);
        let word = if has_own_thread { ReaderWord::of_own_thread() } else { ReaderWord::of_reactor() };
        let dispatch_queue = match service {
            ServiceStrategy::Queue(queue) => Some(DispatchQueue::new(queue)),
            ServiceStrategy::OwnThread | ServiceStrategy::Reactor => None,
        };
        let settings = &*resources.settings;
        let intake = ReceiveBudget::new(settings.max_connection_memory, Arc::clone(&resources.budget));
        let reader = MessageReader::monitored(settings.max_message, settings.max_unfinished, Arc::clone(&intake));
        let wire = Wire { limits: settings.limits, ..Wire::new(settings.order, GiopVersion::V1_2) };
        let link = Link::new(from, Arc::from(transport), wire, settings.send_timeout, Arc::clone(&intake))
            .with_fragments_of(settings.fragment_size);
        Arc::new_cyclic(|me| Self {
            orb,
            resources,
            owner,
            link,
            metrics: ConnectionMetrics::default(),
            me: Weak::clone(me),
            intake,
            reader: Mutex::new(reader),
            turn: AtomicU64::new(word.bits()),
            handed_over: AtomicU32::new(0),
            requests: Mutex::default(),
            awaited_cancellations: AtomicU32::new(0),
            is_relief_due: AtomicBool::new(false),
            listen_point_contexts: AtomicU32::new(0),
            phase: AtomicU8::new(ServerPhase::Open.bits()),
            is_cut_off: AtomicBool::new(false),
            is_one_way: AtomicBool::new(false),
            prediction: Prediction::default(),
            close_phase: Mutex::new(ClosePhase::Open),
            ended_for: OnceLock::new(),
            close_phase_changed: Condition::new(),
            registration: Mutex::new(None),
            output: Mutex::new(()),
            has_writer: AtomicBool::new(false),
            is_held_up: AtomicBool::new(false),
            has_own_thread,
            dispatch_queue,
        })
    }

    /// Returns the connection as an [`Arc`], for objects that outlive an upcall.
    pub(super) fn shared(&self) -> Arc<Self> {
        self.me.upgrade().expect("a connection in use is owned by an Arc")
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

    /// Reads and runs requests until the connection ends, another thread takes over, or a reactor serves it
    /// again.
    pub(super) fn serve(self: &Arc<Self>) {
        let ending = CloseOnDrop(self);
        let mut registration = self.registration();
        let mut read_wait = registration::READ_WAIT;
        loop {
            if self.is_blocked() {
                self.await_unblocked();
            }
            let deadline = registration.as_ref().map(|_| Deadline::after(read_wait));
            let next = self.reader.lock().next(self.link.transport(), deadline.as_ref());
            let served = match next {
                Ok(message) => self.handle(&message),
                Err(ReadError::TimedOut) => match self.return_to_reactor(&mut registration) {
                    true => return std::mem::forget(ending),
                    false => {
                        read_wait = registration::LONGEST_READ_WAIT.min(read_wait * 2);
                        Ok(NextRead::Continue)
                    }
                },
                Err(error) => self.handle_read_failure(error).map(|()| NextRead::Continue),
            };
            match served {
                Ok(NextRead::Continue) => {}
                Ok(NextRead::ByOther) => return std::mem::forget(ending),
                Err(error) => {
                    self.read_failed(&error);
                    return;
                }
            }
        }
    }

    fn handle(&self, message: &Message) -> Result<NextRead, ReadError> {
        self.link.note_version(message.header.version);
        // A server accepts requests in both roles.
        if message.header.message_type == MessageType::Request {
            return self.request(message);
        }
        self.handle_other(message)
    }

    /// Handles messages of all types but Request, which is the usual one.
    #[inline(never)]
    fn handle_other(&self, message: &Message) -> Result<NextRead, ReadError> {
        let incoming = classify(&message.header, self.role());
        match incoming.map_err(|violation| ReadError::Unexpected(violation.message_type))? {
            Incoming::Request => self.request(message),
            Incoming::LocateRequest => self.locate(message),
            Incoming::CancelRequest => {
                // CancelRequest is advisory (9.4.4): a running request is answered all the same, unless its
                // servant checks its cancellation.
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
                log_limited!(warn, self.resources, "MessageError", peer = %self.link.peer(), "the client could not read a message");
                Err(ReadError::EndOfFile)
            }
        }
    }

    /// The role for [`classify`].
    fn role(&self) -> Role {
        if self.is_bidirectional() { Role::BidirectionalServer } else { Role::Server }
    }

    /// The object and the operation of the last request, if those of the next one are predicted.
    #[inline]
    pub(super) fn prediction(&self) -> Option<&Prediction> {
        self.resources.settings.is_adaptive.then_some(&self.prediction)
    }

    #[inline]
    pub(super) fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m> {
        message.decoder(self.resources.settings.limits).with_binder(&self.orb)
    }

    /// The id of the request that a CancelRequest names.
    fn cancelled_by(&self, message: &Message) -> Result<u32, ReadError> {
        Ok(CancelRequest::decode(&mut self.decoder(message))?.request_id)
    }

    fn request(&self, message: &Message) -> Result<NextRead, ReadError> {
        let mut arguments = self.decoder(message);
        match RequestHeader::decode(&mut arguments) {
            // By reference: the header is not small and need not be moved.
            Ok(ref request) => {
                // Noted in the order of reading, because another thread may run the next request.
                let request_context = self.note_contexts(request, message);
                let request_context = request_context.as_ref();
                let run = |turn| self.upcall(message, request, request_context, turn, &mut arguments);
                Ok(self.begin_upcall(is_one_way(request), run))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Records the service contexts that apply to all later requests. Returns their error, if they have any,
    /// and the deadline of the request.
    #[inline]
    fn note_contexts(&self, request: &RequestHeader<'_>, message: &Message) -> Option<RequestContext> {
        if request.service_contexts.is_empty() {
            None
        } else {
            Some(self.note_given_contexts(request, message.header.version))
        }
    }

    /// Runs a request. `arguments` begins after the header; `request_context` comes from
    /// [`note_contexts`](Self::note_contexts).
    // Inlined into its two callers: each request needs all of it.
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
    fn note_given_contexts(&self, request: &RequestHeader<'_>, version: GiopVersion) -> RequestContext {
        let contexts = &request.service_contexts;
        RequestContext::from_contexts(contexts, self.resources.settings.context_limits, || {
            self.note_listen_points(request, version);
            self.link.note_code_sets(contexts)
        })
    }

    /// Aborts the process if it is a forked copy that has returned from the upcall in which it was made. It
    /// would read the original's requests and write into the original's replies. Nothing is logged, because
    /// the log may need a lock whose holder does not exist in the copy.
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

    /// Whether no request runs or waits for its reply, and this side sends no requests over the connection.
    pub(super) fn has_no_requests(&self) -> bool {
        !self.is_busy() && !self.is_bidirectional()
    }

    /// Whether requests run or are deferred, or replies wait to be written.
    fn is_busy(&self) -> bool {
        self.word().is_in_upcall()
            || self.handed_over.load(Ordering::SeqCst) != 0
            || self.link.is_blocked()
            || self.requests.lock().deferred() != 0
    }
}

/// Whether the client waits for no reply, or only for one of the server before the upcall.
#[inline]
fn is_one_way(request: &RequestHeader<'_>) -> bool {
    request.response != ResponseFlags::TWO_WAY
}
