//! Connections whose requests a reactor's thread reads and the workers of a [`RequestQueue`] run.
//!
//! Their requests run side by side, but none overtakes a one-way. While a one-way runs, the reader word is odd and
//! later requests wait *behind* it, as they do where one thread reads and runs requests. When a one-way
//! lasts, the monitor lets them overtake it.
//!
//! Accepted requests that have not ended are counted as `handed_over`, because the threads that run them do
//! not read. Reading stops while as many of them exist as may be in flight, or while the queue is full.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
};

use spandrel_connection::{ReaderWord, UpcallNumber};
use spandrel_giop::{
    CompletionStatus, LocateRequestHeader, Message, MessageType, RequestHeader, SystemException, minor,
};
use spandrel_orb::{Concurrency, QueueOverflow, internal::ArrivalTime, statistics::Level};
use spandrel_reactor::LogLimit;
use spandrel_sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};
use spandrel_transport::ReadError;

use super::{ServerConnection, is_one_way, pending_requests::no_memory};
use crate::{
    queue::{Request, RequestQueue, RequestSource, WorkerQueue},
    threads::ServerThreads,
    upcall::{
        self,
        received_request::{ReceivedRequest, RequestContext, RequestState},
        reply::answer_exception,
    },
};

/// The queue between the thread that reads such connections and the workers that run their requests.
pub(crate) type AcceptedQueue = RequestQueue<Accepted>;

/// The threads that read and run a connection's requests.
#[derive(Clone, Debug)]
pub(crate) enum ServiceStrategy {
    /// A thread of the connection's own, in [`ServerConnection::serve`].
    OwnThread,
    /// The threads of a reactor, after [`ServerConnection::register_with`].
    Reactor,
    /// A reactor's thread reads requests, and the workers of this queue run them.
    Queue(Arc<AcceptedQueue>),
}

impl ServiceStrategy {
    /// The service of connections without a thread of their own.
    pub(crate) fn pooled(concurrency: Concurrency, threads: &Arc<ServerThreads>, log_limit: &Arc<LogLimit>) -> Self {
        match concurrency {
            Concurrency::ThreadPool { threads: count, queue } => {
                Self::Queue(Arc::new(AcceptedQueue::new(queue, count, Arc::clone(threads), Arc::clone(log_limit))))
            }
            _ => Self::Reactor,
        }
    }

    /// The queue of the workers, if they run the requests.
    pub(crate) fn queue(&self) -> Option<Arc<dyn WorkerQueue>> {
        match self {
            Self::Queue(queue) => Some(Arc::<AcceptedQueue>::clone(queue)),
            Self::OwnThread | Self::Reactor => None,
        }
    }
}

/// The threads that serve a connection now.
#[derive(Debug)]
pub(super) enum ConnectionService {
    /// The thread that reads a request runs it.
    ByReader {
        /// Whether a thread serves this connection alone and waits in its writes. It changes between two requests.
        has_own_thread: AtomicBool,
    },
    /// A thread of the reactor reads, and workers run the requests of this queue.
    ByWorkers(Box<DispatchQueue>),
}

impl ConnectionService {
    /// The service with which a connection begins.
    pub(super) fn new(strategy: ServiceStrategy) -> Self {
        match strategy {
            ServiceStrategy::OwnThread => Self::ByReader { has_own_thread: AtomicBool::new(true) },
            ServiceStrategy::Reactor => Self::ByReader { has_own_thread: AtomicBool::new(false) },
            ServiceStrategy::Queue(queue) => Self::ByWorkers(Box::new(DispatchQueue::new(queue))),
        }
    }

    /// Whether a thread serves this connection alone and waits in its writes.
    #[inline]
    pub(super) fn has_own_thread(&self) -> bool {
        matches!(self, Self::ByReader { has_own_thread } if has_own_thread.load(Ordering::SeqCst))
    }

    /// The requests that wait for a worker, if other threads run requests than the one that reads them.
    #[inline]
    pub(super) fn queue(&self) -> Option<&DispatchQueue> {
        match self {
            Self::ByReader { .. } => None,
            Self::ByWorkers(queue) => Some(queue),
        }
    }
}

/// A connection's requests that wait for a worker.
#[derive(Debug)]
pub(super) struct DispatchQueue {
    queue: Arc<AcceptedQueue>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that wait behind a one-way.
    behind: VecDeque<QueuedRequest>,
    /// Whether reading has stopped until one of the requests ends.
    is_stopped: bool,
    /// Requests of a bidirectional connection that wait for room among the running ones or in the queue. Its
    /// reading does not stop, because replies may be awaited that come behind them.
    held: VecDeque<QueuedRequest>,
    /// Whether the queue reports when it has room.
    awaits_room: bool,
}

/// The most requests that are held of a connection.
const MAX_HELD: usize = 1024;

/// A request that was read.
#[derive(Debug)]
struct QueuedRequest {
    message: Message,
    /// The octets that are charged while it waits.
    charged: usize,
    is_one_way: bool,
    /// Its contexts, as noted when it was read.
    request_context: Option<RequestContext>,
    /// When the request began to wait.
    arrival: ArrivalTime,
}

/// A request that a worker is to run.
#[derive(Debug)]
pub(crate) struct Accepted {
    connection: Arc<ServerConnection>,
    read: QueuedRequest,
    /// The reader word after the request's step. No request overtakes a one-way.
    word: ReaderWord,
    /// Whether no worker has begun to run the request.
    waits: bool,
}

impl Accepted {
    /// Ends the request's wait, and releases the memory that was charged for it.
    fn begin(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.connection.orb.statistics().change(Level::RequestsQueued, -1);
            self.connection.intake.release(self.read.charged);
        }
    }
}

impl Request for Accepted {
    fn run(mut self) {
        self.begin();
        let run = catch_unwind(AssertUnwindSafe(|| self.read.run(&self.connection, self.word.number())));
        self.connection.exit_forked_copy();
        self.connection.pending.settle(self.word);
        if run.is_err() {
            tracing::error!(peer = %self.connection.link.peer(), "a request could not be answered: its thread panicked");
        }
    }
}

impl Drop for Accepted {
    fn drop(&mut self) {
        self.begin();
        if let Some(dispatch_queue) = self.connection.service.queue() {
            dispatch_queue.end(&self.connection, self.read.is_one_way.then_some(self.word));
        }
    }
}

impl RequestSource for ServerConnection {
    fn read_on(&self) {
        if let Some(dispatch_queue) = self.service.queue() {
            dispatch_queue.state.lock().awaits_room = false;
        }
        self.resume_reading();
    }
}

impl ServerConnection {
    fn resume_reading(&self) {
        if let Some(registration) = self.registration.get() {
            registration.resume_marked();
        }
    }
}

impl DispatchQueue {
    pub(super) fn new(queue: Arc<AcceptedQueue>) -> Self {
        Self { queue, state: Mutex::default() }
    }

    /// Reads the messages that are available now, and queues their requests.
    pub(super) fn read(&self, connection: &ServerConnection) -> Result<(), ReadError> {
        self.admit_held(connection);
        let mut is_first = true;
        while self.may_read_on(connection) {
            let mut reader = connection.reader.lock();
            let next = if std::mem::take(&mut is_first) {
                reader.wake();
                reader.next_ready(connection.link.transport())
            } else {
                reader.buffered()
            };
            drop(reader);
            let next = match next {
                Ok(next) => next,
                Err(error) => {
                    connection.handle_read_failure(error)?;
                    continue;
                }
            };
            let Some(message) = next else { break };
            match message.header.message_type {
                MessageType::Request | MessageType::LocateRequest => self.accept(connection, message)?,
                _ => {
                    connection.handle(&message)?;
                }
            }
        }
        connection.reader.lock().rest();
        Ok(())
    }

    /// Whether reading may go on. It resumes after a stop when fewer requests run, when the queue has room,
    /// or when the client has taken its replies.
    fn may_read_on(&self, connection: &ServerConnection) -> bool {
        if connection.is_bidirectional() {
            // Replies may arrive for which queued requests wait.
            return true;
        }
        if connection.link.is_blocked() {
            connection.reader.lock().stop();
            return false;
        }
        let waits_for_room = connection.resources.settings.queue_overflow == QueueOverflow::Wait;
        if connection.reader_role.handed_over() < connection.resources.settings.max_in_flight
            && (!waits_for_room || self.queue.has_room())
        {
            return true;
        }
        let Some(registration) = connection.registration.get() else { return true };
        // Progress is not checked meanwhile: the client is not to blame for the pause.
        connection.reader.lock().stop();
        // Suspended before the check, because reading may be resumed at any time after it.
        registration.suspend();
        let mut state = self.state.lock();
        // Checked under the lock that a worker takes after it has uncounted its request.
        state.is_stopped = connection.reader_role.handed_over() >= connection.resources.settings.max_in_flight;
        let is_stopped = state.is_stopped;
        drop(state);
        if is_stopped || waits_for_room && self.queue.notify_when_room(connection.shared()) {
            return false;
        }
        registration.resume_marked()
    }

    /// Queues a request, unless it is refused or the connection accepts no further one.
    fn accept(&self, connection: &ServerConnection, message: Message) -> Result<(), ReadError> {
        connection.link.record_version(message.header.version);
        let (is_one_way, request_context) = look_at(connection, &message)?;
        let waits = connection.resources.settings.queue_overflow == QueueOverflow::Wait;
        // Of other connections nothing is read while there is no room.
        let has_room =
            if connection.is_bidirectional() { self.has_room_for(connection) } else { waits || self.queue.has_room() };
        let held = self.state.lock().held.len();
        let is_held = waits && (held > 0 || !has_room);
        if !has_room && !is_held || held >= MAX_HELD {
            self.refuse_overflow(connection, &message, held);
            return Ok(());
        }
        // A copy, because the memory in which a short message arrived is for the next ones.
        let message = message.kept();
        let is_behind = connection.reader_role.word().is_in_upcall();
        let charged = if is_held || is_behind { message.uncharged_len() } else { charge_of(&message) };
        if let Err(no_room) = connection.intake.charge(charged) {
            connection.orb.statistics().refused_memory();
            refuse(connection, &message, &no_memory(&no_room));
            return Ok(());
        }
        let arrival = ArrivalTime::now(connection.orb.diagnostics());
        let read = QueuedRequest { message, charged, is_one_way, request_context, arrival };
        if is_held {
            self.state.lock().held.push_back(read);
            self.admit_held(connection);
        } else {
            self.admit(connection, read);
        }
        Ok(())
    }

    /// Whether one more request of a bidirectional connection may run or wait in the queue.
    fn has_room_for(&self, connection: &ServerConnection) -> bool {
        connection.reader_role.handed_over() < connection.resources.settings.max_in_flight && self.queue.has_room()
    }

    /// Answers a request that finds no room.
    fn refuse_overflow(&self, connection: &ServerConnection, message: &Message, held: usize) {
        let capacity = self.queue.capacity();
        let full = || match held {
            0 => {
                format!("{capacity} requests wait already, as many as -ORBConcurrency thread-pool:THREADS:QUEUE allows")
            }
            held => format!("{held} requests of this connection wait already beyond the full queue"),
        };
        connection.orb.statistics().refused_queue_full();
        let discarded = SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No);
        refuse(connection, message, &discarded.with_detail(full));
    }

    /// Queues the requests that are held, as far as there is room. Without room, reading is resumed when there
    /// may be some.
    fn admit_held(&self, connection: &ServerConnection) {
        loop {
            let mut state = self.state.lock();
            if state.held.is_empty() {
                return;
            }
            if self.has_room_for(connection) {
                let read = state.held.pop_front();
                drop(state);
                read.into_iter().for_each(|read| self.admit(connection, read));
                continue;
            }
            // Checked under the lock that a worker takes after it has uncounted its request.
            state.is_stopped = connection.reader_role.handed_over() >= connection.resources.settings.max_in_flight;
            if state.is_stopped || std::mem::replace(&mut state.awaits_room, true) {
                return;
            }
            drop(state);
            if self.queue.notify_when_room(connection.shared()) {
                return;
            }
            self.state.lock().awaits_room = false;
        }
    }

    /// Queues a request, unless the connection accepts no further one.
    fn admit(&self, connection: &ServerConnection, read: QueuedRequest) {
        // Counted before the check: a thread that closes first sets the mark and then reads the count.
        connection.reader_role.count_handed_over();
        if connection.reader_role.word().is_closing() {
            // The request is not acted on. The client learns that from CloseConnection, which was or will be
            // sent.
            connection.intake.release(read.charged);
            connection.end_handed_over();
            connection.send_close_when_idle();
            return;
        }
        connection.orb.statistics().change(Level::RequestsQueued, 1);
        let mut state = self.state.lock();
        if connection.reader_role.word().is_in_upcall() || !state.behind.is_empty() {
            state.behind.push_back(read);
            return;
        }
        let accepted = begin(connection, &mut state, read);
        drop(state);
        self.queue.push(accepted);
    }

    /// Continues after the end of an accepted request. `one_way`: the reader word of its step, for a one-way.
    fn end(&self, connection: &ServerConnection, one_way: Option<ReaderWord>) {
        if let Some(one_way) = one_way {
            self.overtake(connection, one_way);
        }
        connection.end_handed_over();
        let is_stopped = std::mem::take(&mut self.state.lock().is_stopped);
        if is_stopped {
            connection.resume_reading();
        }
        if connection.reader_role.word().is_closing() {
            connection.send_close_when_idle();
        }
    }

    /// Begins the requests behind a one-way, up to the next one-way, because that one has ended
    /// or lasts.
    pub(super) fn overtake(&self, connection: &ServerConnection, one_way: ReaderWord) {
        let mut state = self.state.lock();
        if connection.reader_role.change_word(|now| now.end_upcall(one_way)).is_err() {
            return;
        }
        let mut next = Vec::new();
        while let Some(read) = state.behind.pop_front() {
            let is_one_way = read.is_one_way;
            next.push(begin(connection, &mut state, read));
            if is_one_way {
                break;
            }
        }
        drop(state);
        for accepted in next {
            self.queue.push(accepted);
        }
    }
}

impl QueuedRequest {
    /// Runs the request as the upcall of this number.
    fn run(&self, connection: &ServerConnection, upcall: UpcallNumber) {
        let Self { message, request_context, arrival, .. } = self;
        arrival.ends(connection.orb.diagnostics());
        let run = || -> Result<(), ReadError> {
            let memory = connection.decoded_memory(message);
            let mut arguments = memory.of(connection.decoder(message));
            if message.header.message_type == MessageType::LocateRequest {
                let request = LocateRequestHeader::decode(&mut arguments)?;
                upcall::handle_locate_request(
                    connection,
                    &connection.resources.adapter,
                    &request,
                    message.header.version,
                );
                return Ok(());
            }
            let request = RequestHeader::decode(&mut arguments)?;
            if connection.link.is_blocked()
                && let Err(no_room) = connection.check_room_for_reply()
            {
                connection.orb.statistics().refused_memory();
                refuse(connection, message, &no_memory(&no_room));
                return Ok(());
            }
            connection.upcall(message, &request, request_context.as_ref(), upcall, &mut arguments);
            Ok(())
        };
        if let Err(error) = run() {
            // Unexpected: the header was decoded before, when the request was accepted.
            tracing::error!(peer = %connection.link.peer(), %error, "an accepted request cannot be read");
        }
    }
}

/// Decodes the header of a request and notes its contexts, in the order of reading. Returns whether it is
/// a one-way, and its contexts.
fn look_at(connection: &ServerConnection, message: &Message) -> Result<(bool, Option<RequestContext>), ReadError> {
    let mut input = connection.decoder(message);
    if message.header.message_type == MessageType::LocateRequest {
        LocateRequestHeader::decode(&mut input)?;
        return Ok((false, None));
    }
    let request = RequestHeader::decode(&mut input)?;
    Ok((is_one_way(&request), connection.record_contexts(&request, message)))
}

/// The octets charged for a request that waits. A short one costs nothing, so that it is not refused while others have
/// all of the memory; the queue limits the number of requests.
fn charge_of(message: &Message) -> usize {
    const SHORT: usize = 4096;
    if message.octets().len() <= SHORT { 0 } else { message.uncharged_len() }
}

/// Takes the step of the reader word for a request that no one-way holds back any more.
fn begin(connection: &ServerConnection, _state: &mut MutexGuard<'_, State>, read: QueuedRequest) -> Accepted {
    let word = if read.is_one_way {
        connection.reader_role.set_one_way(true);
        let word = connection.reader_role.step(ReaderWord::begin_upcall);
        connection.resources.upcall_monitor.record_upcall();
        word
    } else {
        // The number shows that the connection is in use.
        connection.reader_role.step(ReaderWord::begin_beside)
    };
    Accepted { connection: connection.shared(), read, word, waits: true }
}

/// Answers a request with an exception instead of running it.
fn refuse(connection: &ServerConnection, message: &Message, exception: &SystemException) {
    let mut input = connection.decoder(message);
    let Ok(header) = RequestHeader::decode(&mut input) else { return };
    log_limited!(warn, connection.resources, "request refused", peer = %connection.link.peer(), %exception, "refused a request");
    answer_exception(&RequestState::new(&ReceivedRequest::new(connection, message, &header)), exception);
}
