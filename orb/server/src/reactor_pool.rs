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
//! A pool with a fixed number of threads has no stand-ins: a free one of its threads reads on during a long upcall
//! ([`reading`](crate::connection::reading)), and when all of its threads are blocked, all of its
//! connections wait. Its threads serve other connections while they wait for replies
//! ([`nesting`](crate::nesting)).
//!
//! `leader_followers` of `spandrel-reactor` decides which thread leads, and `worker_counts` how many threads there are.

use std::{io, sync::OnceLock, time::Duration};

use spandrel_connection::ServiceMode;
use spandrel_giop::SystemException;
use spandrel_orb::{
    Concurrency, Spawn, Task,
    internal::{
        ServerSettings,
        nesting::{self, NestedWork},
        task::{self, Executor},
    },
};
use spandrel_reactor::{LogLimit, Options, Reactor, Registry, Unlogged};
use spandrel_sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::{
    queue::{Job, WorkerQueue},
    reply_batch::ReplyBatch,
    threads::ServerThreads,
    worker_counts::{WaitScope, WorkerCounts, WorkerVisit},
};

/// The most handlers of the reactor that are no connections; above any number of listeners.
const MAX_LISTENERS: usize = 1024;

/// A reactor and its threads. Both start at their first use.
#[derive(Debug)]
pub(super) struct Pool {
    /// Whether connections move between threads of their own and the reactor.
    is_adaptive: bool,
    /// Whether connections that would have threads of their own share those of the reactor.
    shares_threads: AtomicBool,
    reactor: OnceLock<Reactor>,
    /// The threads as an executor, once a future was given to them.
    reactor_workers: OnceLock<Arc<ReactorWorkers>>,
    max_handlers: usize,
    worker_counts: Arc<WorkerCounts>,
    threads: Arc<ServerThreads>,
    log_limit: Arc<LogLimit>,
    /// Whether its threads serve other connections while they wait for replies.
    nests: bool,
    /// The replies of one round, if they are sent together.
    reply_batch: Option<Arc<ReplyBatch>>,
    /// The queue for the requests that its thread reads, unless its threads run them.
    queue: Option<Arc<dyn WorkerQueue>>,
}

/// A reactor whose threads serve other connections while they wait.
#[derive(Debug)]
struct PoolReactor {
    reactor: Reactor,
    worker_counts: Arc<WorkerCounts>,
    reply_batch: Option<Arc<ReplyBatch>>,
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
        if let Some(batch) = &self.reply_batch {
            batch.send_or_leave(); // the upcall that goes on now may take long
        }
    }
}

/// The pool's threads as an executor of futures.
pub(super) struct Workers<'p> {
    reactor: &'p Arc<ReactorWorkers>,
    queue: Option<&'p Arc<dyn WorkerQueue>>,
}

impl Pool {
    /// `queue`: the queue for the requests that the pool's thread reads, unless its threads run them.
    pub(super) fn new(
        settings: &ServerSettings,
        queue: Option<Arc<dyn WorkerQueue>>,
        threads: &Arc<ServerThreads>,
        log_limit: &Arc<LogLimit>,
    ) -> Self {
        let worker_counts = Arc::new(WorkerCounts::new(settings.concurrency.reactor_threads()));
        let (threads, log_limit) = (Arc::clone(threads), Arc::clone(log_limit));
        Self {
            is_adaptive: matches!(settings.concurrency, Concurrency::Adaptive { .. }),
            shares_threads: AtomicBool::new(false),
            reactor: OnceLock::new(),
            reactor_workers: OnceLock::new(),
            max_handlers: settings.max_connections.saturating_add(MAX_LISTENERS),
            // The threads of a fixed pool always nest. The thread that fills a queue runs nothing that could
            // wait.
            nests: (settings.nests || worker_counts.is_fixed()) && queue.is_none(),
            reply_batch: (settings.batches_replies && queue.is_none()).then(ReplyBatch::new).and_then(Result::ok),
            worker_counts,
            threads,
            log_limit,
            queue,
        }
    }

    /// The reactor's registry. At least one thread then runs the reactor.
    pub(super) fn registry(&self) -> io::Result<&Registry> {
        if self.reactor.get().is_none() {
            let mut options = Options::new().max_handlers(self.max_handlers);
            if let Some(batch) = self.reply_batch.clone() {
                options = options.before_wait(move || batch.send_or_leave());
            }
            let reactor = Reactor::with(&options)?;
            // If another thread was faster, its reactor is used, and this one was never run.
            let _ = self.reactor.set(reactor);
        }
        self.ensure_workers(1)?;
        Ok(self.reactor.get().expect("it was set").registry())
    }

    /// The batch that each of the reactor's threads sends before it waits.
    #[inline]
    pub(super) fn reply_batch(&self) -> Option<&ReplyBatch> {
        self.reply_batch.as_deref()
    }

    /// Sends the replies that have been left in the batch.
    pub(super) fn send_batch(&self) {
        if let Some(batch) = self.reply_batch() {
            batch.send();
        }
    }

    /// The pool's threads, as an executor of futures.
    ///
    /// # Errors
    /// Errors of the system, if there is no such thread and none can be started.
    pub(super) fn workers(&self) -> io::Result<Workers<'_>> {
        let registry = self.registry()?;
        self.ensure_wanted_workers();
        if let Some(queue) = &self.queue {
            Arc::clone(queue).ensure_workers()?;
        }
        if self.reactor_workers.get().is_none() {
            let (worker_counts, reply_batch) = (Arc::clone(&self.worker_counts), self.reply_batch.clone());
            let workers = ReactorWorkers { registry: registry.clone(), worker_counts, reply_batch };
            let _ = self.reactor_workers.set(Arc::new(workers));
        }
        let reactor = self.reactor_workers.get().expect("it was set");
        Ok(Workers { reactor, queue: self.queue.as_ref() })
    }

    /// The reactor's registry and the counts of its threads, for a handler that keeps a thread during its calls.
    /// As many threads then run as are wanted.
    ///
    /// # Errors
    /// Errors of the system, if there is no such thread and none can be started.
    pub(super) fn visited_registry(&self) -> io::Result<(&Registry, &Arc<WorkerCounts>)> {
        self.workers().map(|workers| (&workers.reactor.registry, &workers.reactor.worker_counts))
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

    /// Whether a thread may be free, or started, to read on while an upcall keeps another one.
    pub(super) fn can_read_on(&self) -> bool {
        !self.worker_counts.is_fixed() || self.worker_counts.wanted() > 1
    }

    /// Whether connections move between threads of their own and the reactor.
    pub(super) fn is_adaptive(&self) -> bool {
        self.is_adaptive
    }

    /// Whether connections that would have threads of their own share those of the reactor.
    #[inline]
    pub(super) fn shares_threads(&self) -> bool {
        self.shares_threads.load(Ordering::Relaxed)
    }

    /// Has connections move to the reactor, or back to threads of their own, with their next requests.
    pub(super) fn set_service_mode(&self, mode: ServiceMode) {
        self.shares_threads.store(mode == ServiceMode::SharedThreads, Ordering::Relaxed);
    }

    /// Records that an upcall blocks one of the threads, and ensures that another can do its work.
    pub(super) fn record_blocked(&self) {
        self.worker_counts.record_blocked();
        self.ensure_wanted_workers();
    }

    /// Records that a thread is no longer blocked.
    pub(super) fn record_unblocked(&self) {
        self.worker_counts.record_unblocked();
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
            let reply_batch = self.reply_batch.clone();
            let spawned = self.threads.spawn("spandrel-reactor", move || {
                let _member = nests.then(|| {
                    let (reactor, worker_counts) = (reactor.clone(), Arc::clone(&worker_counts));
                    nesting::join(Arc::new(PoolReactor { reactor, worker_counts, reply_batch: reply_batch.clone() }))
                });
                worker_counts.run(&reactor);
                if let Some(batch) = reply_batch {
                    batch.send(); // those of a round that the end of the reactor cut short
                }
            });
            if let Err(error) = spawned {
                self.worker_counts.record_left();
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

/// The workers of a queue, as an executor of futures.
struct QueueWorkers(Arc<dyn WorkerQueue>);

impl Executor for QueueWorkers {
    fn execute(&self, job: Job) -> bool {
        self.0.execute(job)
    }
}

/// The reactor's threads, as an executor of futures.
#[derive(Debug)]
struct ReactorWorkers {
    registry: Registry,
    worker_counts: Arc<WorkerCounts>,
    reply_batch: Option<Arc<ReplyBatch>>,
}

impl Executor for ReactorWorkers {
    fn execute(&self, job: Job) -> bool {
        Executor::execute(&self.registry, job)
    }

    /// The thread counts as one that visits a connection. One that polls a future in its upcall counts already. The
    /// replies that it has collected do not wait for the poll, which may block.
    fn run(&self, poll: &mut dyn FnMut()) {
        if let Some(batch) = &self.reply_batch {
            batch.send_added();
        }
        let _visit = WorkerVisit::begin(&self.worker_counts);
        poll();
    }
}

impl Spawn for Workers<'_> {
    fn spawn(&self, task: Task) {
        match self.queue {
            Some(queue) => task::run_in(QueueWorkers(Arc::clone(queue)), task),
            None => task::run_in(Arc::clone(self.reactor), task),
        }
    }

    fn spawn_servant(&self, task: Task) {
        match self.queue {
            // The replies of workers share writes only if these poll the futures as jobs.
            Some(_) => self.spawn(task),
            None => task::begin_here(|| Arc::clone(self.reactor), task),
        }
    }
}

#[cfg(all(test, target_os = "linux", not(shuttle)))]
mod tests {
    use super::*;
    use crate::reply_batch::fake::Connection;

    #[test]
    fn replies_leave_before_a_future_is_polled_that_may_block() {
        let (reactor, batch) = (Reactor::new().unwrap(), ReplyBatch::new().unwrap());
        let workers = ReactorWorkers {
            registry: reactor.registry().clone(),
            worker_counts: Arc::new(WorkerCounts::new(None)),
            reply_batch: Some(Arc::clone(&batch)),
        };
        let connection = Connection::new();
        connection.reply_in(&batch);
        assert!(!connection.has_reply());
        let mut polls = 0;
        workers.run(&mut || {
            polls += 1;
            assert!(connection.has_reply());
        });
        assert_eq!(polls, 1);
    }
}
