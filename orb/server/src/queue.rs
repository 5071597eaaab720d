//! The queue between the thread that reads requests and those that run them (half-sync/half-async).
//!
//! The reactor's thread [pushes](Queue::push), the workers take what is next. Connections that find no room are not read from until half of
//! the queue is free again. What order the requests of one connection are pushed in, and how many, is that connection's matter.
//!
//! A worker that waits for the reply to a call of its own takes further requests meanwhile ([`nesting`]), so that a queue with one worker
//! survives call-backs.

use std::{collections::VecDeque, io, time::Duration};

use spandrel_giop::SystemException;
use spandrel_orb::{
    nesting::{self, NestedWork},
    task::Executor,
};
use spandrel_reactor::{LogLimit, Unlogged};
use spandrel_sync::{Arc, Condition, Mutex, MutexGuard, time::Instant};

use super::threads::ServerThreads;

type Job = Box<dyn FnOnce() + Send>;

/// A request that waits in a queue.
pub(super) trait Request: std::fmt::Debug + Send + 'static {
    /// Runs it to its end. One that is dropped instead is not run at all.
    fn run(self);
}

/// Whoever brings requests, and stops where there is no room for them.
pub(super) trait RequestSource: Send + Sync {
    /// There may be room again.
    fn read_on(&self);
}

/// What a worker does next.
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

/// A bounded queue of requests, and how many threads it has.
#[derive(Debug)]
pub(super) struct RequestQueue<R> {
    state: Mutex<State<R>>,
    changed: Condition,
    capacity: usize,
    /// How many there are to be.
    threads: usize,
    starter: Arc<ServerThreads>,
    log_limit: Arc<LogLimit>,
}

struct State<R> {
    work: VecDeque<WorkerTask<R>>,
    /// Requests that wait: those above, and those that wait behind a one-way of their connection.
    waiting: usize,
    /// Who reads no further until there is room.
    stopped: Vec<Arc<dyn RequestSource>>,
    threads: usize,
    /// How often those that wait were told to look.
    wakes: u64,
    is_closed: bool,
}

impl<R> Default for State<R> {
    fn default() -> Self {
        let (work, stopped) = (VecDeque::new(), Vec::new());
        Self { work, waiting: 0, stopped, threads: 0, wakes: 0, is_closed: false }
    }
}

impl<R> std::fmt::Debug for State<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("waiting", &self.waiting).field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl<R: Request> RequestQueue<R> {
    pub(super) fn new(capacity: usize, threads: usize, starter: Arc<ServerThreads>, log_limit: Arc<LogLimit>) -> Self {
        Self { state: Mutex::default(), changed: Condition::new(), capacity, threads, starter, log_limit }
    }

    /// How many threads there are, and how many requests wait.
    pub(super) fn look(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.threads, state.waiting)
    }

    /// How many requests may wait.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether one more request may wait. One thread reads for all connections, and asks before it reads.
    pub(super) fn has_room(&self) -> bool {
        self.state.lock().waiting < self.capacity
    }

    /// Counts a request that waits behind another of its connection.
    pub(super) fn note_behind(&self) {
        self.state.lock().waiting += 1;
    }

    /// Has a request run: one that was counted already, or a new one. A queue that is closed drops it.
    pub(super) fn push(&self, request: R, is_counted: bool) {
        let mut state = self.state.lock();
        state.waiting += usize::from(!is_counted);
        if state.is_closed {
            state.waiting -= 1;
            drop(state);
            return drop(request);
        }
        state.work.push_back(WorkerTask::Request(request));
        drop(state);
        self.changed.notify_one();
    }

    /// Says so to this source when there is room again; false if there is.
    pub(super) fn notify_when_room(&self, source: Arc<dyn RequestSource>) -> bool {
        let mut state = self.state.lock();
        let is_full = state.waiting >= self.capacity && !state.is_closed;
        if is_full {
            state.stopped.push(source);
        }
        is_full
    }

    /// Starts the threads, if they have not been started.
    ///
    /// # Errors
    /// Those of the system: there is no thread at all.
    pub(super) fn ensure_workers(self: &Arc<Self>) -> io::Result<()> {
        loop {
            let mut state = self.state.lock();
            if state.threads >= self.threads || state.is_closed {
                return Ok(());
            }
            state.threads += 1;
            drop(state);
            let queue = Arc::clone(self);
            if let Err(error) = self.starter.spawn("spandrel-worker", move || queue.run()) {
                let mut state = self.state.lock();
                state.threads -= 1;
                let is_staffed = state.threads > 0;
                drop(state);
                if let Some(Unlogged(unlogged)) = self.log_limit.admit("no thread to run requests") {
                    tracing::error!(%error, unlogged, "no further thread to run requests");
                }
                return if is_staffed { Ok(()) } else { Err(error) };
            }
        }
    }

    /// What a worker does.
    fn run(self: &Arc<Self>) {
        let _member = nesting::join(Arc::clone(self) as _);
        let mut state = self.state.lock();
        loop {
            match state.work.pop_front() {
                Some(work) => state = self.perform(state, work),
                None if state.is_closed => return,
                None => self.changed.wait(&mut state),
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

    /// Ends the threads once they are done with what they run. What waits is dropped.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let (work, stopped) = (std::mem::take(&mut state.work), std::mem::take(&mut state.stopped));
        drop(state);
        self.changed.notify_all();
        drop((work, stopped));
    }
}

impl<R: Request> Executor for RequestQueue<R> {
    /// Not counted with the requests that wait: what serves asynchronously is bounded by its connection.
    fn execute(&self, job: Job) -> bool {
        let mut state = self.state.lock();
        if state.is_closed {
            return false;
        }
        state.work.push_back(WorkerTask::Job(job));
        drop(state);
        self.changed.notify_one();
        true
    }
}

impl<R: Request> NestedWork for RequestQueue<R> {
    fn release_reading(&self) -> Result<(), SystemException> {
        crate::nesting::release_reading()
    }

    fn wake(&self) {
        self.state.lock().wakes += 1;
        self.changed.notify_all();
    }

    fn serve_until(&self, timeout: Option<Duration>, is_true: &mut dyn FnMut() -> bool) {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        let mut state = self.state.lock();
        loop {
            let wakes = state.wakes;
            drop(state);
            // Not under the lock: whoever makes it come true may hold one of his own, and wakes.
            if is_true() {
                break;
            }
            state = self.state.lock();
            if let Some(work) = state.work.pop_front() {
                state = self.perform(state, work);
                continue;
            }
            let remaining = end.map(|end| end.saturating_duration_since(Instant::now()));
            if state.is_closed || remaining == Some(Duration::ZERO) {
                return;
            }
            match remaining {
                _ if state.wakes != wakes => {}
                None => self.changed.wait(&mut state),
                Some(remaining) => drop(self.changed.wait_for(&mut state, remaining)),
            }
        }
        if !self.state.lock().work.is_empty() {
            // It may have been told of that in place of another.
            self.changed.notify_one();
        }
    }
}
