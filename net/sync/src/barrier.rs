//! Barriers: nobody goes on before all are there.

use std::fmt;
use std::time::Duration;

use crate::deadline::Deadline;
use crate::{Condition, Mutex};

/// A barrier for a fixed number of threads (POSIX `pthread_barrier_wait`), to be used any number of times.
///
/// Each round ends when that number of threads has arrived; one of them is its leader.
pub struct Barrier {
    parties: usize,
    state: Mutex<State>,
    passed: Condition,
}

struct State {
    arrived: usize,
    round: u64,
}

/// How a thread passed a [`Barrier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// As the last to arrive, which opened it: one thread in each round (`PTHREAD_BARRIER_SERIAL_THREAD`).
    Leader,
    /// After another opened it.
    Follower,
}

impl Passage {
    /// Whether this thread opened the barrier.
    #[must_use]
    pub fn is_leader(self) -> bool {
        self == Self::Leader
    }
}

impl Barrier {
    /// A barrier that opens for so many threads at once; none is taken for one. Usable in a `static`.
    #[must_use]
    pub const fn new(parties: usize) -> Self {
        let parties = if parties == 0 { 1 } else { parties };
        Self { parties, state: Mutex::new(State { arrived: 0, round: 0 }), passed: Condition::new() }
    }

    /// Waits until all have arrived.
    pub fn wait(&self) -> Passage {
        let mut state = self.state.lock();
        let Some(round) = self.arrive(&mut state) else { return Passage::Leader };
        self.passed.wait_while(&mut state, |state| state.round == round);
        Passage::Follower
    }

    /// Waits until all have arrived, unless that takes longer than `timeout`: then this thread counts as not arrived and
    /// may come again.
    pub fn wait_for(&self, timeout: Duration) -> Option<Passage> {
        let deadline = Deadline::after(timeout);
        let mut state = self.state.lock();
        let Some(round) = self.arrive(&mut state) else { return Some(Passage::Leader) };
        while state.round == round {
            if self.passed.wait_for(&mut state, deadline.remaining()).timed_out() && state.round == round {
                state.arrived -= 1;
                return None;
            }
        }
        Some(Passage::Follower)
    }

    /// How many threads it takes.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.parties
    }

    /// How many threads wait at the moment, which may be over when this returns.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state.lock().arrived
    }

    /// The round to wait for the end of; none if this arrival ended it.
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
