//! Group commit: many changes are applied together, and made durable by one synchronization.
//!
//! The first thread that finds no leader becomes the leader. It applies its own change and all that wait, and reports
//! their outcomes. A single thread is its own leader, so its changes pass no other thread.
//!
//! A thread either waits for the outcome of its change ([`submit`](GroupCommit::submit)), or leaves a function that is
//! called with it ([`submit_then`](GroupCommit::submit_then)). The next leader is the thread of the first waiting
//! change; the committer ([`run_committer`](GroupCommit::run_committer)) leads in place of a thread that does not wait, and of
//! all threads that must not ([`submit_to_committer`](GroupCommit::submit_to_committer)).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{fmt, mem, vec};

use spandrel::net::sync::{Arc, Condition, Mutex};

/// The most changes that are applied together.
const MAX_BATCH: usize = 256;

/// A function that is called with the outcome of a change.
pub type Done<O> = Box<dyn FnOnce(O) + Send>;

/// Waiting changes `C`, each of which ends in an outcome `O`.
pub struct GroupCommit<C, O> {
    queue: Mutex<Queue<C, O>>,
    /// The committer was appointed, or is to end.
    committer: Condition,
}

struct Queue<C, O> {
    waiting: Vec<(C, Waiter<O>)>,
    /// Whether a thread applies changes now, or was appointed to.
    has_leader: bool,
    /// Whether the committer is the next leader.
    appoints_committer: bool,
    /// Whether the committer is to end when no change waits for it.
    is_closed: bool,
}

/// The receiver of an outcome.
enum Waiter<O> {
    Thread(Arc<Ticket<O>>),
    Function(Done<O>),
}

/// The place at which the thread of a change waits.
#[derive(Debug)]
struct Ticket<O> {
    state: Mutex<State<O>>,
    changed: Condition,
}

#[derive(Debug)]
enum State<O> {
    Waiting,
    /// The thread is to apply the waiting changes, its own among them.
    Leads,
    Done(O),
    /// The leader's thread panicked.
    Abandoned,
}

impl<C, O> Default for GroupCommit<C, O> {
    fn default() -> Self {
        let queue = Queue { waiting: Vec::new(), has_leader: false, appoints_committer: false, is_closed: false };
        Self { queue: Mutex::new(queue), committer: Condition::new() }
    }
}

impl<C, O> fmt::Debug for GroupCommit<C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit").finish_non_exhaustive()
    }
}

impl<C, O> GroupCommit<C, O> {
    /// Applies a change, together with those of other threads. `apply` returns an outcome for each change that it is
    /// given, in their order, once they are durable; it is called by one thread at a time.
    ///
    /// # Panics
    /// If the thread that applied the change panicked; whether it was made is unknown.
    pub fn submit(&self, change: C, apply: impl FnOnce(Vec<C>) -> Vec<O>) -> O {
        let ticket = Arc::new(Ticket { state: Mutex::new(State::Waiting), changed: Condition::new() });
        let leads = self.enter(change, Waiter::Thread(Arc::clone(&ticket)));
        if !leads && let Some(outcome) = ticket.wait() {
            return outcome;
        }
        self.lead(apply);
        ticket.wait().expect("a leader's own change is in its batch")
    }

    /// As [`submit`](Self::submit), and returns at once if another thread leads. `report` is called with the outcome by
    /// the leader; it is dropped without a call if the leader's thread panics.
    pub fn submit_then(&self, change: C, report: Done<O>, apply: impl FnOnce(Vec<C>) -> Vec<O>) {
        if self.enter(change, Waiter::Function(report)) {
            self.lead(apply);
        }
    }

    /// As [`submit_then`](Self::submit_then), and never applies changes in the caller's thread: without a leader, the
    /// committer leads. So a thread that serves clients goes on while the disk is written, and all changes that it
    /// submits meanwhile are one batch.
    pub fn submit_to_committer(&self, change: C, report: Done<O>) {
        let mut queue = self.queue.lock();
        queue.waiting.push((change, Waiter::Function(report)));
        if !mem::replace(&mut queue.has_leader, true) {
            queue.appoints_committer = true;
            self.committer.notify_one();
        }
    }

    /// Leads in place of threads that do not wait, until [`close`](Self::close).
    pub fn run_committer(&self, mut apply: impl FnMut(Vec<C>) -> Vec<O>) {
        loop {
            {
                let mut queue = self.queue.lock();
                while !mem::take(&mut queue.appoints_committer) {
                    if queue.is_closed {
                        return;
                    }
                    self.committer.wait(&mut queue);
                }
            }
            // The changes after those of a panic are applied.
            if catch_unwind(AssertUnwindSafe(|| self.lead(&mut apply))).is_err() {
                tracing::error!("the thread that applies changes panicked");
            }
        }
    }

    /// Ends the committer when no change waits for it.
    pub fn close(&self) {
        self.queue.lock().is_closed = true;
        self.committer.notify_all();
    }

    /// Enters a change. Returns whether the caller leads.
    fn enter(&self, change: C, waiter: Waiter<O>) -> bool {
        let mut queue = self.queue.lock();
        queue.waiting.push((change, waiter));
        !mem::replace(&mut queue.has_leader, true)
    }

    /// Applies the waiting changes, and appoints the next leader.
    fn lead(&self, apply: impl FnOnce(Vec<C>) -> Vec<O>) {
        let (changes, waiters): (Vec<C>, Vec<_>) = {
            let mut queue = self.queue.lock();
            let count = queue.waiting.len().min(MAX_BATCH);
            queue.waiting.drain(..count).unzip()
        };
        let appoint = Appoint(self);
        let mut batch = Batch(waiters.into_iter());
        for outcome in apply(changes) {
            if let Some(waiter) = batch.0.next() {
                waiter.report(outcome);
            }
        }
        drop((batch, appoint));
    }
}

impl<O> Waiter<O> {
    /// Reports the outcome of a change. A function that panics affects no other change.
    fn report(self, outcome: O) {
        match self {
            Self::Thread(ticket) => ticket.set(State::Done(outcome)),
            Self::Function(report) => {
                let reported = catch_unwind(AssertUnwindSafe(|| report(outcome)));
                if reported.is_err() {
                    tracing::error!("the outcome of a change could not be reported");
                }
            }
        }
    }
}

/// The receivers of changes that have no outcome yet. Their threads end when this is dropped.
struct Batch<O>(vec::IntoIter<Waiter<O>>);

impl<O> Drop for Batch<O> {
    fn drop(&mut self) {
        self.0.by_ref().for_each(|waiter| match waiter {
            Waiter::Thread(ticket) => ticket.set(State::Abandoned),
            Waiter::Function(report) => drop(report),
        });
    }
}

/// Appoints the next leader when dropped, also after a panic.
struct Appoint<'g, C, O>(&'g GroupCommit<C, O>);

impl<C, O> Drop for Appoint<'_, C, O> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        match queue.waiting.first() {
            Some((_, Waiter::Thread(ticket))) => ticket.set(State::Leads),
            Some((_, Waiter::Function(_))) => {
                queue.appoints_committer = true;
                self.0.committer.notify_one();
            }
            None => queue.has_leader = false,
        }
    }
}

impl<O> Ticket<O> {
    fn set(&self, state: State<O>) {
        *self.state.lock() = state;
        self.changed.notify_one();
    }

    /// Waits for the outcome. `None`: this thread leads.
    ///
    /// # Panics
    /// If the leader's thread has panicked, so that the outcome is unknown.
    fn wait(&self) -> Option<O> {
        let mut state = self.state.lock();
        loop {
            match mem::replace(&mut *state, State::Waiting) {
                State::Done(outcome) => return Some(outcome),
                State::Leads => return None,
                State::Abandoned => panic!("the thread that applied the change panicked"),
                State::Waiting => self.changed.wait(&mut state),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn every_change_is_applied_once_and_has_its_own_outcome() {
        let commit = GroupCommit::<u32, u32>::default();
        let applied = Mutex::new(Vec::<u32>::new());
        thread::scope(|scope| {
            for thread in 0..8_u32 {
                let (commit, applied) = (&commit, &applied);
                scope.spawn(move || {
                    for nth in 0..200 {
                        let change = thread * 1000 + nth;
                        let outcome = commit.submit(change, |batch| {
                            applied.lock().extend(batch.iter().copied());
                            batch.iter().map(|change| change * 2).collect()
                        });
                        assert_eq!(outcome, change * 2);
                    }
                });
            }
        });
        let mut applied = applied.into_inner();
        assert_eq!(applied.len(), 1600);
        applied.sort_unstable();
        applied.dedup();
        assert_eq!(applied.len(), 1600);
        assert!(!commit.queue.lock().has_leader);
    }

    /// Ends the committer when dropped, also after a failure.
    struct Close<'g>(&'g GroupCommit<bool, ()>);

    impl Drop for Close<'_> {
        fn drop(&mut self) {
            self.0.close();
        }
    }

    /// Runs `clients` beside a committer, which ends afterwards.
    fn with_committer(
        commit: &GroupCommit<bool, ()>,
        apply: impl Fn(Vec<bool>) -> Vec<()> + Sync + Copy + Send,
        clients: impl FnOnce(),
    ) {
        thread::scope(|scope| {
            let _close = Close(commit);
            scope.spawn(move || commit.run_committer(apply));
            clients();
        });
    }

    #[test]
    fn changes_whose_threads_do_not_wait_have_their_outcomes_beside_others() {
        let commit = GroupCommit::<bool, ()>::default();
        let apply = |batch: Vec<bool>| batch.iter().map(|_| ()).collect();
        let (ended, outcomes) = mpsc::channel();
        with_committer(&commit, apply, || {
            thread::scope(|scope| {
                for thread in 0..8 {
                    let (commit, ended) = (&commit, ended.clone());
                    scope.spawn(move || {
                        for nth in 0..200 {
                            if thread % 4 == 0 {
                                commit.submit(false, apply);
                                ended.send((thread, nth)).unwrap();
                            } else {
                                let ended = ended.clone();
                                commit.submit_then(
                                    false,
                                    Box::new(move |()| ended.send((thread, nth)).unwrap()),
                                    apply,
                                );
                            }
                        }
                    });
                }
            });
        });
        drop(ended);
        let mut outcomes: Vec<_> = outcomes.into_iter().collect();
        outcomes.sort_unstable();
        assert_eq!(outcomes, (0..8).flat_map(|thread| (0..200).map(move |nth| (thread, nth))).collect::<Vec<_>>());
        assert!(!commit.queue.lock().has_leader);
    }

    #[test]
    fn the_committer_applies_changes_of_threads_that_go_on() {
        let commit = GroupCommit::<bool, ()>::default();
        let apply = |batch: Vec<bool>| {
            assert_eq!(thread::current().name(), Some("committer"));
            batch.iter().map(|_| ()).collect()
        };
        let (ended, outcomes) = mpsc::channel();
        thread::scope(|scope| {
            let _close = Close(&commit);
            let run = || commit.run_committer(apply);
            thread::Builder::new().name("committer".to_owned()).spawn_scoped(scope, run).unwrap();
            for nth in 0..500 {
                let ended = ended.clone();
                commit.submit_to_committer(false, Box::new(move |()| ended.send(nth).unwrap()));
            }
        });
        drop(ended);
        assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), (0..500).collect::<Vec<_>>());
    }

    #[test]
    fn a_function_that_panics_affects_no_other_change() {
        let commit = GroupCommit::<bool, ()>::default();
        let apply = |batch: Vec<bool>| batch.iter().map(|_| ()).collect();
        let (ended, outcomes) = mpsc::channel();
        let report_end = move |()| ended.send(()).unwrap();
        with_committer(&commit, apply, || {
            commit.submit(false, |batch| {
                // Both are applied together, by the committer.
                commit.submit_then(false, Box::new(|()| panic!("a function panics")), apply);
                commit.submit_then(false, Box::new(report_end), apply);
                apply(batch)
            });
        });
        assert_eq!(outcomes.into_iter().count(), 1);
        commit.submit_then(false, Box::new(|()| panic!("a function panics")), apply);
        commit.submit(false, apply);
    }

    #[test]
    fn the_committer_goes_on_after_a_panic() {
        let commit = GroupCommit::<bool, ()>::default();
        let apply = |batch: Vec<bool>| {
            assert!(!batch.contains(&true), "a change panics");
            batch.iter().map(|_| ()).collect()
        };
        let (ended, outcomes) = mpsc::channel();
        with_committer(&commit, apply, || {
            // The committer gets the change that panics, since another thread leads when it is submitted.
            commit.submit(false, |batch| {
                commit.submit_then(true, Box::new(|()| panic!("it has no outcome")), apply);
                apply(batch)
            });
            let report_end = move |()| ended.send(()).unwrap();
            while commit.queue.lock().has_leader {
                thread::yield_now();
            }
            commit.submit_then(false, Box::new(report_end), apply);
        });
        assert_eq!(outcomes.into_iter().count(), 1);
    }

    #[test]
    fn changes_beside_a_panic_end_and_later_ones_are_applied() {
        let commit = GroupCommit::<bool, ()>::default();
        let apply = |batch: Vec<bool>| {
            assert!(!batch.contains(&true), "a change panics");
            batch.iter().map(|_| ()).collect()
        };
        thread::scope(|scope| {
            let commit = &commit;
            let submit = |panics| scope.spawn(move || (0..100).for_each(|_| commit.submit(panics, apply)));
            let calm: Vec<_> = (0..4).map(|_| submit(false)).collect();
            assert!(submit(true).join().is_err());
            calm.into_iter().for_each(|worker| _ = worker.join());
        });
        commit.submit(false, apply);
    }
}
