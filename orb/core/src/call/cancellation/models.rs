//! Models of cancellations: sources, waiters, and waiters that leave.

use std::{
    pin::Pin,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use spandrel_sync::{Arc, Condition, Mutex, thread};

use super::{CancelReason, CancellationSource, CancellationToken};
use crate::{
    Orb,
    models::{check, one_in},
    orb::WeakOrb,
};

/// Years: no wait of a model ends before.
const NEVER: Duration = Duration::from_secs(1000 * 24 * 60 * 60);

#[derive(Default)]
struct TestWaker {
    is_woken: Mutex<bool>,
    woken: Condition,
}

impl Wake for TestWaker {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock() = true;
        self.woken.notify_all();
    }
}

/// Polls until it is cancelled, each time after a wake-up; or returns after the first poll.
fn poll(token: &CancellationToken, stops: bool) -> Option<CancelReason> {
    let mut cancelled = token.cancelled();
    loop {
        let test_waker = Arc::<TestWaker>::default();
        let waker = Waker::from(Arc::clone(&test_waker));
        match Pin::new(&mut cancelled).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(reason) => return Some(reason),
            Poll::Pending if stops => return None,
            Poll::Pending => {
                let mut is_woken = test_waker.is_woken.lock();
                test_waker.woken.wait_while(&mut is_woken, |is_woken| !*is_woken);
            }
        }
    }
}

#[test]
fn all_waiters_wake_with_the_same_reason() {
    check(6000, || {
        let orb = Orb::builder().build().unwrap();
        let cancellation = CancellationSource::new(WeakOrb::of(&orb), None);
        let token = CancellationToken::new(Arc::clone(&cancellation));
        let reasons = (0..3).map(|waiter| {
            let token = token.clone();
            thread::spawn(move || match waiter {
                0 => {
                    assert!(token.wait_timeout(NEVER));
                    token.reason()
                }
                1 => poll(&token, false),
                _ => poll(&token, one_in(2)),
            })
        });
        let reasons: Vec<_> = reasons.collect();
        let cancelling = [CancelReason::ClientCancelled, CancelReason::ConnectionLost].map(|reason| {
            let cancellation = Arc::clone(&cancellation);
            thread::spawn(move || cancellation.cancel(reason))
        });
        cancelling.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
        let reason = token.reason();
        assert!(reason.is_some());
        for (waiter, thread) in reasons.into_iter().enumerate() {
            let reasons = thread.join().expect("it has waited");
            assert!(reasons == reason || waiter == 2 && reasons.is_none(), "{reasons:?} and not {reason:?}");
        }
    });
}

#[test]
fn a_reply_that_races_with_a_cancellation_has_one_outcome() {
    check(3000, || {
        let orb = Orb::builder().build().unwrap();
        let cancellation = CancellationSource::new(WeakOrb::of(&orb), None);
        let (answered, cancelled) = (Arc::clone(&cancellation), Arc::clone(&cancellation));
        let answering = thread::spawn(move || answered.mark_answered());
        let cancelling = thread::spawn(move || {
            cancelled.cancel(CancelReason::ClientCancelled);
            cancelled.reason()
        });
        answering.join().expect("it is answered");
        let reason = cancelling.join().expect("it is cancelled");
        assert_eq!(reason, cancellation.reason(), "the reason does not change");
    });
}
