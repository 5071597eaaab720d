//! Futures without an executor.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// Waits for a future in this thread.
///
/// # Panics
/// If it takes for ever.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    ready_within(PATIENCE, future).expect("the future is ready in time")
}

/// Waits for a future in this thread; nothing if it is not ready in this time.
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

/// Polls a future once; true if it is ready.
pub fn is_ready<F: Future + Unpin>(future: &mut F) -> bool {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// A waker that does something the first time.
pub fn waker_that(acts: impl FnOnce() + Send + 'static) -> Waker {
    struct Acting(Mutex<Option<Box<dyn FnOnce() + Send>>>);

    impl Wake for Acting {
        fn wake(self: Arc<Self>) {
            // Let go before it acts: it may be woken meanwhile.
            let act = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(act) = act {
                act();
            }
        }
    }

    Waker::from(Arc::new(Acting(Mutex::new(Some(Box::new(acts))))))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};

    use super::*;

    #[test]
    fn a_future_that_another_thread_wakes_is_waited_for() {
        let mut has_asked = false;
        let woken = poll_fn(move |cx| {
            if std::mem::replace(&mut has_asked, true) {
                return Poll::Ready(7);
            }
            let waker = cx.waker().clone();
            thread::spawn(move || waker.wake());
            Poll::Pending
        });
        assert_eq!(block_on(woken), 7);
    }

    #[test]
    fn a_waker_acts_once() {
        let (send, acts) = std::sync::mpsc::channel();
        let waker = waker_that(move || send.send(()).unwrap());
        waker.wake_by_ref();
        waker.wake();
        assert_eq!(acts.iter().count(), 1);
    }

    #[test]
    fn a_future_that_is_never_ready_ends_the_wait() {
        assert_eq!(ready_within(Duration::from_millis(1), pending::<()>()), None);
        assert!(!is_ready(&mut pending::<()>()));
        assert!(is_ready(&mut ready(())));
    }
}
