//! Waiting for a future in a thread that drives the reactor meanwhile.
//!
//! A future that is woken again and again, such as one that keeps many calls in flight, would cost two changes of threads
//! for each batch of replies: to the thread that waits, and back to the reactor's. So after some wake-ups the waiting
//! thread takes the place of the reactor's thread: it reads replies, polls the future, and writes the requests that the
//! future has made, all in turn. The reactor's thread sleeps meanwhile, and goes on when the future is ready.

use std::{
    cell::RefCell,
    pin::pin,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use spandrel_reactor::Registry;
use spandrel_sync::{
    Arc, Condition, Mutex,
    atomic::{AtomicBool, Ordering},
    thread::{self, Thread},
    thread_local,
    time::Instant,
};

use super::{ClientReactor, IS_REACTOR_THREAD};
use crate::client::connection::KeptTurns;

/// The wake-ups of a future after which its thread drives the reactor.
const PARKED_WAKES: u32 = 8;
/// The longest poll of a future whose thread goes on driving: all asynchronous calls wait meanwhile.
const LONGEST_POLL: Duration = Duration::from_millis(1);

thread_local! {
    /// The reactor that this thread drives.
    static DRIVEN: RefCell<Option<Drive>> = const { RefCell::new(None) };
}

/// The role of the thread that drives the reactor in place of the reactor's own. One thread at a time has it.
#[derive(Debug, Default)]
pub(super) struct DriverRole {
    is_taken: AtomicBool,
    lock: Mutex<()>,
    freed: Condition,
}

impl DriverRole {
    pub(super) fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::SeqCst)
    }

    /// Waits until no thread drives in place of the reactor's.
    pub(super) fn wait_until_free(&self) {
        let mut guard = self.lock.lock();
        while self.is_taken() {
            self.freed.wait(&mut guard);
        }
    }

    fn take(&self) -> bool {
        !self.is_taken.swap(true, Ordering::SeqCst)
    }

    fn free(&self) {
        let _guard = self.lock.lock();
        self.is_taken.store(false, Ordering::SeqCst);
        self.freed.notify_all();
    }
}

/// The right of this thread to drive a reactor. Its drop writes what was appended, and gives the reactor back to its own
/// thread, in this order.
struct Drive {
    _kept_turns: KeptTurns,
    _role: HeldRole,
}

struct HeldRole(Arc<DriverRole>);

impl Drop for HeldRole {
    fn drop(&mut self) {
        self.0.free();
    }
}

impl Drive {
    /// Takes the place of the reactor's thread, unless another thread has.
    fn begin(role: &Arc<DriverRole>, registry: &Registry) -> Option<Self> {
        if !role.take() {
            return None;
        }
        let held_role = HeldRole(Arc::clone(role));
        // The reactor's thread checks its condition, and leaves.
        registry.wake();
        Some(Self { _kept_turns: KeptTurns::begin(), _role: held_role })
    }
}

/// The waker of a future that a thread waits for.
struct ThreadWaker {
    is_woken: AtomicBool,
    thread: Thread,
    /// The reactor that the thread drives or is about to drive.
    registry: Mutex<Option<Registry>>,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_woken.swap(true, Ordering::SeqCst) || thread::current().id() == self.thread.id() {
            return;
        }
        // Looked at afterwards: the thread first enters the reactor here, and then checks whether it is woken.
        let registry = self.registry.lock().clone();
        if let Some(registry) = registry {
            registry.wake();
        }
        self.thread.unpark();
    }
}

impl ClientReactor {
    /// Waits for a future; drives the reactor meanwhile if the future is woken often.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        // A thread that already drives would wait for itself.
        drop(DRIVEN.with(RefCell::take));
        let mut future = pin!(future);
        let waker = Arc::new(ThreadWaker {
            is_woken: AtomicBool::new(true),
            thread: thread::current(),
            registry: Mutex::new(None),
        });
        let as_waker = Waker::from(Arc::clone(&waker));
        let mut context = Context::from_waker(&as_waker);
        let _end = EndDriving;
        let mut wakes = 0;
        loop {
            if waker.is_woken.swap(false, Ordering::SeqCst) {
                let begin = Instant::now();
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    // A waker that is still kept somewhere keeps no reactor.
                    *waker.registry.lock() = None;
                    return output;
                }
                wakes += 1;
                if wakes > PARKED_WAKES && begin.elapsed() > LONGEST_POLL {
                    drop(DRIVEN.with(RefCell::take));
                    wakes = 0;
                }
            }
            KeptTurns::end_all();
            if !self.drive(wakes, &waker) {
                *waker.registry.lock() = None;
                while !waker.is_woken.load(Ordering::SeqCst) {
                    thread::park();
                }
            }
        }
    }

    /// Drives the reactor until the future is woken, or requests wait to be written. False if this thread is to wait for the
    /// wake-up without it.
    fn drive(&self, wakes: u32, waker: &ThreadWaker) -> bool {
        if wakes < PARKED_WAKES || IS_REACTOR_THREAD.with(std::cell::Cell::get) {
            return false;
        }
        let Some(reactor_thread) = self.reactor_thread.get() else { return false };
        let registry = reactor_thread.reactor.registry();
        let is_driving = DRIVEN.with(|driven| {
            let mut driven = driven.borrow_mut();
            if driven.is_none() {
                *driven = Drive::begin(&self.driver_role, registry);
            }
            driven.is_some()
        });
        if !is_driving {
            return false;
        }
        waker.registry.lock().get_or_insert_with(|| registry.clone());
        let _scope = ReactorThreadScope::enter();
        let is_due = || waker.is_woken.load(Ordering::SeqCst) || KeptTurns::has_any();
        // Not once the reactor has stopped.
        let is_running = matches!(reactor_thread.reactor.run_until(None, is_due), Ok(true));
        if !is_running {
            drop(DRIVEN.with(RefCell::take));
        }
        is_running
    }
}

/// Ends the driving of this thread by its drop, also in a panic of the future.
struct EndDriving;

impl Drop for EndDriving {
    fn drop(&mut self) {
        drop(DRIVEN.with(RefCell::take));
    }
}

/// The time in which this thread runs the code of the reactor's thread.
struct ReactorThreadScope(());

impl ReactorThreadScope {
    fn enter() -> Self {
        IS_REACTOR_THREAD.with(|is_reactor_thread| is_reactor_thread.set(true));
        Self(())
    }
}

impl Drop for ReactorThreadScope {
    fn drop(&mut self) {
        IS_REACTOR_THREAD.with(|is_reactor_thread| is_reactor_thread.set(false));
    }
}
