//! Connections whose requests a reactor's thread reads and the workers of a [`RequestQueue`] run.
//!
//! Their requests run side by side, but none overtakes a one-way. While a one-way runs, `turn` is odd and
//! later requests wait *behind* it, as they do where one thread reads and runs requests. When a one-way
//! lasts, the monitor lets them overtake it.
//!
//! Accepted requests that have not ended are counted as `handed_over`, because the threads that run them do
//! not read. Reading stops while as many of them exist as may be in flight, or while the queue is full.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
};

use spandrel_connection::ReaderWord;
use spandrel_giop::{
    CompletionStatus, LocateRequestHeader, Message, MessageType, RequestHeader, SystemException, minor,
};
use spandrel_orb::{QueueOverflow, diagnostics::ArrivalTime, statistics::Level};
use spandrel_sync::{Arc, Mutex, MutexGuard, atomic::Ordering};
use spandrel_transport::ReadError;

use super::{ServerConnection, is_one_way, rejection::no_memory};
use crate::{
    queue::{Request, RequestQueue, RequestSource},
    upcall::{
        self,
        incoming_request::{IncomingRequest, RequestContext},
        reply::answer_exception,
    },
};

/// The queue between the thread that reads such connections and the workers that run their requests.
pub(crate) type RequestTable = RequestQueue<Accepted>;

/// A connection's requests that wait for a worker.
#[derive(Debug)]
pub(super) struct DispatchQueue {
    queue: Arc<RequestTable>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that wait behind a one-way.
    behind: VecDeque<QueuedRequest>,
    /// Whether reading has stopped until one of the requests ends.
    is_stopped: bool,
}

/// A request that was read.
#[derive(Debug)]
struct QueuedRequest {
    message: Message,
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
    /// The bits of the reader word after the request's step. A one-way's are odd, and no request overtakes
    /// it.
    turn: u64,
    /// Whether no worker has begun to run the request.
    waits: bool,
}

impl Accepted {
    /// Ends the request's wait, and releases the memory that was charged for it.
    fn begin(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.connection.orb.statistics().change(Level::RequestsQueued, -1);
            self.connection.intake.release(self.read.message.header.total_len());
        }
    }
}

impl Request for Accepted {
    fn run(mut self) {
        self.begin();
        let run = catch_unwind(AssertUnwindSafe(|| self.connection.run_accepted(&self.read, self.turn)));
        self.connection.exit_forked_copy();
        self.connection.settle(ReaderWord::from_bits(self.turn));
        if run.is_err() {
            tracing::error!(peer = %self.connection.link.peer(), "a request could not be answered: its thread panicked");
        }
    }
}

impl Drop for Accepted {
    fn drop(&mut self) {
        self.begin();
        self.connection.end_accepted(self.read.is_one_way.then_some(self.turn));
    }
}

impl DispatchQueue {
    pub(super) fn new(queue: Arc<RequestTable>) -> Self {
        Self { queue, state: Mutex::default() }
    }
}

impl RequestSource for ServerConnection {
    fn read_on(&self) {
        if let Some(registration) = self.registration() {
            registration.resume_marked();
        }
    }
}

impl ServerConnection {
    /// Reads the messages that are available now, and queues their requests.
    pub(super) fn read_for_others(&self, dispatch_queue: &DispatchQueue) -> Result<(), ReadError> {
        let mut is_first = true;
        while self.may_read_on(dispatch_queue) {
            let mut reader = self.reader.lock();
            let next = if std::mem::take(&mut is_first) {
                reader.wake();
                reader.next_ready(self.link.transport())
            } else {
                reader.buffered()
            };
            drop(reader);
            let next = match next {
                Ok(next) => next,
                Err(error) => {
                    self.handle_read_failure(error)?;
                    continue;
                }
            };
            let Some(message) = next else { break };
            match message.header.message_type {
                MessageType::Request | MessageType::LocateRequest => self.accept(dispatch_queue, message)?,
                _ => {
                    self.handle(&message)?;
                }
            }
        }
        self.reader.lock().rest();
        Ok(())
    }

    /// Whether reading may go on. It resumes after a stop when fewer requests run, when the queue has room,
    /// or when the client has taken its replies.
    fn may_read_on(&self, dispatch_queue: &DispatchQueue) -> bool {
        if self.is_bidirectional() {
            // Replies may arrive for which queued requests wait.
            return true;
        }
        if self.link.is_blocked() {
            self.reader.lock().stop();
            return false;
        }
        let waits_for_room = self.resources.settings.queue_overflow == QueueOverflow::Wait;
        if self.handed_over.load(Ordering::SeqCst) < self.resources.settings.max_in_flight
            && (!waits_for_room || dispatch_queue.queue.has_room())
        {
            return true;
        }
        let Some(registration) = self.registration() else { return true };
        // Progress is not checked meanwhile: the client is not to blame for the pause.
        self.reader.lock().stop();
        // Suspended before the check, because reading may be resumed at any time after it.
        registration.suspend();
        let mut state = dispatch_queue.state.lock();
        // Checked under the lock that a worker takes after it has uncounted its request.
        state.is_stopped = self.handed_over.load(Ordering::SeqCst) >= self.resources.settings.max_in_flight;
        let is_stopped = state.is_stopped;
        drop(state);
        if is_stopped || waits_for_room && dispatch_queue.queue.notify_when_room(self.shared()) {
            return false;
        }
        registration.resume_marked()
    }

    /// Queues a request, unless it is refused or the connection accepts no further one.
    fn accept(&self, dispatch_queue: &DispatchQueue, message: Message) -> Result<(), ReadError> {
        self.link.note_version(message.header.version);
        let (is_one_way, request_context) = self.look_at(&message)?;
        let is_full =
            self.is_bidirectional() && self.handed_over.load(Ordering::SeqCst) >= self.resources.settings.max_in_flight;
        let refuses = self.is_bidirectional() || self.resources.settings.queue_overflow == QueueOverflow::Refuse;
        if is_full || refuses && !dispatch_queue.queue.has_room() {
            let capacity = dispatch_queue.queue.capacity();
            let full = || {
                format!("{capacity} requests wait already, as many as -ORBConcurrency thread-pool:THREADS:QUEUE allows")
            };
            self.orb.statistics().refused_queue_full();
            let discarded = SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No);
            self.refuse(&message, &discarded.with_detail(full));
            return Ok(());
        }
        if let Err(no_room) = self.intake.charge(message.header.total_len()) {
            self.orb.statistics().refused_memory();
            self.refuse(&message, &no_memory(&no_room));
            return Ok(());
        }
        // Counted before the check: a thread that closes first sets the mark and then reads the count.
        self.handed_over.fetch_add(1, Ordering::SeqCst);
        if self.word().is_closing() {
            // The request is not acted on. The client learns that from CloseConnection, which was or will be
            // sent.
            self.intake.release(message.header.total_len());
            self.end_handed_over();
            self.send_close_when_idle();
            return Ok(());
        }
        self.orb.statistics().change(Level::RequestsQueued, 1);
        // A copy, because the memory in which the message arrived is for the next ones.
        let read = QueuedRequest {
            message: message.kept(),
            is_one_way,
            request_context,
            arrival: ArrivalTime::now(self.orb.diagnostics()),
        };
        let mut state = dispatch_queue.state.lock();
        if self.word().is_in_upcall() || !state.behind.is_empty() {
            dispatch_queue.queue.note_behind();
            state.behind.push_back(read);
            return Ok(());
        }
        let accepted = self.begin(&mut state, read);
        drop(state);
        dispatch_queue.queue.push(accepted, false);
        Ok(())
    }

    /// Decodes the header of a request and notes its contexts, in the order of reading. Returns whether it is
    /// a one-way, and its contexts.
    fn look_at(&self, message: &Message) -> Result<(bool, Option<RequestContext>), ReadError> {
        let mut input = self.decoder(message);
        if message.header.message_type == MessageType::LocateRequest {
            LocateRequestHeader::decode(&mut input)?;
            return Ok((false, None));
        }
        let request = RequestHeader::decode(&mut input)?;
        Ok((is_one_way(&request), self.note_contexts(&request, message)))
    }

    /// Takes the step of the reader word for a request that no one-way holds back any more.
    fn begin(&self, _state: &mut MutexGuard<'_, State>, read: QueuedRequest) -> Accepted {
        let turn = if read.is_one_way {
            self.is_one_way.store(true, Ordering::Relaxed);
            let word = self.step(ReaderWord::begin_upcall);
            self.resources.upcall_monitor.note_upcall();
            word
        } else {
            // The number shows that the connection is in use.
            self.step(ReaderWord::begin_beside)
        };
        Accepted { connection: self.shared(), read, turn: turn.bits(), waits: true }
    }

    /// Changes the reader word. Returns the new one.
    fn step(&self, transition: fn(ReaderWord) -> ReaderWord) -> ReaderWord {
        match self.change_word(|now| Some(transition(now))) {
            Ok(before) | Err(before) => transition(before),
        }
    }

    fn run_accepted(&self, QueuedRequest { message, request_context, arrival, .. }: &QueuedRequest, turn: u64) {
        arrival.ends(self.orb.diagnostics());
        let run = || -> Result<(), ReadError> {
            let mut arguments = self.decoder(message);
            if message.header.message_type == MessageType::LocateRequest {
                let request = LocateRequestHeader::decode(&mut arguments)?;
                upcall::handle_locate_request(self, &request, message.header.version);
                return Ok(());
            }
            let request = RequestHeader::decode(&mut arguments)?;
            if self.link.is_blocked()
                && let Err(no_room) = self.check_room_for_reply()
            {
                self.orb.statistics().refused_memory();
                self.refuse(message, &no_memory(&no_room));
                return Ok(());
            }
            self.upcall(
                message,
                &request,
                request_context.as_ref(),
                ReaderWord::from_bits(turn).count(),
                &mut arguments,
            );
            Ok(())
        };
        if let Err(error) = run() {
            // Unexpected: the header was decoded before, when the request was accepted.
            tracing::error!(peer = %self.link.peer(), %error, "an accepted request cannot be read");
        }
    }

    fn end_accepted(&self, turn: Option<u64>) {
        let Some(dispatch_queue) = &self.dispatch_queue else { return };
        if let Some(turn) = turn {
            self.overtake(dispatch_queue, turn);
        }
        self.end_handed_over();
        let is_stopped = std::mem::take(&mut dispatch_queue.state.lock().is_stopped);
        if is_stopped {
            self.read_on();
        }
        if self.word().is_closing() {
            self.send_close_when_idle();
        }
    }

    /// Begins the requests behind the one-way of `turn`, up to the next one-way, because that one has ended
    /// or lasts.
    pub(super) fn overtake(&self, dispatch_queue: &DispatchQueue, turn: u64) {
        let mut state = dispatch_queue.state.lock();
        let one_way = ReaderWord::from_bits(turn);
        if self.change_word(|now| now.end_upcall(one_way)).is_err() {
            return;
        }
        let mut next = Vec::new();
        while let Some(read) = state.behind.pop_front() {
            let is_one_way = read.is_one_way;
            next.push(self.begin(&mut state, read));
            if is_one_way {
                break;
            }
        }
        drop(state);
        for accepted in next {
            dispatch_queue.queue.push(accepted, true);
        }
    }

    /// Answers a request with an exception instead of running it.
    fn refuse(&self, message: &Message, exception: &SystemException) {
        let mut input = self.decoder(message);
        let Ok(header) = RequestHeader::decode(&mut input) else { return };
        log_limited!(warn, self.resources, "request refused", peer = %self.link.peer(), %exception, "refused a request");
        let is_answered = false.into();
        answer_exception(&IncomingRequest::new(self, message, &header, &is_answered), exception);
    }
}
