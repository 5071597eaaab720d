//! Waiting for many futures in one thread.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Futures that have been woken, and the thread that polls them.
struct Woken {
    indices: Mutex<Vec<usize>>,
    thread: Thread,
}

/// The waker of the future with this index.
struct IndexWaker {
    woken: Arc<Woken>,
    index: usize,
}

impl Wake for IndexWaker {
    fn wake(self: Arc<Self>) {
        let mut indices = self.woken.indices.lock().unwrap_or_else(PoisonError::into_inner);
        indices.push(self.index);
        let is_first = indices.len() == 1;
        drop(indices);
        if is_first {
            self.woken.thread.unpark();
        }
    }
}

/// Waits for all futures in this thread, and polls only those that have been woken; their outputs are in order.
pub(super) fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(|future| Some(Box::pin(future))).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    let mut ready: Vec<usize> = (0..futures.len()).collect();
    let woken = Arc::new(Woken { indices: Mutex::default(), thread: thread::current() });
    let waker = |index| Waker::from(Arc::new(IndexWaker { woken: Arc::clone(&woken), index }));
    let wakers: Vec<Waker> = (0..futures.len()).map(waker).collect();
    let mut pending = futures.len();
    while pending > 0 {
        for index in ready.drain(..) {
            let Some(future) = &mut futures[index] else { continue }; // woken twice
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&wakers[index])) {
                (futures[index], outputs[index]) = (None, Some(output));
                pending -= 1;
            }
        }
        std::mem::swap(&mut ready, &mut woken.indices.lock().unwrap_or_else(PoisonError::into_inner));
        if ready.is_empty() && pending > 0 {
            thread::park();
        }
    }
    outputs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_futures_are_awaited_and_their_outputs_in_order() {
        let wait = |millis: u64| async move {
            let mut is_first = true;
            std::future::poll_fn(move |context| {
                if !std::mem::take(&mut is_first) {
                    return Poll::Ready(());
                }
                let waker = context.waker().clone();
                thread::spawn(move || {
                    thread::sleep(std::time::Duration::from_millis(millis));
                    waker.wake_by_ref();
                    waker.wake(); // twice, which is harmless
                });
                Poll::Pending
            })
            .await;
            millis
        };
        assert_eq!(join_all([3, 1, 0, 2].into_iter().map(wait)), [3, 1, 0, 2]);
        assert_eq!(join_all(std::iter::empty::<std::future::Ready<()>>()), []);
    }
}
