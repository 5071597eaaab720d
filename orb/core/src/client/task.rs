//! Executors of an ORB's futures.
//!
//! The futures of asynchronous servants, which end when the request is cancelled, are made in the server
//! (`upcall::deferred`).

use std::{
    cell::Cell,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, Wake, Waker},
};

use spandrel_sync::{Arc, Mutex, held, thread_local};

/// A future that runs to its end without a waiting thread.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send + 'static>>;

/// An executor, which runs futures to their end. Closures that take a [`Task`] are executors.
///
/// The ORB calls it on threads of its own, which belong to no runtime. There `tokio::spawn` panics ("there is
/// no reactor running"), but a handle of the runtime works on each thread: `let runtime =
/// tokio::runtime::Handle::current()`, and `move |task| drop(runtime.spawn(task))`. The program
/// `examples/tokio` does so.
pub trait Spawn: Send + Sync {
    /// Polls `task` until it is ready, on any threads, beginning now or later. Dropping the task ends its
    /// work.
    fn spawn(&self, task: Task);

    /// As [`spawn`](Self::spawn), for the future of a servant, in the thread that would run a synchronous servant. An
    /// executor may poll it here first: a future that need not wait then costs no change of threads.
    fn spawn_servant(&self, task: Task) {
        self.spawn(task);
    }

    /// Whether other tasks wait for the calling thread, which polls one of the tasks. A synchronous call then blocks
    /// them too, and the ORB logs one warning. An executor with a thread for each task answers no.
    fn is_worker(&self) -> bool {
        true
    }
}

impl<F: Fn(Task) + Send + Sync> Spawn for F {
    fn spawn(&self, task: Task) {
        self(task);
    }
}

/// Polls a future once in this thread, and returns it if it waits. The executor that polls it next learns of its wake-ups.
///
/// An executor of asynchronous servants saves a change of threads by it for those that need not wait. With tokio, where
/// `runtime` is a handle:
///
/// ```ignore
/// let builder = Orb::builder().spawner(move |task| {
///     let _context = runtime.enter(); // for timers and sockets
///     if let Some(task) = spandrel::options::poll_once(task) {
///         drop(runtime.spawn(task));
///     }
/// });
/// ```
///
/// A servant that computes for long before it first waits then delays the other requests of its connection, as a
/// synchronous servant does.
pub fn poll_once(mut task: Task) -> Option<Task> {
    match poll_caught(&mut task, &mut Context::from_waker(Waker::noop())) {
        Poll::Pending => Some(task),
        Poll::Ready(()) => None,
    }
}

/// Polls a future. One that panics has ended, with a line in the log.
fn poll_caught(task: &mut Task, cx: &mut Context<'_>) -> Poll<()> {
    held::assert_none("a task");
    catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(cx))).unwrap_or_else(|_| {
        tracing::error!("a task panicked, and was ended");
        Poll::Ready(())
    })
}

/// A pool of threads, or a queue, in which jobs are run.
pub trait Executor: Send + Sync + 'static {
    /// Queues a job; returns false if the threads have ended, or have too many jobs.
    fn execute(&self, job: Box<dyn FnOnce() + Send>) -> bool;

    /// Calls `poll`, a job of the pool or queue, in the calling thread.
    fn run(&self, poll: &mut dyn FnMut()) {
        poll();
    }
}

impl<E: Executor> Executor for Arc<E> {
    fn execute(&self, job: Box<dyn FnOnce() + Send>) -> bool {
        (**self).execute(job)
    }

    fn run(&self, poll: &mut dyn FnMut()) {
        (**self).run(poll);
    }
}

/// Polls a future in these threads, once at the beginning and after each wake-up.
pub fn run_in(threads: impl Executor, task: Task) {
    Wake::wake(PolledTask::new(threads, Some(task), Stage::Waiting));
}

/// Polls a future in this thread, and after that in these threads.
pub fn begin_here<E: Executor>(threads: impl FnOnce() -> E, mut task: Task) {
    let (first, waker) = FIRST_WAKER.with(Cell::take).unwrap_or_else(FirstWaker::new);
    if poll_caught(&mut task, &mut Context::from_waker(&waker)).is_ready() {
        // The references are these two, unless the future has left a clone somewhere.
        if Arc::strong_count(&first) == 2 {
            FIRST_WAKER.with(|of_thread| of_thread.set(Some((first, waker))));
        }
        return;
    }
    first.pass_on(Waker::from(PolledTask::new(threads(), Some(task), Stage::Waiting)));
}

thread_local! {
    /// The waker of the first polls in this thread, while no future that waits has it.
    static FIRST_WAKER: Cell<Option<(Arc<FirstWaker>, Waker)>> = const { Cell::new(None) };
}

/// The waker of a future's first poll. Futures that need not wait share it.
struct FirstWaker(Mutex<FirstWake>);

enum FirstWake {
    None,
    Woken,
    /// The future waits, and is polled by this waker.
    PassedOn(Waker),
}

impl FirstWaker {
    fn new() -> (Arc<Self>, Waker) {
        let first = Arc::new(Self(Mutex::new(FirstWake::None)));
        (Arc::clone(&first), Waker::from(first))
    }

    /// Passes the wake-ups on from now on, and one that has come before.
    fn pass_on(&self, waker: Waker) {
        let before = std::mem::replace(&mut *self.0.lock(), FirstWake::PassedOn(waker.clone()));
        if matches!(before, FirstWake::Woken) {
            waker.wake();
        }
    }
}

impl Wake for FirstWaker {
    fn wake(self: Arc<Self>) {
        let mut state = self.0.lock();
        if let FirstWake::PassedOn(waker) = &*state {
            let waker = waker.clone();
            drop(state);
            waker.wake();
        } else {
            *state = FirstWake::Woken;
        }
    }
}

/// A future that is polled as a job.
struct PolledTask<E> {
    threads: E,
    state: Mutex<State>,
}

struct State {
    /// `None` while it is polled, and once it has ended.
    task: Option<Task>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// Waiting for a wake-up.
    Waiting,
    /// A job will poll it.
    Scheduled,
    /// A job polls it.
    Polling,
    /// A job polls it, and it was woken meanwhile.
    WokenWhilePolled,
}

impl<E: Executor> Wake for PolledTask<E> {
    fn wake(self: Arc<Self>) {
        let mut state = self.state.lock();
        match state.stage {
            Stage::Waiting => state.stage = Stage::Scheduled,
            Stage::Polling => {
                state.stage = Stage::WokenWhilePolled;
                return;
            }
            Stage::Scheduled | Stage::WokenWhilePolled => return,
        }
        drop(state);
        // If the threads do not accept the job, it is run here.
        if !self.enqueue() {
            self.poll();
        }
    }
}

impl<E: Executor> PolledTask<E> {
    fn new(threads: E, task: Option<Task>, stage: Stage) -> Arc<Self> {
        Arc::new(Self { threads, state: Mutex::new(State { task, stage }) })
    }

    /// Queues a job that polls it; returns false if the threads do not accept it.
    fn enqueue(self: &Arc<Self>) -> bool {
        let running = Arc::clone(self);
        self.threads.execute(Box::new(move || running.threads.run(&mut || running.poll())))
    }

    fn poll(self: &Arc<Self>) {
        if let Some(task) = self.take() {
            self.poll_taken(task);
        }
    }

    /// Takes the future, to poll it. `None` if it has ended.
    fn take(&self) -> Option<Task> {
        let mut state = self.state.lock();
        state.stage = Stage::Polling;
        state.task.take()
    }

    fn poll_taken(self: &Arc<Self>, mut task: Task) {
        let waker = Waker::from(Arc::clone(self));
        loop {
            if poll_caught(&mut task, &mut Context::from_waker(&waker)).is_ready() {
                return;
            }
            let mut state = self.state.lock();
            state.task = Some(task);
            if state.stage == Stage::Polling {
                state.stage = Stage::Waiting;
                return;
            }
            state.stage = Stage::Scheduled;
            drop(state);
            // After the jobs that are queued: the future may have yielded to wait for one of them.
            if self.enqueue() {
                return;
            }
            let Some(resumed) = self.take() else { return };
            task = resumed;
        }
    }
}

impl<E> fmt::Debug for PolledTask<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolledTask").finish_non_exhaustive()
    }
}
