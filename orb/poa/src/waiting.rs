//! A one-shot event for threads and for requests.
//!
//! A request that cannot run yet is deferred, and a future waits in its place, so that it occupies no thread:
//! [`Ticket`]. Threads of the application block. An event is set once and stays set.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, Waker},
};

use spandrel_sync::{Arc, Condition, Mutex, time::Instant};

/// A one-shot event, visible to all present and future waiters.
#[derive(Debug, Default)]
pub(crate) struct Event {
    state: Mutex<State>,
    given: Condition,
}

#[derive(Debug, Default)]
struct State {
    is_set: bool,
    /// The wakers of the tickets that were polled already.
    wakers: HashMap<u64, Waker>,
    tickets: usize,
    /// The time at which the first of the present tickets was drawn.
    since: Option<Instant>,
    next: u64,
}

/// A place among the waiters of an event.
#[derive(Debug)]
pub(crate) struct Ticket {
    event: Arc<Event>,
    number: u64,
}

impl Event {
    /// A ticket, unless `limit` tickets exist already.
    pub(crate) fn ticket(self: &Arc<Self>, limit: usize) -> Option<Ticket> {
        let mut state = self.state.lock();
        if state.tickets >= limit {
            return None;
        }
        if state.tickets == 0 {
            state.since = Some(Instant::now());
        }
        state.tickets += 1;
        state.next += 1;
        Some(Ticket { event: Arc::clone(self), number: state.next })
    }

    /// The number of tickets drawn and not yet dropped.
    pub(crate) fn tickets(&self) -> usize {
        self.state.lock().tickets
    }

    /// The time since when tickets exist without a pause; `None` if there are none, or if the event is set.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        state.since.filter(|_| state.tickets > 0 && !state.is_set)
    }

    /// Blocks the thread until the event is set.
    pub(crate) fn wait(&self) {
        let mut state = self.state.lock();
        while !state.is_set {
            self.given.wait(&mut state);
        }
    }

    /// Sets the event and wakes all waiters.
    pub(crate) fn set(&self) {
        let mut state = self.state.lock();
        state.is_set = true;
        let mut wakers: Vec<(u64, Waker)> = state.wakers.drain().collect();
        drop(state);
        self.given.notify_all();
        // In the order of arrival, and outside the lock, since wakers are foreign code.
        wakers.sort_unstable_by_key(|(number, _)| *number);
        for (_, waker) in wakers {
            // A waker that panics must not affect the other waiters.
            if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
                tracing::error!("a waker panicked");
            }
        }
    }
}

#[cfg(all(test, shuttle))]
impl Ticket {
    /// Blocks the thread until the event is set.
    pub(crate) fn wait(self) {
        self.event.wait();
    }
}

impl Future for Ticket {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Cloned, and the old one dropped, outside the lock.
        let waker = cx.waker().clone();
        let mut state = self.event.state.lock();
        if state.is_set {
            return Poll::Ready(());
        }
        let old = state.wakers.insert(self.number, waker);
        drop(state);
        drop(old);
        Poll::Pending
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.event.state.lock();
        state.tickets -= 1;
        let waker = state.wakers.remove(&self.number);
        drop(state);
        drop(waker);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_waker_that_panics_does_not_affect_the_others() {
        struct Noted(std::sync::atomic::AtomicBool, bool);
        impl std::task::Wake for Noted {
            fn wake(self: std::sync::Arc<Self>) {
                assert!(!self.1, "as wanted");
                self.0.store(true, std::sync::atomic::Ordering::SeqCst);
            }
        }
        let event = Arc::<Event>::default();
        let noted = [true, false].map(|panics| std::sync::Arc::new(Noted(false.into(), panics)));
        let mut tickets = [(); 2].map(|()| event.ticket(2).unwrap());
        for (ticket, noted) in tickets.iter_mut().zip(&noted) {
            let waker = Waker::from(std::sync::Arc::clone(noted));
            assert!(Pin::new(ticket).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        event.set();
        assert!(noted[1].0.load(std::sync::atomic::Ordering::SeqCst));
    }

    #[test]
    fn tickets_are_bounded_and_released_on_drop() {
        let event = Arc::<Event>::default();
        let first = event.ticket(2).unwrap();
        let mut second = event.ticket(2).unwrap();
        assert!(event.ticket(2).is_none());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut second).poll(&mut cx).is_pending());
        drop(first);
        let mut third = event.ticket(2).unwrap();
        event.set();
        assert!(Pin::new(&mut second).poll(&mut cx).is_ready());
        assert!(Pin::new(&mut third).poll(&mut cx).is_ready());
        event.wait();
    }
}
