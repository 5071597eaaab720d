//! Replies that a thread waits for together.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A reply that is awaited with others.
pub(crate) type Pending<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// Blocks the thread until all replies are there, and returns them in the order of their requests. The time-outs of the
/// references bound the wait.
pub(crate) fn all<T>(pending: Vec<Pending<'_, T>>) -> Vec<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut pending: Vec<_> = pending.into_iter().map(Some).collect();
    let mut replies: Vec<Option<T>> = pending.iter().map(|_| None).collect();
    loop {
        for (future, reply) in pending.iter_mut().zip(&mut replies) {
            if let Some(running) = future
                && let Poll::Ready(ready) = running.as_mut().poll(&mut context)
            {
                *reply = Some(ready);
                *future = None;
            }
        }
        if replies.iter().all(Option::is_some) {
            return replies.into_iter().flatten().collect();
        }
        thread::park();
    }
}
