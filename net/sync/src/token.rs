//! Tokens: mutual exclusion in the order of asking.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use crate::deadline::Deadline;
use crate::thread::{ThreadId, current};
use crate::{Arc, Condition, Mutex, MutexGuard};

/// A right that one thread at a time has, and that passes strictly in the order in which threads asked; `ACE_Token`.
///
/// A mutex lets whoever comes first take it, so under load a thread may wait long while others come and go. A token
/// is handed over: whoever gives it up makes the thread that has waited longest its holder, and late-comers queue even
/// when that thread has not woken yet. Its holder may take it again, and may [`renew`](TokenGuard::renew) it to let
/// the others have a turn. That costs a switch of threads for every hand-over; a [`Mutex`] is faster where order does
/// not matter.
///
/// ```
/// use spandrel_sync::Token;
///
/// let token = Token::new();
/// let held = token.acquire();
/// let again = token.acquire(); // its holder may
/// drop(again);
/// assert!(!held.renew()); // nobody else wants it
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
    /// How many guards it has.
    times: usize,
}

struct Waiter {
    thread: ThreadId,
    /// How many guards it will have: more than one after a renewal of a token taken several times.
    times: usize,
    turn: Condition,
}

/// The token, held; given up when its holder's last one is dropped. It stays in its thread.
#[must_use = "the token is given up when the guard is dropped"]
pub struct TokenGuard<'a> {
    token: &'a Token,
    /// Not `Send`: the holder is a thread.
    stays: PhantomData<std::sync::MutexGuard<'static, ()>>,
}

impl Token {
    /// A token that no one holds; usable in a `static`.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: Mutex::new(State { holder: None, queue: VecDeque::new() }) }
    }

    /// Waits for its turn and takes the token, or takes it once more if the caller holds it.
    pub fn acquire(&self) -> TokenGuard<'_> {
        let mut state = self.state.lock();
        if !state.enter() {
            let waiter = state.enqueue(1);
            state = self.wait(state, &waiter);
        }
        drop(state);
        self.guard()
    }

    /// Takes the token if no one else holds it.
    pub fn try_acquire(&self) -> Option<TokenGuard<'_>> {
        self.state.lock().enter().then(|| self.guard())
    }

    /// Like [`acquire`](Self::acquire), unless that takes longer than `timeout`: then the caller leaves the queue.
    pub fn acquire_for(&self, timeout: Duration) -> Option<TokenGuard<'_>> {
        let deadline = Deadline::after(timeout);
        let mut state = self.state.lock();
        if !state.enter() {
            let waiter = state.enqueue(1);
            while !state.is_held_by(waiter.thread) {
                let result = waiter.turn.wait_for(&mut state, deadline.remaining());
                if result.timed_out() && !state.is_held_by(waiter.thread) {
                    state.queue.retain(|queued| !Arc::ptr_eq(queued, &waiter));
                    return None;
                }
            }
        }
        drop(state);
        Some(self.guard())
    }

    /// How many threads queue at the moment, which may be over when this returns.
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

    /// Makes the caller the holder, or the holder once more, if that needs no waiting.
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
    /// Lets every thread that queues now have the token, then takes it back, as often as the caller had it.
    ///
    /// At once, and false, if none queues.
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
