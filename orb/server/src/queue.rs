//! The bounded queue between the thread that reads requests and the workers that run them
//! (half-sync/half-async).
//!
//! The reactor's thread [pushes](RequestQueue::push) requests, and each worker takes the next one. A
//! connection that finds the queue full is not read from until half of the queue is free again. The order in
//! which a connection pushes its requests, and their number, are left to that connection.
//!
//! A worker that waits for the reply to its own call takes further requests meanwhile ([`nesting`]), those for which
//! there is no idle worker. So a queue with one worker survives callbacks. An idle worker comes first, because a
//! request that runs inside of another has to end before that one goes on.

use std::{collections::VecDeque, io, time::Duration};

use spandrel_giop::SystemException;
use spandrel_orb::internal::nesting::{self, NestedWork};
use spandrel_reactor::{LogLimit, Unlogged};
use spandrel_sync::{Arc, Condition, Mutex, MutexGuard, time::Deadline};

use crate::threads::ServerThreads;

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// A request that waits in a queue.
pub(super) trait Request: std::fmt::Debug + Send + 'static {
    /// Runs the request to its end. A request that is dropped instead does not run.
    fn run(self);
}

/// A source of requests that stops while the queue is full.
pub(super) trait RequestSource: Send + Sync {
    /// Resumes reading: the queue may have room again.
    fn read_on(&self);
}

/// A queue of requests of any type, as the pool sees it.
pub(super) trait WorkerQueue: Send + Sync + std::fmt::Debug {
    /// Starts the workers that have not been started.
    ///
    /// # Errors
    /// Errors of the system, if there is no worker at all.
    fn ensure_workers(self: Arc<Self>) -> io::Result<()>;

    /// The number of workers, and the number of waiting requests.
    fn look(&self) -> (usize, usize);

    /// Has a worker run a job. Returns false if the workers have ended.
    fn execute(&self, job: Job) -> bool;

    /// Ends the workers after their present work. Waiting work is dropped.
    fn close(&self);
}

/// The next piece of a worker's work.
enum WorkerTask<R> {
    Request(R),
    Job(Job),
}

impl<R: Request> WorkerTask<R> {
    fn perform(self) {
        match self {
            Self::Request(request) => request.run(),
            Self::Job(job) => job(),
        }
    }
}

/// A bounded queue of requests, and its workers.
#[derive(Debug)]
pub(super) struct RequestQueue<R> {
    state: Mutex<State<R>>,
    /// Idle workers wait here.
    changed: Condition,
    /// Workers that wait for replies wait here.
    nested: Condition,
    capacity: usize,
    /// The number of workers to start.
    threads: usize,
    starter: Arc<ServerThreads>,
    log_limit: Arc<LogLimit>,
}

struct State<R> {
    work: VecDeque<WorkerTask<R>>,
    /// The number of waiting requests in `work`. Those that wait behind a one-way of their connection are not among
    /// them: their number is bounded for each connection, and they must not stop the others.
    waiting: usize,
    /// The sources that have stopped until there is room.
    stopped: Vec<Arc<dyn RequestSource>>,
    threads: usize,
    /// The number of idle workers, also of those that were notified and have not yet woken. Each takes one piece of
    /// work.
    idle: usize,
    /// The number of times that waiting workers were woken to check their condition.
    wakes: u64,
    is_closed: bool,
}

impl<R> State<R> {
    /// Whether more work waits than idle workers will take.
    fn has_surplus(&self) -> bool {
        self.work.len() > self.idle
    }
}

impl<R> Default for State<R> {
    fn default() -> Self {
        let (work, stopped) = (VecDeque::new(), Vec::new());
        Self { work, waiting: 0, stopped, threads: 0, idle: 0, wakes: 0, is_closed: false }
    }
}

impl<R> std::fmt::Debug for State<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("waiting", &self.waiting).field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl<R: Request> RequestQueue<R> {
    pub(super) fn new(capacity: usize, threads: usize, starter: Arc<ServerThreads>, log_limit: Arc<LogLimit>) -> Self {
        let (changed, nested) = (Condition::new(), Condition::new());
        Self { state: Mutex::default(), changed, nested, capacity, threads, starter, log_limit }
    }

    /// The number of requests that may wait.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether one more request may wait. One thread reads for all connections, and checks this before it
    /// reads.
    pub(super) fn has_room(&self) -> bool {
        self.state.lock().waiting < self.capacity
    }

    /// The number of idle workers.
    #[cfg(all(test, shuttle))]
    pub(super) fn idle(&self) -> usize {
        self.state.lock().idle
    }

    /// Queues a request. A closed queue drops it.
    pub(super) fn push(&self, request: R) {
        let mut state = self.state.lock();
        if state.is_closed {
            drop(state);
            return drop(request);
        }
        state.waiting += 1;
        self.enqueue(state, WorkerTask::Request(request));
    }

    /// Queues work, and notifies an idle worker, or one that waits if there are too few idle ones.
    fn enqueue(&self, mut state: MutexGuard<'_, State<R>>, work: WorkerTask<R>) {
        state.work.push_back(work);
        let is_for_idle = !state.has_surplus();
        drop(state);
        if is_for_idle { self.changed.notify_one() } else { self.nested.notify_one() }
    }

    /// Registers a source to be notified once there is room. False if there is room already, or if the queue
    /// is closed.
    pub(super) fn notify_when_room(&self, source: Arc<dyn RequestSource>) -> bool {
        let mut state = self.state.lock();
        let is_full = state.waiting >= self.capacity && !state.is_closed;
        if is_full {
            state.stopped.push(source);
        }
        is_full
    }

    /// Runs a worker until the queue is closed.
    fn run(self: &Arc<Self>) {
        let _member = nesting::join(Arc::clone(self) as _);
        let mut state = self.state.lock();
        loop {
            match state.work.pop_front() {
                Some(work) => state = self.perform(state, work),
                None if state.is_closed => return,
                None => {
                    state.idle += 1;
                    self.changed.wait(&mut state);
                    state.idle -= 1;
                }
            }
        }
    }

    fn perform<'q>(&'q self, mut state: MutexGuard<'q, State<R>>, work: WorkerTask<R>) -> MutexGuard<'q, State<R>> {
        if matches!(work, WorkerTask::Request(_)) {
            state.waiting -= 1;
        }
        let has_room = state.waiting <= self.capacity / 2 && !state.stopped.is_empty();
        let stopped = if has_room { std::mem::take(&mut state.stopped) } else { Vec::new() };
        drop(state);
        for source in stopped {
            source.read_on();
        }
        work.perform();
        self.state.lock()
    }
}

impl<R: Request> WorkerQueue for RequestQueue<R> {
    fn ensure_workers(self: Arc<Self>) -> io::Result<()> {
        loop {
            let mut state = self.state.lock();
            if state.threads >= self.threads || state.is_closed {
                return Ok(());
            }
            state.threads += 1;
            drop(state);
            let queue = Arc::clone(&self);
            if let Err(error) = self.starter.spawn("spandrel-worker", move || queue.run()) {
                let mut state = self.state.lock();
                state.threads -= 1;
                let is_staffed = state.threads > 0;
                drop(state);
                if let Some(Unlogged(unlogged)) = self.log_limit.admit("no thread to run requests") {
                    tracing::error!(%error, unlogged, "cannot start a further thread to run requests");
                }
                return if is_staffed { Ok(()) } else { Err(error) };
            }
        }
    }

    fn look(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.threads, state.waiting)
    }

    /// Jobs do not count as waiting requests. Each connection bounds its own asynchronous requests.
    fn execute(&self, job: Job) -> bool {
        let state = self.state.lock();
        if state.is_closed {
            return false;
        }
        self.enqueue(state, WorkerTask::Job(job));
        true
    }

    fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let (work, stopped) = (std::mem::take(&mut state.work), std::mem::take(&mut state.stopped));
        drop(state);
        self.changed.notify_all();
        self.nested.notify_all();
        drop((work, stopped));
    }
}

impl<R: Request> NestedWork for RequestQueue<R> {
    fn release_reading(&self) -> Result<(), SystemException> {
        crate::nesting::release_reading()
    }

    fn wake(&self) {
        self.state.lock().wakes += 1;
        self.nested.notify_all();
    }

    fn serve_until(&self, timeout: Option<Duration>, is_true: &mut dyn FnMut() -> bool) {
        let deadline = Deadline::after(timeout);
        let mut state = self.state.lock();
        loop {
            let wakes = state.wakes;
            drop(state);
            // Checked without the lock: the thread that fulfils the condition may hold a lock of its own when
            // it wakes this one.
            if is_true() {
                break;
            }
            state = self.state.lock();
            if state.has_surplus()
                && let Some(work) = state.work.pop_front()
            {
                state = self.perform(state, work);
                continue;
            }
            if state.is_closed || deadline.is_over() {
                return;
            }
            if state.wakes == wakes {
                self.nested.wait_until(&mut state, deadline);
            }
        }
        if self.state.lock().has_surplus() {
            // The notification of that work may have reached this thread instead of another that waits.
            self.nested.notify_one();
        }
    }
}
