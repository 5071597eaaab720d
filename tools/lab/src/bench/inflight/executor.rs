//! Many futures as one.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Futures that have been woken, and the waker of the task that polls them.
#[derive(Default)]
struct Woken {
    indices: Vec<usize>,
    task: Option<Waker>,
}

/// The waker of the future with this index.
struct IndexWaker {
    woken: Arc<Mutex<Woken>>,
    index: usize,
}

impl Wake for IndexWaker {
    fn wake(self: Arc<Self>) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        woken.indices.push(self.index);
        let task = woken.task.take();
        drop(woken);
        if let Some(task) = task {
            task.wake();
        }
    }
}

/// Waits for all futures, and polls only those that have been woken; their outputs are in order.
pub(super) fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> impl Future<Output = Vec<F::Output>> {
    let mut futures: Vec<_> = futures.map(|future| Some(Box::pin(future))).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    let mut ready: Vec<usize> = (0..futures.len()).collect();
    let woken = Arc::<Mutex<Woken>>::default();
    let waker = |index| Waker::from(Arc::new(IndexWaker { woken: Arc::clone(&woken), index }));
    let wakers: Vec<Waker> = (0..futures.len()).map(waker).collect();
    let mut pending = futures.len();
    poll_fn(move |context| {
        while pending > 0 {
            for index in ready.drain(..) {
                let Some(future) = &mut futures[index] else { continue }; // woken twice
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&wakers[index])) {
                    (futures[index], outputs[index]) = (None, Some(output));
                    pending -= 1;
                }
            }
            let mut woken = woken.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut ready, &mut woken.indices);
            if ready.is_empty() && pending > 0 {
                woken.task = Some(context.waker().clone());
                return Poll::Pending;
            }
        }
        Poll::Ready(outputs.iter_mut().filter_map(Option::take).collect())
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::future::block_on;

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
        assert_eq!(block_on(join_all([3, 1, 0, 2].into_iter().map(wait))), [3, 1, 0, 2]);
        assert_eq!(block_on(join_all(std::iter::empty::<std::future::Ready<()>>())), []);
    }
}
