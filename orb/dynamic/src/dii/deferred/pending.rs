//! An outstanding reply, and a thread that waits for it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Wake, Waker},
};

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_orb::{Answer, AsyncRawReply};
use spandrel_sync::{Arc, Condition, Mutex};

/// A reply that was not collected yet.
#[derive(Debug)]
pub(super) struct Pending(pub(super) AsyncRawReply);

/// A thread that waits for replies of deferred requests.
#[derive(Debug, Default)]
struct ThreadWaker {
    is_woken: Mutex<bool>,
    changed: Condition,
}

impl ThreadWaker {
    fn sleep(&self) {
        let mut is_woken = self.is_woken.lock();
        while !std::mem::take(&mut *is_woken) {
            self.changed.wait(&mut is_woken);
        }
    }
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock() = true;
        self.changed.notify_all();
    }
}

impl Pending {
    /// Whether the reply has arrived.
    pub(super) fn has_arrived(&self) -> bool {
        self.0.is_ready(Waker::noop())
    }

    /// As [`Pending::has_arrived`]; if it has not arrived, `waker` is woken on arrival.
    pub(super) fn has_arrived_or_wake(&self, waker: &Waker) -> bool {
        self.0.is_ready(waker)
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Answer, SystemException>> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map(|answered| answered?.ok_or_else(|| SystemException::internal(0, CompletionStatus::Maybe)))
    }

    /// Waits for the reply, which arrives at the latest when the ORB is shut down.
    pub(super) fn wait(&mut self) -> Result<Answer, SystemException> {
        let thread_waker = Arc::new(ThreadWaker::default());
        let waker = Waker::from(Arc::clone(&thread_waker));
        loop {
            if let Poll::Ready(answered) = self.poll(&mut Context::from_waker(&waker)) {
                return answered;
            }
            thread_waker.sleep();
        }
    }
}
