//! An accepted connection: it reads requests, runs them and sends the replies.
//!
//! This module decodes the messages and begins the upcalls. It knows neither adapters nor servants:
//! [`upcall`] finds and calls them. Methods of [`ServerConnection`] stand in three further files:
//! [`reading`] has the threads that read, [`replies`] sends the replies, and [`closing`] ends the connection.
//!
//! The state has types of its own. [`reader_role`] decides which thread reads, [`dispatch_queue`] passes
//! requests to a pool's workers, [`pending_requests`] cancels requests, and [`link`] writes.

mod close_state;
mod closing;
pub(crate) mod dispatch_queue;
mod ensure_reading;
mod held_replies;
mod late_octets;
pub(crate) mod link;
mod monitored;
mod origin;
mod pending_requests;
mod pipeline;
pub(crate) mod pooled;
mod reader_role;
pub(crate) mod reading;
pub(crate) mod registration;
mod replies;
mod reply_queue;
mod scheduled_replies;
mod service;
mod visit_rate;

use spandrel_cdr::{Decoder, GiopVersion, Wire};
use spandrel_connection::{CancelledRequests, Incoming, ReaderWord, Role, UpcallNumber, classify};
use spandrel_giop::{
    CONTEXT_BI_DIR_IIOP, CancelRequest, ListenPoint, LocateRequestHeader, Message, MessageType, RequestHeader,
    ResponseFlags,
};
use spandrel_ipc::Pollable;
use spandrel_orb::{
    CancelReason, Orb,
    internal::{AdoptedReader, ClientConnection, ConnectionMetrics, send_fragmented},
};
use spandrel_sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicU32, Ordering},
};
use spandrel_transport::{
    Address, DecodedMemory, MessageReader, ReactorTransport, ReadError, ReceiveBudget, ServerMonitor,
};

use crate::{
    request_of_thread::{Frame, FrameScope},
    resources::ServerResources,
    upcall::{
        self,
        prediction::Prediction,
        received_request::{ReceivedRequest, RequestContext, RequestState},
    },
};
pub(super) use close_state::ClosePhase;
use close_state::CloseState;
use dispatch_queue::ConnectionService;
pub(super) use dispatch_queue::ServiceStrategy;
use late_octets::LateOctets;
use link::Link;
use pending_requests::PendingRequests;
pub(super) use pending_requests::too_many_deferred;
use pipeline::Pipeline;
use reader_role::{NextRead, ReaderRole};
use registration::RegistrationSlot;
pub(super) use reply_queue::no_room_for_reply;
use visit_rate::VisitRate;

/// How many announcements of listen points are processed on one connection.
const MAX_LISTEN_POINT_CONTEXTS: u32 = 256;

/// A connection that a client opened.
///
/// The fields that each request needs come first, side by side: a server with thousands of busy connections finds none
/// of them in the caches.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ServerConnection {
    /// The resources that the ORB's connections share.
    resources: Arc<ServerResources>,
    orb: Orb,
    /// The connection's memory limit, and the progress of the message that it receives.
    intake: Arc<ReceiveBudget>,
    close_state: CloseState,
    /// Whether several requests are in memory.
    pipeline: Pipeline,
    reader_role: ReaderRole,
    /// The registration with a reactor, unless the connection has a thread of its own.
    registration: RegistrationSlot,
    service: ConnectionService,
    /// The counts of this connection, for diagnostics.
    metrics: ConnectionMetrics,
    /// The object and the operation of the last request.
    prediction: Prediction,
    link: Link,
    reader: Mutex<MessageReader<ServerMonitor>>,
    /// Deferred requests, and running ones whose servants have taken a cancellation token.
    pending: PendingRequests,
    visits: VisitRate,
    /// A reference to the connection itself, for objects that outlive an upcall.
    weak_self: Weak<Self>,
    /// Learns of the connection's end.
    owner: Weak<dyn ConnectionOwner>,
    /// How often the client has announced listen points.
    listen_point_contexts: AtomicU32,
    /// Octets that arrive after the last reply.
    late_octets: LateOctets,
}

/// The table of connections that a connection leaves when it has ended.
pub(crate) trait ConnectionOwner: Send + Sync + std::fmt::Debug {
    /// Removes a connection that has ended.
    fn forget(&self, connection: &ServerConnection);

    /// Counts a connection less with a thread of its own, because the connection has moved to the reactor.
    fn left_thread(&self);
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
        let service = ConnectionService::new(service);
        let word = if service.has_own_thread() { ReaderWord::of_own_thread() } else { ReaderWord::of_reactor() };
        let settings = &*resources.settings;
        let intake = ReceiveBudget::new(settings.max_connection_memory, Arc::clone(&resources.budget));
        let reader = MessageReader::monitored(settings.max_message, settings.max_unfinished, Arc::clone(&intake));
        let wire = Wire { limits: settings.limits, ..Wire::new(settings.order, GiopVersion::V1_2) };
        let link = Link::new(from, Arc::from(transport), wire, settings.send_timeout, Arc::clone(&intake))
            .with_fragments_of(settings.fragment_size);
        let pending = PendingRequests::new(Arc::clone(&intake), settings.max_deferred);
        Arc::new_cyclic(|weak_self| Self {
            orb,
            resources,
            owner,
            link,
            metrics: ConnectionMetrics::default(),
            weak_self: Weak::clone(weak_self),
            intake,
            reader: Mutex::new(reader),
            reader_role: ReaderRole::new(word),
            pending,
            listen_point_contexts: AtomicU32::new(0),
            close_state: CloseState::default(),
            late_octets: LateOctets::default(),
            prediction: Prediction::default(),
            registration: RegistrationSlot::default(),
            service,
            visits: VisitRate::default(),
            pipeline: Pipeline::default(),
        })
    }

    /// Returns the connection as an [`Arc`], for objects that outlive an upcall.
    pub(super) fn shared(&self) -> Arc<Self> {
        self.weak_self.upgrade().expect("a connection in use is owned by an Arc")
    }

    pub(super) fn orb(&self) -> &Orb {
        &self.orb
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// The number of deferred requests.
    pub(super) fn deferred(&self) -> usize {
        self.pending.deferred()
    }

    pub(super) fn metrics(&self) -> &ConnectionMetrics {
        &self.metrics
    }

    pub(super) fn has_own_thread(&self) -> bool {
        self.service.has_own_thread()
    }

    pub(super) fn pollable(&self) -> Option<&dyn Pollable> {
        self.link.transport().pollable()
    }

    fn handle(&self, message: &Message) -> Result<NextRead, ReadError> {
        self.link.record_version(message.header.version);
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

    /// Whether this side may send requests over the connection. Such a connection is not idle when its client
    /// sends none.
    pub(crate) fn is_bidirectional(&self) -> bool {
        self.link.adopted().is_some()
    }

    /// Records the listen points that a request announces, if it does and if they may be used.
    #[cold]
    fn record_listen_points(&self, request: &RequestHeader<'_>, version: GiopVersion) {
        // A client of an older version takes no requests (9.8).
        let Some(data) = request.service_contexts.find(CONTEXT_BI_DIR_IIOP) else { return };
        if version < GiopVersion::V1_2 || !self.orb.is_bidirectional() || self.close_state.is_reading_finished() {
            return;
        }
        // Clients may announce listen points repeatedly (9.8.1), but not without limit.
        if self.listen_point_contexts.fetch_add(1, Ordering::Relaxed) >= MAX_LISTEN_POINT_CONTEXTS {
            return;
        }
        match ListenPoint::from_context(data) {
            Ok(points) => {
                let own = self.orb.published_already();
                let adopt = || Arc::clone(self.adopt());
                let (resources, trusts_all) = (&self.resources, self.resources.settings.trusts_listen_points);
                let from = self.link.from();
                resources.announced.record(&points, from, own.as_ref(), adopt, trusts_all, resources.log_limit());
            }
            Err(error) => {
                log_limited!(warn, self.resources, "listen points", peer = %self.link.peer(), %error, "could not decode a client's listen points");
            }
        }
        // Checked afterwards: a thread that ends the reading first changes the phase and then removes the
        // entries.
        if self.close_state.is_reading_finished() {
            self.end_adopted(false);
        }
    }

    fn adopt(&self) -> &Arc<ClientConnection> {
        self.end_pipeline();
        self.end_holding();
        self.link.adopt(|transport| {
            let adopted_reader: Weak<dyn AdoptedReader> = self.weak_self.clone();
            let (peer, statistics) = (Arc::clone(self.link.from()), self.orb.statistics().clone());
            let adopted = ClientConnection::adopted(peer, Arc::clone(transport), adopted_reader, statistics);
            Arc::new(adopted.with_fragments_of(Some((self.resources.settings.fragment_size, send_fragmented))))
        })
    }

    /// Passes a reply to the adopted connection. Without one, the reply is a protocol error.
    fn reply(&self, message: &Message) -> Result<NextRead, ReadError> {
        match self.link.adopted() {
            Some(adopted) => adopted.receive(message.clone()).map_err(ReadError::from).map(|()| NextRead::Continue),
            None => Err(ReadError::Unexpected(message.header.message_type)),
        }
    }

    /// Ends the adopted connection, which gets no further reply. `is_orderly`: the client has sent
    /// CloseConnection.
    fn end_adopted(&self, is_orderly: bool) {
        if let Some(adopted) = self.link.adopted() {
            self.resources.announced.remove(adopted);
            adopted.end_of_input(is_orderly);
        }
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

    /// The memory of the decoded values of a request.
    #[inline]
    pub(super) fn decoded_memory(&self, message: &Message) -> DecodedMemory<&ReceiveBudget> {
        let limit = self.resources.settings.limits.decoded_memory(message.octets().len());
        DecodedMemory::new(&*self.intake, limit)
    }

    /// The id of the request that a CancelRequest names.
    fn cancelled_by(&self, message: &Message) -> Result<u32, ReadError> {
        Ok(CancelRequest::decode(&mut self.decoder(message))?.request_id)
    }

    fn request(&self, message: &Message) -> Result<NextRead, ReadError> {
        let memory = self.decoded_memory(message);
        let mut arguments = memory.of(self.decoder(message));
        match RequestHeader::decode(&mut arguments) {
            // By reference: the header is not small and need not be moved.
            Ok(ref request) => {
                // Noted in the order of reading, because another thread may run the next request.
                let request_context = self.record_contexts(request, message);
                let request_context = request_context.as_ref();
                let run = |upcall| {
                    let pipelined = self.begin_pipelined(upcall, &request.operation);
                    self.upcall(message, request, request_context, upcall, &mut arguments);
                    if let Some(pipelined) = pipelined {
                        self.end_pipelined(upcall, pipelined);
                    }
                };
                Ok(self.begin_upcall(is_one_way(request), run))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Records the service contexts that apply to all later requests. Returns their error, if they have any,
    /// and the deadline of the request.
    #[inline]
    fn record_contexts(&self, request: &RequestHeader<'_>, message: &Message) -> Option<RequestContext> {
        if request.service_contexts.is_empty() {
            None
        } else {
            Some(self.record_given_contexts(request, message.header.version))
        }
    }

    /// Runs a request. `arguments` begins after the header; `request_context` comes from
    /// [`record_contexts`](Self::record_contexts).
    // Inlined into its two callers: each request needs all of it.
    #[inline(always)]
    fn upcall<'m>(
        &'m self,
        message: &'m Message,
        request: &RequestHeader<'m>,
        request_context: Option<&RequestContext>,
        upcall: UpcallNumber,
        arguments: &mut Decoder<'m>,
    ) {
        let (connection, request_id) = (std::ptr::from_ref(self).addr(), request.request_id);
        let frame = Frame { connection, upcall, request_id, is_one_way: is_one_way(request) };
        let _frame = FrameScope::enter(&self.orb, frame);
        let request =
            ReceivedRequest::new(self, message, request).with_upcall_number(upcall).with_context(request_context);
        let code_sets = self.link.code_sets();
        arguments.set_code_sets(code_sets.char_set, code_sets.wchar_set);
        upcall::run(&RequestState::new(&request), &self.resources.adapter, arguments);
    }

    #[cold]
    fn record_given_contexts(&self, request: &RequestHeader<'_>, version: GiopVersion) -> RequestContext {
        let contexts = &request.service_contexts;
        RequestContext::from_contexts(contexts, self.resources.settings.context_limits, || {
            self.record_listen_points(request, version);
            self.link.record_code_sets(contexts)
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
        let adapter = &self.resources.adapter;
        // To locate may take long: interceptors and adapter activators of the application run.
        self.end_pipeline();
        if let Some(batch) = self.resources.pool.reply_batch() {
            batch.send_added();
        }
        Ok(self.begin_upcall(false, |_| {
            upcall::handle_locate_request(self, adapter, &request, message.header.version);
        }))
    }
}

/// Whether the client waits for no reply, or only for one of the server before the upcall.
#[inline]
fn is_one_way(request: &RequestHeader<'_>) -> bool {
    request.response != ResponseFlags::TWO_WAY
}
