//! The wait for the ORB's end, and work that is done in one thread of the application's choice.
//!
//! Some libraries must be called in one thread only, in most cases the first. Work for them is queued as
//! jobs. The jobs are run by the thread that waits in [`Orb::run`] or calls [`Orb::perform_work`] (CORBA 3.3
//! Part 1, 8.2.3): the first thread that calls either is the ORB's main thread from then on. Adapters decide
//! which requests become jobs.

use std::{
    collections::{BTreeMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Poll, Waker},
};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::MutexGuard;
use spandrel_sync::time::Deadline;
use spandrel_sync::{
    Condition, Mutex,
    thread::{self, ThreadId},
};

use crate::servant_side::upcall_scope::{MAX_NESTING, UpcallScope, upcalls};

/// A job for the main thread.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// The most jobs that may wait for the main thread.
const MAX_JOBS: usize = 1024;

/// The state that threads in `run` and `shutdown` wait for.
#[derive(Default)]
pub(crate) struct MainThread {
    state: Mutex<State>,
    changed: Condition,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// The thread that closes the ORB.
    closer: Option<ThreadId>,
    jobs: VecDeque<Job>,
    thread: Option<ThreadId>,
    /// The tasks that wait until the ORB is closed, by number.
    closed_wakers: BTreeMap<u64, Waker>,
    /// The number of the last task.
    last_waker: u64,
}

impl State {
    /// Whether the caller need not wait any longer, or cannot wait because it closes the ORB itself.
    fn is_over(&self) -> bool {
        self.closed || self.closer == Some(thread::current().id())
    }
}

impl MainThread {
    /// Waits for this time, or until the ORB is closed.
    pub(crate) fn wait_for(&self, time: std::time::Duration) {
        let deadline = Deadline::after(time);
        let mut state = self.state.lock();
        while !state.closed && !deadline.is_over() {
            self.changed.wait_until(&mut state, deadline);
        }
    }

    /// Waits until the ORB is closed.
    pub(crate) fn await_closed(&self) {
        let mut state = self.state.lock();
        while !state.is_over() {
            self.changed.wait(&mut state);
        }
    }

    /// Whether the ORB is closed; if not, the task is woken then. `number` identifies the task among those that
    /// wait: `None` at its first poll.
    pub(crate) fn poll_closed(&self, number: &mut Option<u64>, waker: &Waker) -> Poll<()> {
        let mut state = self.state.lock();
        if state.closed {
            return Poll::Ready(());
        }
        let number = *number.get_or_insert_with(|| {
            state.last_waker += 1;
            state.last_waker
        });
        let replaced = state.closed_wakers.insert(number, waker.clone());
        drop(state);
        drop(replaced);
        Poll::Pending
    }

    /// Forgets a task that no longer waits.
    pub(crate) fn forget_waker(&self, number: u64) {
        let waker = self.state.lock().closed_wakers.remove(&number);
        drop(waker);
    }

    /// Records that this thread closes the ORB. Without a main thread the jobs are dropped: none will come to
    /// run them.
    pub(crate) fn begin_close(&self) {
        let mut state = self.state.lock();
        state.closer = Some(thread::current().id());
        let _unrun = if state.thread.is_none() { std::mem::take(&mut state.jobs) } else { VecDeque::new() };
        drop(state);
    }

    /// Whether this thread closes the ORB: code that it calls cannot wait for that.
    pub(crate) fn is_closing_here(&self) -> bool {
        self.state.lock().closer == Some(thread::current().id())
    }

    /// Wakes all waiting threads, and drops the jobs that were not run: the ORB is closed.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let _unrun = std::mem::take(&mut state.jobs);
        let wakers = std::mem::take(&mut state.closed_wakers);
        drop(state);
        self.changed.notify_all();
        wakers.into_values().for_each(Waker::wake);
    }
}

impl MainThread {
    /// Runs jobs until the ORB is closed; a thread that is not the main thread only waits.
    pub(crate) fn run(&self) {
        let (mut state, is_main) = self.claim();
        while !state.is_over() {
            match if is_main { state.jobs.pop_front() } else { None } {
                Some(job) => {
                    drop(state);
                    perform(job);
                    state = self.state.lock();
                }
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Runs the next job, if there is one and this is the main thread; returns false once the ORB is closed.
    pub(crate) fn perform_work(&self) -> bool {
        let (mut state, is_main) = self.claim();
        // A job that calls this runs others inside itself; they must not exhaust its stack.
        let job = if is_main && upcalls() < MAX_NESTING { state.jobs.pop_front() } else { None };
        let is_open = !state.closed;
        drop(state);
        if let Some(job) = job {
            perform(job);
        }
        is_open
    }

    /// Whether there is a job for the main thread; `None` once the ORB is closed.
    pub(crate) fn work_pending(&self) -> Option<bool> {
        let state = self.state.lock();
        (!state.closed).then(|| !state.jobs.is_empty())
    }

    /// Queues a job for the main thread.
    pub(crate) fn enqueue(&self, job: Job) -> Result<(), SystemException> {
        let mut state = self.state.lock();
        let refused = if state.closed || (state.closer.is_some() && state.thread.is_none()) {
            SystemException::bad_inv_order(minor::ORB_HAS_SHUTDOWN, CompletionStatus::No)
        } else if state.jobs.len() >= MAX_JOBS {
            SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No)
                .with_detail(|| format!("{MAX_JOBS} requests wait for the main thread, which is the limit (Orb::run or perform_work runs them)"))
        } else {
            state.jobs.push_back(job);
            drop(state);
            self.changed.notify_all();
            return Ok(());
        };
        // Before the job is dropped, which runs code of the application.
        drop(state);
        Err(refused)
    }

    /// Returns whether the caller is the main thread; the first caller becomes it.
    fn claim(&self) -> (MutexGuard<'_, State>, bool) {
        let me = thread::current().id();
        let mut state = self.state.lock();
        let is_main = *state.thread.get_or_insert(me) == me;
        (state, is_main)
    }

    /// The number of waiting jobs.
    pub(crate) fn jobs(&self) -> usize {
        self.state.lock().jobs.len()
    }

    /// Whether the caller is the main thread already.
    pub(crate) fn is_current(&self) -> bool {
        self.state.lock().thread == Some(thread::current().id())
    }
}

/// Runs a job as an upcall: it may make calls while the ORB closes, and cannot wait for the end.
fn perform(job: Job) {
    let _scope = UpcallScope::enter();
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("a job of the main thread panicked, and was ended");
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use spandrel_sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use crate::{Orb, SystemExceptionKind};

    #[test]
    fn jobs_run_in_order_in_the_main_thread_and_panics_end_there() {
        let orb = Orb::builder().build().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        assert!(!orb.work_pending().unwrap());
        for turn in 0..3 {
            let sender = sender.clone();
            let job = move || {
                sender.send((turn, thread::current().id())).unwrap();
                assert_ne!(turn, 1, "the panic that is tested");
            };
            orb.run_in_main(Box::new(job)).unwrap();
        }
        for turn in 0..3 {
            assert!(orb.work_pending().unwrap());
            orb.perform_work().unwrap();
            assert_eq!(receiver.try_recv(), Ok((turn, thread::current().id())));
        }
        assert!(!orb.work_pending().unwrap());
        orb.perform_work().unwrap();
        orb.shutdown().unwrap();
        for refused in [orb.work_pending().unwrap_err(), orb.perform_work().unwrap_err()] {
            assert_eq!((refused.kind(), refused.minor()), (SystemExceptionKind::BadInvOrder, minor::ORB_HAS_SHUTDOWN));
        }
    }

    #[test]
    fn only_the_first_thread_that_runs_the_orb_runs_jobs() {
        let orb = Orb::builder().build().unwrap();
        orb.perform_work().unwrap();
        let another = orb.clone();
        let another = thread::spawn(move || another.run());
        let (sender, receiver) = std::sync::mpsc::channel();
        let stopping = orb.clone();
        let job = move || {
            let refused = stopping.shutdown().unwrap_err();
            stopping.begin_shutdown().unwrap();
            sender.send((thread::current().id(), refused.minor())).unwrap();
        };
        orb.run_in_main(Box::new(job)).unwrap();
        orb.run();
        assert_eq!(receiver.try_recv(), Ok((thread::current().id(), minor::OPERATION_WOULD_DEADLOCK)));
        another.join().unwrap();
    }

    #[test]
    fn jobs_beyond_the_limit_are_refused_and_the_rest_dropped_at_shutdown() {
        let orb = Orb::builder().build().unwrap();
        let live_jobs = Arc::new(AtomicUsize::new(0));
        struct Counted(Arc<AtomicUsize>);
        impl Drop for Counted {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let job = || {
            live_jobs.fetch_add(1, Ordering::SeqCst);
            let counted = Counted(Arc::clone(&live_jobs));
            Box::new(move || drop(counted))
        };
        for _ in 0..MAX_JOBS {
            orb.run_in_main(job()).unwrap();
        }
        let refused = orb.run_in_main(job()).unwrap_err();
        assert_eq!((refused.kind(), refused.completed()), (SystemExceptionKind::Transient, CompletionStatus::No));
        assert_eq!(live_jobs.load(Ordering::SeqCst), MAX_JOBS);
        orb.shutdown().unwrap();
        assert_eq!(live_jobs.load(Ordering::SeqCst), 0);
        assert_eq!(orb.run_in_main(job()).unwrap_err().kind(), SystemExceptionKind::BadInvOrder);
        assert_eq!(live_jobs.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn waiting_for_shutdown_in_the_main_thread_runs_remaining_jobs() {
        let orb = Orb::builder().build().unwrap();
        orb.perform_work().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        orb.run_in_main(Box::new(move || sender.send(()).unwrap())).unwrap();
        orb.shutdown().unwrap();
        // Run or dropped: in both cases no job is left.
        assert_ne!(receiver.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty));
    }
}
