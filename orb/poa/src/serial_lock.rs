//! The reentrant lock of SINGLE_THREAD_MODEL (CORBA 3.3 Part 1, 15.2.8 and 15.3.8.1).
//!
//! Its holder may acquire it again, from inside its upcall. Requests on other threads are deferred in order
//! of arrival. A released lock is reserved for the first of them before any other thread can acquire it, so
//! that none starves.

use std::{
    collections::VecDeque,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use spandrel_orb::Orb;
use spandrel_server::{LongWaitWatch, WaitingRequests};
use spandrel_sync::{
    Arc, Mutex, Weak,
    thread::{self, ThreadId},
    time::Instant,
};

use crate::waiting::{Event, Ticket};

/// Maximum number of requests that wait for one adapter.
const MAX_WAITING: usize = 1024;

/// The right to call the servants and servant managers of an adapter.
#[derive(Debug, Default)]
pub(crate) struct SerialLock {
    state: Mutex<State>,
    long_wait: LongWaitWatch,
}

#[derive(Debug, Default)]
struct State {
    holder: Holder,
    queue: VecDeque<Arc<Event>>,
}

#[derive(Debug, Default)]
enum Holder {
    #[default]
    Free,
    /// This thread, and its depth of upcalls.
    Thread(ThreadId, u32),
    /// Reserved for the holder of this event.
    Reserved(Arc<Event>),
}

/// Guard of the acquired lock. It stays in its thread.
#[derive(Debug)]
pub(crate) struct SerialGuard {
    serial_lock: Arc<SerialLock>,
    _here: PhantomData<*const ()>,
}

/// A place in the queue, later the reservation of the lock. Handed over on drop.
#[derive(Debug)]
pub(crate) struct QueuedLock {
    serial_lock: Arc<SerialLock>,
    event: Arc<Event>,
    ticket: Ticket,
    is_acquired: bool,
}

/// The result of an attempt to acquire the lock.
pub(crate) enum LockAttempt {
    Acquired(SerialGuard),
    Queued(QueuedLock),
    /// As many requests wait for the adapter as may: this one is refused.
    QueueFull,
}

impl SerialLock {
    pub(crate) fn try_acquire(self: &Arc<Self>) -> LockAttempt {
        let this_thread = thread::current().id();
        let mut state = self.state.lock();
        let is_full = state.queue.len() >= MAX_WAITING;
        match &mut state.holder {
            Holder::Free => state.holder = Holder::Thread(this_thread, 1),
            Holder::Thread(holder, depth) if *holder == this_thread => *depth += 1,
            _ if is_full => return LockAttempt::QueueFull,
            _ => {
                let event = Arc::<Event>::default();
                let ticket = event.ticket(1).expect("it is the queue is new");
                state.queue.push_back(Arc::clone(&event));
                return LockAttempt::Queued(QueuedLock {
                    serial_lock: Arc::clone(self),
                    event,
                    ticket,
                    is_acquired: false,
                });
            }
        }
        LockAttempt::Acquired(SerialGuard { serial_lock: Arc::clone(self), _here: PhantomData })
    }

    /// Blocks the thread until it holds the lock, whatever the length of the queue.
    pub(crate) fn acquire_blocking(self: &Arc<Self>) -> SerialGuard {
        loop {
            match self.try_acquire() {
                LockAttempt::Acquired(held) => return held,
                LockAttempt::Queued(queued) => return queued.wait(),
                LockAttempt::QueueFull => thread::yield_now(),
            }
        }
    }

    /// Has a warning logged if the request that is now queued for this adapter waits for `limit`.
    pub(crate) fn watch_queued(self: &Arc<Self>, orb: &Orb, limit: Duration, adapter: &str) {
        self.long_wait.request_waits(orb, limit, || QueuedRequests {
            serial_lock: Arc::downgrade(self),
            adapter: adapter.to_owned(),
        });
    }

    /// Reserves the lock for the next waiter, or frees it.
    fn hand_over(&self) {
        let mut state = self.state.lock();
        let next = state.queue.pop_front();
        state.holder = next.clone().map_or(Holder::Free, Holder::Reserved);
        drop(state);
        if let Some(next) = next {
            next.set();
        }
    }
}

impl QueuedLock {
    pub(crate) fn is_of(&self, serial_lock: &Arc<SerialLock>) -> bool {
        Arc::ptr_eq(&self.serial_lock, serial_lock)
    }

    /// Acquires the lock, once the reservation is [ready](Future::poll).
    pub(crate) fn acquire(mut self) -> SerialGuard {
        self.is_acquired = true;
        self.serial_lock.state.lock().holder = Holder::Thread(thread::current().id(), 1);
        SerialGuard { serial_lock: Arc::clone(&self.serial_lock), _here: PhantomData }
    }

    /// Blocks the thread, and acquires the lock.
    pub(crate) fn wait(self) -> SerialGuard {
        self.event.wait();
        self.acquire()
    }

    /// Waits until the lock is reserved for this place; [`acquire`](Self::acquire) then takes it.
    pub(crate) async fn ready(mut self) -> Self {
        Ready(&mut self.ticket).await;
        self
    }
}

/// The requests that wait for their turn in an adapter.
struct QueuedRequests {
    serial_lock: Weak<SerialLock>,
    adapter: String,
}

impl WaitingRequests for QueuedRequests {
    fn waiting_since(&self) -> Option<Instant> {
        let serial_lock = self.serial_lock.upgrade()?;
        let first = serial_lock.state.lock().queue.front().cloned();
        first?.waiting_since()
    }

    fn warn(&self, waited: Duration) {
        let Some(serial_lock) = self.serial_lock.upgrade() else { return };
        let requests = serial_lock.state.lock().queue.len();
        tracing::warn!(
            adapter = self.adapter,
            requests,
            ?waited,
            "requests wait for their turn in an adapter with SINGLE_THREAD_MODEL: one of its upcalls has not ended. If \
             that makes a call whose target calls this adapter back, it waits for itself: use ORB_CTRL_MODEL, or an \
             adapter of its own for the callback"
        );
    }
}

struct Ready<'t>(&'t mut Ticket);

impl Future for Ready<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut *self.0).poll(cx)
    }
}

impl Drop for QueuedLock {
    fn drop(&mut self) {
        if self.is_acquired {
            return;
        }
        let mut state = self.serial_lock.state.lock();
        state.queue.retain(|waiting| !Arc::ptr_eq(waiting, &self.event));
        let is_reserved_for_self = matches!(&state.holder, Holder::Reserved(event) if Arc::ptr_eq(event, &self.event));
        drop(state);
        if is_reserved_for_self {
            self.serial_lock.hand_over();
        }
    }
}

impl Drop for SerialGuard {
    fn drop(&mut self) {
        let mut state = self.serial_lock.state.lock();
        match &mut state.holder {
            Holder::Thread(_, depth) if *depth > 1 => *depth -= 1,
            _ => {
                drop(state);
                self.serial_lock.hand_over();
            }
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_reserved_in_order_and_handed_over_by_dropped_waiters() {
        let serial_lock = Arc::<SerialLock>::default();
        let LockAttempt::Acquired(first) = serial_lock.try_acquire() else { panic!("the lock is free") };
        let LockAttempt::Acquired(again) = serial_lock.try_acquire() else { panic!("this thread holds the lock") };
        let other = Arc::clone(&serial_lock);
        let [second, third, fourth] = thread::spawn(move || {
            [(); 3].map(|()| match other.try_acquire() {
                LockAttempt::Queued(queued) => queued,
                _ => panic!("another thread holds the lock"),
            })
        })
        .join()
        .unwrap();
        drop(third);
        drop(again);
        assert!(matches!(serial_lock.state.lock().holder, Holder::Thread(_, 1)));
        drop(first);
        second.event.wait();
        drop(second);
        fourth.event.wait();
        drop(fourth.acquire());
        assert!(matches!(serial_lock.state.lock().holder, Holder::Free));
        assert!(serial_lock.state.lock().queue.is_empty());
    }
}
