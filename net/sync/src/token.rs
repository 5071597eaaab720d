//! Tokens: mutual exclusion, first come, first served.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use crate::thread::{ThreadId, current};
use crate::time::Deadline;
use crate::{Arc, Condition, Mutex, MutexGuard};

/// A lock that passes strictly in the order in which threads requested it; `ACE_Token`.
///
/// A mutex goes to the first thread that tries it when it is free, so under load a thread may wait long while
/// others overtake it. A token is handed over: its release makes the thread that has waited longest the
/// holder, and later threads queue even if that thread has not woken yet. The holder may acquire it again,
/// and may [`renew`](TokenGuard::renew) it to let the queued threads go first. Each hand-over costs a thread
/// switch; a [`Mutex`] is faster where order does not matter.
///
/// ```
/// use spandrel_sync::Token;
///
/// let token = Token::new();
/// let held = token.acquire();
/// let again = token.acquire(); // the holder may acquire it again
/// drop(again);
/// assert!(!held.renew()); // the queue is empty
/// ```
#[derive(Default)]
pub struct Token {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    holder: Option<Holder>,
    /// Empty while there is no holder.
    queue: VecDeque<Arc<Waiter>>,
}

struct Holder {
    thread: ThreadId,
    /// The number of its guards.
    times: usize,
}

struct Waiter {
    thread: ThreadId,
    /// The number of guards it will have: more than one after a renewal of a token acquired several times.
    times: usize,
    turn: Condition,
}

/// A token that its thread holds. Dropping the last guard of the thread releases it.
#[must_use = "the token is given up when the guard is dropped"]
pub struct TokenGuard<'a> {
    token: &'a Token,
    /// Not `Send`: the holder is a thread.
    stays: PhantomData<std::sync::MutexGuard<'static, ()>>,
}

impl Token {
    /// A free token; usable in a `static`.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: Mutex::new(State { holder: None, queue: VecDeque::new() }) }
    }

    /// Queues for the token and takes it; takes it once more if the caller holds it.
    pub fn acquire(&self) -> TokenGuard<'_> {
        let mut state = self.state.lock();
        if !state.enter() {
            let waiter = state.enqueue(1);
            state = self.wait(state, &waiter);
        }
        drop(state);
        self.guard()
    }

    /// Takes the token if no other thread holds it.
    pub fn try_acquire(&self) -> Option<TokenGuard<'_>> {
        self.state.lock().enter().then(|| self.guard())
    }

    /// Like [`acquire`](Self::acquire), for at most `timeout`; then the caller leaves the queue.
    pub fn acquire_for(&self, timeout: Duration) -> Option<TokenGuard<'_>> {
        let deadline = Deadline::after(timeout);
        let mut state = self.state.lock();
        if !state.enter() {
            let waiter = state.enqueue(1);
            while !state.is_held_by(waiter.thread) {
                let result = waiter.turn.wait_until(&mut state, deadline);
                if result.timed_out() && !state.is_held_by(waiter.thread) {
                    state.queue.retain(|queued| !Arc::ptr_eq(queued, &waiter));
                    return None;
                }
            }
        }
        drop(state);
        Some(self.guard())
    }

    /// The number of threads that queue at the moment.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state.lock().queue.len()
    }

    /// Whether the calling thread holds the token.
    #[must_use]
    pub fn is_mine(&self) -> bool {
        self.state.lock().is_held_by(current().id())
    }

    fn guard(&self) -> TokenGuard<'_> {
        TokenGuard { token: self, stays: PhantomData }
    }

    /// Waits until the waiter's thread has been made the holder.
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>, waiter: &Waiter) -> MutexGuard<'a, State> {
        waiter.turn.wait_while(&mut state, |state| !state.is_held_by(waiter.thread));
        state
    }
}

impl State {
    fn is_held_by(&self, thread: ThreadId) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.thread == thread)
    }

    /// Makes the caller the holder, once more if it is already, if that needs no waiting.
    fn enter(&mut self) -> bool {
        let me = current().id();
        match &mut self.holder {
            None => self.holder = Some(Holder { thread: me, times: 1 }),
            Some(holder) if holder.thread == me => holder.times += 1,
            Some(_) => return false,
        }
        true
    }

    fn enqueue(&mut self, times: usize) -> Arc<Waiter> {
        let waiter = Arc::new(Waiter { thread: current().id(), times, turn: Condition::new() });
        self.queue.push_back(Arc::clone(&waiter));
        waiter
    }

    /// Makes the longest waiting thread the holder.
    fn hand_over(&mut self) {
        self.holder = self.queue.pop_front().map(|next| {
            next.turn.notify_one();
            Holder { thread: next.thread, times: next.times }
        });
    }
}

impl TokenGuard<'_> {
    /// Lets every thread that queues now have the token first, then takes it back with the same number of
    /// guards.
    ///
    /// Returns false, at once, if the queue is empty.
    pub fn renew(&self) -> bool {
        let mut state = self.token.state.lock();
        if state.queue.is_empty() {
            return false;
        }
        let times = state.holder.as_ref().map_or(1, |holder| holder.times);
        let waiter = state.enqueue(times);
        state.hand_over();
        drop(self.token.wait(state, &waiter));
        true
    }
}

impl Drop for TokenGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.token.state.lock();
        match &mut state.holder {
            Some(holder) if holder.times > 1 => holder.times -= 1,
            _ => state.hand_over(),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Token").field("held", &state.holder.is_some()).field("waiting", &state.queue.len()).finish()
    }
}

impl fmt::Debug for TokenGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenGuard")
    }
}
