//! Threads that run the services of an acceptor or connector.
//!
//! A process for each connection is in `process`.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_ipc::Family;
use spandrel_sync::atomic::{AtomicUsize, Ordering};
use spandrel_sync::{Arc, Condition, Mutex, thread};

use crate::service::{Service, blocking, reactive::Served};
use crate::{Context, ServiceHandler};

/// Runs services: the papers' concurrency strategy.
pub trait Concurrency<F: Family, H: ServiceHandler<F>>: Send + 'static {
    /// Runs this service from now on. Must not wait: the accepting reactor calls it.
    ///
    /// # Errors
    /// The reason why it cannot be run; it is dropped then, and its connection closed.
    fn activate(&mut self, context: &Context<'_>, service: Service<F, H>) -> io::Result<()>;
}

/// The reactor that accepted or connected runs all services, on its threads. None waits for another's peer; a
/// handler that computes for long delays the others unless several threads run the reactor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reactive;

impl<F: Family, H: ServiceHandler<F>> Concurrency<F, H> for Reactive {
    fn activate(&mut self, context: &Context<'_>, service: Service<F, H>) -> io::Result<()> {
        context.register(Served::new(service), Served::<F, H>::INTEREST).map(drop)
    }
}

/// A thread for each service. Connections beyond `limit` are refused, or served by the reactor.
///
/// The threads belong to their connections, not to the accepting reactor: they continue when that stops, and
/// end with the process at the latest. [`Server::drain`](crate::Server::drain) ends them before.
#[derive(Clone, Debug)]
pub struct ThreadPerConnection {
    limit: usize,
    is_overflow_reactive: bool,
    running: Arc<AtomicUsize>,
}

impl ThreadPerConnection {
    /// Up to that many threads at a time; further connections are refused.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, is_overflow_reactive: false, running: Arc::default() }
    }

    /// Connections beyond the limit are served by the reactor.
    #[must_use]
    pub fn or_reactive(mut self) -> Self {
        self.is_overflow_reactive = true;
        self
    }

    /// The number of serving threads.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }
}

impl<F: Family, H: ServiceHandler<F>> Concurrency<F, H> for ThreadPerConnection {
    fn activate(&mut self, context: &Context<'_>, service: Service<F, H>) -> io::Result<()> {
        let Some(permit) = Permit::take(&self.running, self.limit) else {
            if self.is_overflow_reactive {
                return Reactive.activate(context, service);
            }
            let message = format!("all {} threads of the ThreadPerConnection strategy are serving", self.limit);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
        };
        service.set_thread_member();
        let run = move || {
            blocking::serve(service);
            drop(permit);
        };
        thread::Builder::new().name("spandrel-serve".into()).spawn(run).map(drop)
    }
}

/// A permit of a bounded number.
struct Permit(Arc<AtomicUsize>);

impl Permit {
    fn take(taken: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let next = |now| (now < limit).then_some(now + 1);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        Some(Self(Arc::clone(taken)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads, each of which serves one connection to its end and then takes the next from a
/// bounded queue: the reactor is the asynchronous half, the pool the synchronous one (half-sync/half-async).
///
/// As with [`ThreadPerConnection`], open connections continue when the reactor stops.
#[derive(Debug)]
pub struct ThreadPool {
    queue: Arc<Queue>,
}

struct Queue {
    state: Mutex<QueueState>,
    /// There is a job, or the queue is closed.
    changed: Condition,
    threads: usize,
    limit: usize,
}

#[derive(Default)]
struct QueueState {
    jobs: std::collections::VecDeque<Job>,
    /// The number of serving threads.
    busy: usize,
    is_closed: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.state.lock().jobs.len()).field("limit", &self.limit).finish()
    }
}

impl ThreadPool {
    /// Starts `threads` threads, for which up to `queue` connections may wait while all are busy; further
    /// ones are refused. The threads end when this is dropped, for example when its server is closed, after
    /// they have served the queued connections.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for no threads; when one cannot be started.
    pub fn new(threads: usize, queue: usize) -> io::Result<Self> {
        if threads == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the number of threads of a pool must be at least 1",
            ));
        }
        let queue = Arc::new(Queue { state: Mutex::default(), changed: Condition::new(), threads, limit: queue });
        let pool = Self { queue };
        for number in 0..threads {
            let queue = Arc::clone(&pool.queue);
            thread::Builder::new().name(format!("spandrel-pool-{number}")).spawn(move || queue.work())?;
        }
        Ok(pool)
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.queue.state.lock().is_closed = true;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            let job = loop {
                match state.jobs.pop_front() {
                    Some(job) => break job,
                    None if state.is_closed => return,
                    None => self.changed.wait(&mut state),
                }
            };
            state.busy += 1;
            drop(state);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(job)) {
                let panic = crate::dispatch::message(panic);
                tracing::error!(panic, "a handler panicked while it was dropped");
            }
            state = self.state.lock();
            state.busy -= 1;
        }
    }
}

impl<F: Family, H: ServiceHandler<F>> Concurrency<F, H> for ThreadPool {
    fn activate(&mut self, _context: &Context<'_>, service: Service<F, H>) -> io::Result<()> {
        let mut state = self.queue.state.lock();
        let idle = self.queue.threads - state.busy; // though a thread may not have taken its job yet
        if state.jobs.len() >= self.queue.limit.saturating_add(idle) {
            let message =
                format!("{} connections wait for a thread of the pool, the limit of its queue", self.queue.limit);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
        }
        service.set_thread_member();
        state.jobs.push_back(Box::new(move || blocking::serve(service)));
        drop(state);
        self.queue.changed.notify_one();
        Ok(())
    }
}
