//! Group commit: changes of many threads are applied together, and made durable by one synchronization.
//!
//! The first thread that finds no leader becomes the leader. It applies its own change and all that wait, and wakes
//! their threads. A single thread is its own leader, so its changes pass no other thread.

use std::{mem, vec};

use spandrel::net::sync::{Arc, Condition, Mutex};

/// The most changes that are applied together.
const MAX_BATCH: usize = 256;

/// Waiting changes `C`, each of which ends in an outcome `O`.
#[derive(Debug)]
pub(crate) struct GroupCommit<C, O> {
    queue: Mutex<Queue<C, O>>,
}

#[derive(Debug)]
struct Queue<C, O> {
    waiting: Vec<(C, Arc<Ticket<O>>)>,
    /// Whether a thread applies changes now.
    has_leader: bool,
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
        Self { queue: Mutex::new(Queue { waiting: Vec::new(), has_leader: false }) }
    }
}

impl<C, O> GroupCommit<C, O> {
    /// Applies a change, together with those of other threads. `apply` returns an outcome for each change that it is
    /// given, in their order, once they are durable; it is called by one thread at a time.
    pub(crate) fn submit(&self, change: C, apply: impl FnOnce(Vec<C>) -> Vec<O>) -> O {
        let ticket = Arc::new(Ticket { state: Mutex::new(State::Waiting), changed: Condition::new() });
        let leads = {
            let mut queue = self.queue.lock();
            queue.waiting.push((change, Arc::clone(&ticket)));
            !mem::replace(&mut queue.has_leader, true)
        };
        if !leads && let Some(outcome) = ticket.wait() {
            return outcome;
        }
        self.lead(apply);
        ticket.wait().expect("a leader's own change is in its batch")
    }

    /// Applies the waiting changes, the first of which is the caller's, and appoints the next leader.
    fn lead(&self, apply: impl FnOnce(Vec<C>) -> Vec<O>) {
        let (changes, tickets): (Vec<C>, Vec<_>) = {
            let mut queue = self.queue.lock();
            let count = queue.waiting.len().min(MAX_BATCH);
            queue.waiting.drain(..count).unzip()
        };
        let appoint = Appoint(self);
        let mut batch = Batch(tickets.into_iter());
        for outcome in apply(changes) {
            if let Some(ticket) = batch.0.next() {
                ticket.set(State::Done(outcome));
            }
        }
        drop((batch, appoint));
    }
}

/// The tickets of changes that have no outcome yet. Their threads end when this is dropped.
struct Batch<O>(vec::IntoIter<Arc<Ticket<O>>>);

impl<O> Drop for Batch<O> {
    fn drop(&mut self) {
        self.0.by_ref().for_each(|ticket| ticket.set(State::Abandoned));
    }
}

/// Appoints the next leader when dropped, also after a panic.
struct Appoint<'g, C, O>(&'g GroupCommit<C, O>);

impl<C, O> Drop for Appoint<'_, C, O> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        match queue.waiting.first() {
            Some((_, ticket)) => ticket.set(State::Leads),
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
