//! The calls that run outside of accepted connections: collocated calls, requests by datagram, and requests
//! over connections which this ORB has opened.
//!
//! It only counts them; requests that can be cancelled are in `connection::pending_requests`.

use spandrel_giop::SystemException;
use spandrel_orb::Orb;
use spandrel_sync::{
    Condition, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Deadline,
};

/// The number of such calls. The shutdown of the ORB waits for them.
#[derive(Debug)]
pub(crate) struct RunningCalls {
    running: AtomicUsize,
    /// Whether the ORB ends as soon as no call runs.
    is_closing: AtomicBool,
    lock: Mutex<()>,
    /// Notified when the last call of a closing ORB has ended.
    ended: Condition,
}

/// A running call, counted until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningCallGuard<'o>(&'o RunningCalls);

impl Default for RunningCalls {
    fn default() -> Self {
        let (running, is_closing) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { running, is_closing, lock: Mutex::new(()), ended: Condition::new() }
    }
}

impl RunningCalls {
    /// Begins a call.
    ///
    /// # Errors
    /// BAD_INV_ORDER if the ORB has been shut down.
    #[inline]
    pub(crate) fn enter<'o>(&'o self, orb: &Orb) -> Result<RunningCallGuard<'o>, SystemException> {
        self.running.fetch_add(1, Ordering::SeqCst);
        let running = RunningCallGuard(self);
        // Checked after counting: a thread that ends the ORB first marks the ORB and then reads the count.
        orb.check_running()?;
        Ok(running)
    }

    /// Waits for the end of all calls.
    pub(crate) fn await_end(&self, deadline: Deadline) {
        self.is_closing.store(true, Ordering::SeqCst);
        let mut lock = self.lock.lock();
        while self.running.load(Ordering::SeqCst) != 0 {
            if deadline.is_over() {
                break;
            }
            self.ended.wait_until(&mut lock, deadline);
        }
    }
}

impl Drop for RunningCallGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::SeqCst) == 1 && self.0.is_closing.load(Ordering::SeqCst) {
            // Under the lock, so that the thread that ends the ORB either sees the count or is woken.
            let _lock = self.0.lock.lock();
            self.0.ended.notify_all();
        }
    }
}
