//! Wake-ups of tasks by the thread that delivers replies.
//!
//! The reactor delivers all replies that one read has brought, and wakes the tasks afterwards. A task that waits for
//! several of the replies is woken once.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

use spandrel_sync::{held, thread_local};

/// A waker is compared with so many that were added last: tasks that share one mostly follow each other.
const COMPARED: usize = 8;

thread_local! {
    static BATCH: RefCell<Wakers> = const { RefCell::new(Wakers { is_open: false, wakers: Vec::new() }) };
}

/// The wakers that a thread has collected.
struct Wakers {
    /// Whether wakers are added now.
    is_open: bool,
    wakers: Vec<Waker>,
}

/// Wakes a task now, or with the others of this thread's batch. A panic of the waker is logged.
pub(crate) fn wake(waker: Waker) {
    let mut waker = Some(waker);
    // There is no batch if the thread is ending.
    let _ = BATCH.try_with(|batch| batch.borrow_mut().add(&mut waker));
    if let Some(waker) = waker {
        wake_now(waker);
    }
}

impl Wakers {
    /// Takes a waker, if the batch is open.
    fn add(&mut self, waker: &mut Option<Waker>) {
        if !self.is_open {
            return;
        }
        let Some(waker) = waker.take() else { return };
        // The drop of a second waker of one task runs no code of the executor.
        if !self.wakers.iter().rev().take(COMPARED).any(|other| other.will_wake(&waker)) {
            self.wakers.push(waker);
        }
    }

    /// Closes the batch, and returns its wakers.
    fn close(&mut self) -> Vec<Waker> {
        self.is_open = false;
        std::mem::take(&mut self.wakers)
    }
}

/// A waker runs the executor's code, and this thread may be reading for other calls.
fn wake_now(waker: Waker) {
    held::assert_none("a waker");
    if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
        tracing::error!("a waker panicked");
    }
}

/// The batch of wake-ups of this thread, ended by its drop.
#[derive(Debug)]
pub(super) struct WakeBatch(());

impl WakeBatch {
    pub(super) fn begin() -> Self {
        BATCH.with(|batch| batch.borrow_mut().is_open = true);
        Self(())
    }

    /// Wakes the tasks, if there are any, in the scope that `begin_scope` returns. What these start at once wakes
    /// further tasks without a batch.
    pub(super) fn wake_all<S>(&self, begin_scope: impl FnOnce() -> S) {
        let mut wakers = BATCH.with(|batch| batch.borrow_mut().close());
        if !wakers.is_empty() {
            let _scope = begin_scope();
            wakers.drain(..).for_each(wake_now);
        }
        // With its memory, for the next read.
        BATCH.with(|batch| *batch.borrow_mut() = Wakers { is_open: true, wakers });
    }
}

impl Drop for WakeBatch {
    fn drop(&mut self) {
        // None are left, unless this thread panics.
        self.wake_all(|| ());
        BATCH.with(|batch| batch.borrow_mut().is_open = false);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        task::Wake,
    };

    use spandrel_sync::Arc;

    use super::*;

    /// Counts its wake-ups, and wakes another task.
    #[derive(Default)]
    struct Counter(AtomicU32, Option<Waker>);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
            self.1.iter().cloned().for_each(wake);
        }
    }

    fn counts(counters: &[&Arc<Counter>]) -> Vec<u32> {
        counters.iter().map(|counter| counter.0.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn a_batch_wakes_each_task_once_at_its_end() {
        let [first, second] = [Arc::<Counter>::default(), Arc::default()];
        let batch = WakeBatch::begin();
        for counter in [&first, &first, &second, &first] {
            wake(Waker::from(Arc::clone(counter)));
        }
        assert_eq!(counts(&[&first, &second]), [0, 0]);
        batch.wake_all(|| ());
        assert_eq!(counts(&[&first, &second]), [1, 1]);
        wake(Waker::from(Arc::clone(&first)));
        assert_eq!(counts(&[&first, &second]), [1, 1], "the next read");
        drop(batch);
        assert_eq!(counts(&[&first, &second]), [2, 1]);
        wake(Waker::from(Arc::clone(&first)));
        assert_eq!(counts(&[&first, &second]), [3, 1], "without a batch");
    }

    #[test]
    fn a_woken_task_that_runs_at_once_wakes_others_without_the_batch() {
        let last = Arc::<Counter>::default();
        let first = Arc::new(Counter(AtomicU32::new(0), Some(Waker::from(Arc::clone(&last)))));
        let batch = WakeBatch::begin();
        wake(Waker::from(Arc::clone(&first)));
        batch.wake_all(|| ());
        assert_eq!(counts(&[&first, &last]), [1, 1]);
    }
}
