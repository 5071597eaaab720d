//! What a deferred call and whoever may cancel it have in common.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

use spandrel_sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
    held,
};

/// Whether somebody still waits for the answer.
#[derive(Debug, Default)]
pub(crate) struct Cancellation {
    is_cancelled: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Cancellation {
    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            held::assert_none("a waker");
            // It is an executor's code, and this thread reads for others.
            let woken = catch_unwind(AssertUnwindSafe(|| waker.wake()));
            if woken.is_err() {
                tracing::error!("a waker panicked");
            }
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }

    /// True once it is cancelled; the task is woken when it is.
    pub(super) fn poll(&self, waker: &Waker) -> bool {
        let is_known = self.waker.lock().as_ref().is_some_and(|old| old.will_wake(waker));
        if !is_known {
            // Made, and the old one dropped, outside of the lock, since both are anybody's code.
            let waker = waker.clone();
            let old = self.waker.lock().replace(waker);
            drop(old);
        }
        // Looked at afterwards: who cancels takes the waker after that.
        self.is_cancelled()
    }
}
