//! An answer that is to come, and a thread that waits for it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Wake, Waker},
};

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_orb::{Answer, AsyncRawReply};
use spandrel_sync::{Arc, Condition, Mutex};

/// A request whose answer was not taken yet.
#[derive(Debug)]
pub(super) struct Pending(pub(super) AsyncRawReply);

/// A thread that waits.
#[derive(Debug, Default)]
struct Sleeper {
    is_woken: Mutex<bool>,
    changed: Condition,
}

impl Sleeper {
    fn sleep(&self) {
        let mut is_woken = self.is_woken.lock();
        while !std::mem::take(&mut *is_woken) {
            self.changed.wait(&mut is_woken);
        }
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock() = true;
        self.changed.notify_all();
    }
}

impl Pending {
    /// True once the answer has come.
    pub(super) fn has_come(&self) -> bool {
        self.0.has_come(Waker::noop())
    }

    /// As [`Pending::has_come`]; if not, `waker` will be woken when it has.
    pub(super) fn announce(&self, waker: &Waker) -> bool {
        self.0.has_come(waker)
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Answer, SystemException>> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map(|answered| answered?.ok_or_else(|| SystemException::internal(0, CompletionStatus::Maybe)))
    }

    /// Waits for the answer, which comes at the latest when the ORB is shut down.
    pub(super) fn wait(&mut self) -> Result<Answer, SystemException> {
        let sleeper = Arc::new(Sleeper::default());
        let waker = Waker::from(Arc::clone(&sleeper));
        loop {
            if let Poll::Ready(answered) = self.poll(&mut Context::from_waker(&waker)) {
                return answered;
            }
            sleeper.sleep();
        }
    }
}
