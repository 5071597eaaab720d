//! The reactor that accepts connections, and the threads that serve the connections without a thread of their
//! own.
//!
//! The threads are leader and followers: one waits for all connections, and serves a connection that is ready
//! at once. Another then becomes the leader if that takes long. An idle connection costs no thread; in return
//! each request costs one more system call (design decision 3).
//!
//! A slow servant, or a client that does not read its replies, blocks a thread. The pool starts a stand-in
//! for each blocked thread, and has a few spare ones. There is no other bound on their number: each is
//! blocked by another connection, and connections are bounded. The upcall monitor reports the blocked
//! threads. That takes it longer with more connections, so it also checks at each look whether all threads of
//! the pool are stuck.
//!
//! A pool with a fixed number of threads has no stand-ins: when all of its threads are blocked, all of its
//! connections wait. Its threads serve other connections while they wait for replies
//! ([`nesting`](crate::nesting)).

use std::{io, pin::Pin, sync::OnceLock, task::Poll, time::Duration};

use spandrel_giop::SystemException;
use spandrel_ipc::{Interest, Pollable};
use spandrel_orb::{
    Concurrency, Spawn,
    nesting::{self, NestedWork},
    task::{self, Task},
};
use spandrel_reactor::{
    CloseReason, Context, EventHandler, Expired, HandlerId, LogLimit, Options, Reactor, Registry, Unlogged,
};
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use crate::{
    ServerConnection,
    connection::{ReactorRegistration, RequestQueue, ServiceStrategy, VisitOutcome},
    threads::ServerThreads,
    worker_counts::{WaitScope, WorkerCounts, WorkerVisit},
};

/// The most handlers of the reactor that are no connections; above any number of listeners.
const MAX_LISTENERS: usize = 1024;

/// A reactor and its threads. Both start at their first use.
#[derive(Debug)]
pub(super) struct Pool {
    reactor: OnceLock<Reactor>,
    max_handlers: usize,
    worker_counts: Arc<WorkerCounts>,
    threads: Arc<ServerThreads>,
    log_limit: Arc<LogLimit>,
    /// Whether its threads serve other connections while they wait for replies.
    nests: bool,
    /// The queue for the requests that its thread reads, unless its threads run them.
    queue: Option<Arc<RequestQueue>>,
}

/// A reactor whose threads serve other connections while they wait.
#[derive(Debug)]
struct PoolReactor {
    reactor: Reactor,
    worker_counts: Arc<WorkerCounts>,
}

impl NestedWork for PoolReactor {
    fn release_reading(&self) -> Result<(), SystemException> {
        crate::nesting::release_reading()
    }

    fn wake(&self) {
        self.reactor.registry().wake();
    }

    fn serve_until(&self, timeout: Option<Duration>, is_true: &mut dyn FnMut() -> bool) {
        let _pause = WaitScope::begin(&self.worker_counts);
        if let Err(error) = self.reactor.run_until(timeout, is_true) {
            tracing::error!(%error, "the reactor can no longer be run");
        }
    }
}

/// The pool's threads as an executor of futures.
pub(super) struct Workers<'p> {
    registry: &'p Registry,
    worker_counts: &'p Arc<WorkerCounts>,
    queue: Option<&'p Arc<RequestQueue>>,
}

/// A future that counts as a visit of its thread while it is polled.
struct PollVisit {
    worker_counts: Arc<WorkerCounts>,
    task: Task,
}

impl Future for PollVisit {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        let worker_counts = Arc::clone(&self.worker_counts);
        let _visit = WorkerVisit::begin(&worker_counts);
        self.task.as_mut().poll(cx)
    }
}

impl Pool {
    /// `nests`: whether its threads serve other connections while they wait for replies. The threads of a
    /// fixed pool always do.
    pub(super) fn new(
        max_connections: usize,
        concurrency: Concurrency,
        nests: bool,
        threads: &Arc<ServerThreads>,
        log_limit: &Arc<LogLimit>,
    ) -> Self {
        let worker_counts = Arc::new(WorkerCounts::new(concurrency.reactor_threads()));
        let queue = match concurrency {
            Concurrency::ThreadPool { threads: count, queue } => {
                Some(Arc::new(RequestQueue::new(queue, count, Arc::clone(threads), Arc::clone(log_limit))))
            }
            _ => None,
        };
        let (threads, log_limit) = (Arc::clone(threads), Arc::clone(log_limit));
        Self {
            reactor: OnceLock::new(),
            max_handlers: max_connections.saturating_add(MAX_LISTENERS),
            // The thread that fills a queue runs nothing that could wait.
            nests: (nests || worker_counts.is_fixed()) && queue.is_none(),
            worker_counts,
            threads,
            log_limit,
            queue,
        }
    }

    /// The strategy by which the pool serves a connection.
    pub(super) fn service(&self) -> ServiceStrategy {
        self.queue.clone().map_or(ServiceStrategy::Reactor, ServiceStrategy::Queue)
    }

    /// The reactor's registry. At least one thread then runs the reactor.
    pub(super) fn registry(&self) -> io::Result<&Registry> {
        if self.reactor.get().is_none() {
            let reactor = Reactor::with(&Options::new().max_handlers(self.max_handlers))?;
            // If another thread was faster, its reactor is used, and this one was never run.
            let _ = self.reactor.set(reactor);
        }
        self.ensure_workers(1)?;
        Ok(self.reactor.get().expect("it was set").registry())
    }

    /// Registers this connection with the reactor, whose threads then serve it.
    pub(super) fn serve(&self, connection: &Arc<ServerConnection>) -> io::Result<()> {
        let registry = self.registry()?;
        self.ensure_wanted_workers();
        if let Some(queue) = &self.queue {
            queue.ensure_workers()?;
        }
        let pooled = PooledConnection::new(Arc::clone(connection), Arc::clone(&self.worker_counts));
        registry.register(pooled, Interest::INPUT).map(drop)
    }

    /// Registers a connection that has a thread of its own, so that the reactor's threads write its waiting
    /// replies.
    pub(super) fn write_for(&self, connection: &Arc<ServerConnection>) -> io::Result<()> {
        self.registry()?.register(ReplyWriter(Arc::clone(connection)), Interest::OUTPUT).map(drop)
    }

    /// The pool's threads, as an executor of futures.
    ///
    /// # Errors
    /// Errors of the system, if there is no such thread and none can be started.
    pub(super) fn workers(&self) -> io::Result<Workers<'_>> {
        let registry = self.registry()?;
        self.ensure_wanted_workers();
        if let Some(queue) = &self.queue {
            queue.ensure_workers()?;
        }
        Ok(Workers { registry, worker_counts: &self.worker_counts, queue: self.queue.as_ref() })
    }

    /// The number of threads, and the number of requests that wait for one.
    pub(super) fn look(&self) -> (usize, usize) {
        let (workers, waiting) = self.queue.as_ref().map_or((0, 0), |queue| queue.look());
        (self.worker_counts.count() + workers, waiting)
    }

    /// Whether the number of threads is fixed, even when all of them are blocked.
    pub(super) fn is_fixed(&self) -> bool {
        self.worker_counts.is_fixed()
    }

    /// Records that an upcall blocks one of the threads, and ensures that another can do its work.
    pub(super) fn note_blocked(&self) {
        self.worker_counts.note_blocked();
        self.ensure_wanted_workers();
    }

    /// Records that a thread is no longer blocked.
    pub(super) fn note_unblocked(&self) {
        self.worker_counts.note_unblocked();
    }

    /// The number of blocked threads.
    #[cfg(all(test, shuttle))]
    pub(super) fn blocked(&self) -> usize {
        self.worker_counts.blocked()
    }

    /// Whether all threads visit a connection.
    pub(super) fn is_full(&self) -> bool {
        self.worker_counts.is_full()
    }

    /// Whether all threads visit a connection and none has moved since the last call. The monitor calls this
    /// at each look.
    pub(super) fn is_stuck(&self) -> bool {
        self.worker_counts.is_stuck()
    }

    /// Adds half as many threads as there are.
    pub(super) fn add_workers(&self) {
        let threads = self.worker_counts.count();
        if !self.worker_counts.is_fixed() {
            self.ensure_workers_with(threads + threads / 2 + 1);
        }
    }

    fn ensure_wanted_workers(&self) {
        self.ensure_workers_with(self.worker_counts.wanted());
    }

    fn ensure_workers_with(&self, wanted: usize) {
        if let Err(error) = self.ensure_workers(wanted) {
            // The existing threads go on. The next blocked thread causes another attempt.
            if let Some(Unlogged(unlogged)) = self.log_limit.admit("no thread to serve connections") {
                tracing::error!(%error, unlogged, "cannot start a further thread to serve connections");
            }
        }
    }

    /// Ensures that at least `wanted` threads run the reactor.
    fn ensure_workers(&self, wanted: usize) -> io::Result<()> {
        let Some(reactor) = self.reactor.get() else { return Ok(()) };
        for _ in 0..self.worker_counts.missing(wanted) {
            if !self.worker_counts.try_enter(wanted) {
                break;
            }
            let (reactor, worker_counts, nests) = (reactor.clone(), Arc::clone(&self.worker_counts), self.nests);
            let spawned = self.threads.spawn("spandrel-reactor", move || {
                let _member = nests.then(|| {
                    let (reactor, worker_counts) = (reactor.clone(), Arc::clone(&worker_counts));
                    nesting::join(Arc::new(PoolReactor { reactor, worker_counts }))
                });
                worker_counts.run(&reactor);
            });
            if let Err(error) = spawned {
                self.worker_counts.note_left();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Ends the threads, and all remaining connections.
    pub(super) fn close(&self) {
        if let Some(reactor) = self.reactor.get() {
            reactor.close();
        }
        if let Some(queue) = &self.queue {
            queue.close();
        }
    }
}

impl Spawn for Workers<'_> {
    fn spawn(&self, task: Task) {
        match self.queue {
            Some(queue) => task::run_in(Arc::clone(queue), task),
            None => {
                let task = Box::pin(PollVisit { worker_counts: Arc::clone(self.worker_counts), task });
                task::run_in(self.registry.clone(), task);
            }
        }
    }
}

/// A connection without a thread of its own.
struct PooledConnection {
    connection: Arc<ServerConnection>,
    worker_counts: Arc<WorkerCounts>,
    /// Another registration serves the connection. This one only ends its call.
    is_replaced: Arc<AtomicBool>,
}

impl PooledConnection {
    fn new(connection: Arc<ServerConnection>, worker_counts: Arc<WorkerCounts>) -> Self {
        Self { connection, worker_counts, is_replaced: Arc::default() }
    }
}

impl EventHandler for PooledConnection {
    fn pollable(&self) -> Option<&dyn Pollable> {
        self.connection.pollable()
    }

    fn handle_open(&mut self, context: &Context<'_>) -> io::Result<()> {
        let registration = PooledHandler {
            registry: Registry::clone(context),
            id: context.id(),
            wanted: Mutex::new(WantedEvents { input: true, output: false }),
            worker_counts: Arc::clone(&self.worker_counts),
            is_replaced: Arc::clone(&self.is_replaced),
        };
        self.connection.register_with(Arc::new(registration));
        Ok(())
    }

    fn handle_input(&mut self, context: &Context<'_>) -> io::Result<()> {
        let _visit = WorkerVisit::begin(&self.worker_counts);
        match self.connection.serve_ready() {
            VisitOutcome::Idle => {}
            VisitOutcome::Ended => context.close(),
        }
        Ok(())
    }

    fn handle_output(&mut self, _context: &Context<'_>) -> io::Result<()> {
        let _visit = WorkerVisit::begin(&self.worker_counts);
        self.connection.write_ready();
        Ok(())
    }

    /// Closes the connection at the end of the time to [linger](ReactorRegistration::linger).
    fn handle_timeout(&mut self, context: &Context<'_>, _timer: Expired) -> io::Result<()> {
        context.close();
        Ok(())
    }

    fn handle_close(&mut self, _context: &Context<'_>, reason: CloseReason) {
        if !matches!(reason, CloseReason::Removed) {
            tracing::debug!(?reason, "the reactor no longer serves a connection");
        }
        if !self.is_replaced.load(Ordering::SeqCst) {
            self.connection.registration_closed();
        }
    }
}

/// The handler that writes the waiting replies of a connection with a thread of its own, and then leaves the
/// reactor.
struct ReplyWriter(Arc<ServerConnection>);

impl EventHandler for ReplyWriter {
    fn pollable(&self) -> Option<&dyn Pollable> {
        self.0.pollable()
    }

    fn handle_output(&mut self, context: &Context<'_>) -> io::Result<()> {
        if self.0.write_ready() {
            // Detached at once, because another writer may have to be registered before this call has
            // returned.
            context.detach(context.id());
            self.0.writer_left();
        }
        Ok(())
    }
}

/// A connection's registration with the pool's reactor.
#[derive(Debug)]
struct PooledHandler {
    registry: Registry,
    id: HandlerId,
    wanted: Mutex<WantedEvents>,
    worker_counts: Arc<WorkerCounts>,
    is_replaced: Arc<AtomicBool>,
}

/// The events that a connection waits for. While output is wanted, only output is waited for.
#[derive(Clone, Copy, Debug)]
struct WantedEvents {
    input: bool,
    output: bool,
}

impl PooledHandler {
    fn want_input(&self, input: bool) -> bool {
        let mut wanted = self.wanted.lock();
        wanted.input = input;
        match *wanted {
            WantedEvents { output: true, .. } => self.registry.contains(self.id),
            WantedEvents { input: true, .. } => self.registry.resume(self.id),
            WantedEvents { input: false, .. } => self.registry.suspend(self.id),
        }
    }
}

impl ReactorRegistration for PooledHandler {
    fn suspend(&self) {
        self.want_input(false);
    }

    fn resume(&self) -> bool {
        self.want_input(true)
    }

    fn resume_marked(&self) -> bool {
        self.want_input(true) && self.registry.mark_ready(self.id, Interest::INPUT)
    }

    fn want_output(&self, is_wanted: bool) {
        let mut wanted = self.wanted.lock();
        if wanted.output == is_wanted {
            return;
        }
        wanted.output = is_wanted;
        let input = wanted.input;
        // An error means that the handler is gone; its `handle_close` deals with that.
        let _ = self.registry.set_interest(self.id, if is_wanted { Interest::OUTPUT } else { Interest::INPUT });
        match is_wanted || input {
            true => self.registry.resume(self.id),
            false => self.registry.suspend(self.id),
        };
        drop(wanted);
        if !is_wanted && input {
            // Input that is already in memory has not been looked at.
            self.registry.mark_ready(self.id, Interest::INPUT);
        }
    }

    fn linger(&self, time: Duration) -> bool {
        self.registry.schedule(self.id, time, None, 0).is_ok() && self.want_input(true)
    }

    fn leave(&self) {
        self.registry.remove(self.id);
    }

    fn renew(&self, connection: &Arc<ServerConnection>, is_ready: bool) -> io::Result<()> {
        self.is_replaced.store(true, Ordering::SeqCst);
        if !self.registry.detach(self.id) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let pooled = PooledConnection::new(Arc::clone(connection), Arc::clone(&self.worker_counts));
        let id = self.registry.register(pooled, Interest::INPUT)?;
        if is_ready {
            self.registry.mark_ready(id, Interest::INPUT);
        }
        Ok(())
    }
}
