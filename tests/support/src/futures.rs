//! Futures without an executor.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::TEST_TIMEOUT;

/// Blocks this thread until the future is ready.
///
/// # Panics
/// If the future is not ready within [`TEST_TIMEOUT`].
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    ready_within(TEST_TIMEOUT, future).expect("the future is ready in time")
}

/// Blocks this thread until the future is ready; `None` if it is not ready within `limit`.
pub fn ready_within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let end = Instant::now() + limit;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

/// Polls a future once; whether it is ready.
pub fn is_ready<F: Future + Unpin>(future: &mut F) -> bool {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// A waker that runs `action` at its first wake-up.
pub fn waker_that(action: impl FnOnce() + Send + 'static) -> Waker {
    struct ActingOnce(Mutex<Option<Box<dyn FnOnce() + Send>>>);

    impl Wake for ActingOnce {
        fn wake(self: Arc<Self>) {
            // The lock is released before the action runs: the action may wake this waker.
            let action = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(action) = action {
                action();
            }
        }
    }

    Waker::from(Arc::new(ActingOnce(Mutex::new(Some(Box::new(action))))))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};

    use super::*;

    #[test]
    fn block_on_returns_after_another_thread_wakes_the_future() {
        let mut was_polled = false;
        let woken = poll_fn(move |cx| {
            if std::mem::replace(&mut was_polled, true) {
                return Poll::Ready(7);
            }
            let waker = cx.waker().clone();
            thread::spawn(move || waker.wake());
            Poll::Pending
        });
        assert_eq!(block_on(woken), 7);
    }

    #[test]
    fn a_waker_runs_its_action_once() {
        let (send, acts) = std::sync::mpsc::channel();
        let waker = waker_that(move || send.send(()).unwrap());
        waker.wake_by_ref();
        waker.wake();
        assert_eq!(acts.iter().count(), 1);
    }

    #[test]
    fn ready_within_returns_none_for_a_pending_future() {
        assert_eq!(ready_within(Duration::from_millis(1), pending::<()>()), None);
        assert!(!is_ready(&mut pending::<()>()));
        assert!(is_ready(&mut ready(())));
    }
}
