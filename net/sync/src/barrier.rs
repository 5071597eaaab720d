//! Barriers: no thread goes on before all have arrived.

use std::fmt;
use std::time::Duration;

use crate::time::Deadline;
use crate::{Condition, Mutex};

/// A barrier for a fixed number of threads (POSIX `pthread_barrier_wait`); reusable.
///
/// Each round ends when that number of threads has arrived; one of them is its leader.
///
/// ```
/// use spandrel_sync::{Barrier, BarrierWaitResult, thread}; // spandrel::net::sync
///
/// let barrier = Barrier::new(3);
/// let results: Vec<BarrierWaitResult> = thread::scope(|scope| {
///     let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| barrier.wait())).collect();
///     threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
/// });
/// assert_eq!(results.iter().filter(|result| result.is_leader()).count(), 1);
/// ```
pub struct Barrier {
    parties: usize,
    state: Mutex<State>,
    passed: Condition,
}

struct State {
    arrived: usize,
    round: u64,
}

/// The result of a wait at a [`Barrier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierWaitResult {
    /// The last thread to arrive, which opened the barrier: one in each round
    /// (`PTHREAD_BARRIER_SERIAL_THREAD`).
    Leader,
    /// Any other thread of the same generation.
    Follower,
}

impl BarrierWaitResult {
    /// Whether this thread opened the barrier.
    #[must_use]
    pub fn is_leader(self) -> bool {
        self == Self::Leader
    }
}

impl Barrier {
    /// A barrier that opens for that many threads at once; zero counts as one. Usable in a `static`.
    #[must_use]
    pub const fn new(parties: usize) -> Self {
        let parties = if parties == 0 { 1 } else { parties };
        Self { parties, state: Mutex::new(State { arrived: 0, round: 0 }), passed: Condition::new() }
    }

    /// Waits until all have arrived.
    pub fn wait(&self) -> BarrierWaitResult {
        let mut state = self.state.lock();
        let Some(round) = self.arrive(&mut state) else { return BarrierWaitResult::Leader };
        self.passed.wait_while(&mut state, |state| state.round == round);
        BarrierWaitResult::Follower
    }

    /// Waits until all have arrived, for at most `timeout`. After a timeout this thread counts as not arrived
    /// and may wait again.
    pub fn wait_for(&self, timeout: Duration) -> Option<BarrierWaitResult> {
        let deadline = Deadline::after(timeout);
        let mut state = self.state.lock();
        let Some(round) = self.arrive(&mut state) else { return Some(BarrierWaitResult::Leader) };
        while state.round == round {
            if self.passed.wait_until(&mut state, deadline).timed_out() && state.round == round {
                state.arrived -= 1;
                return None;
            }
        }
        Some(BarrierWaitResult::Follower)
    }

    /// The number of threads for which it opens.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.parties
    }

    /// The number of threads that wait at the moment.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state.lock().arrived
    }

    /// The round whose end is to be awaited; none if this arrival ended it.
    fn arrive(&self, state: &mut State) -> Option<u64> {
        state.arrived += 1;
        if state.arrived < self.parties {
            return Some(state.round);
        }
        state.arrived = 0;
        state.round = state.round.wrapping_add(1);
        self.passed.notify_all();
        None
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("parties", &self.parties).field("waiting", &self.waiting()).finish()
    }
}
