//! Pauses of tasks, which occupy no thread.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use spandrel::net::sync::{Arc, Condition, Mutex};

/// A thread that wakes tasks. It ends when this is dropped.
#[derive(Debug)]
pub struct Timer {
    shared: Arc<TimerShared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct TimerShared {
    state: Mutex<TimerState>,
    changed: Condition,
}

#[derive(Debug, Default)]
struct TimerState {
    /// The tasks by the time of their wake-up, and a number that is theirs alone.
    tasks: BTreeMap<(Instant, u64), Waker>,
    next: u64,
    is_closed: bool,
}

impl Timer {
    /// Starts the thread that wakes tasks.
    ///
    /// # Panics
    /// If the system has no more threads.
    #[must_use]
    pub fn start() -> Self {
        let shared = Arc::new(TimerShared::default());
        let running = Arc::clone(&shared);
        let thread = thread::Builder::new().name("spandrel-timer".to_owned()).spawn(move || running.run());
        let thread = thread.expect("the system has a thread left");
        Self { shared, thread: Some(thread) }
    }

    /// A future that is ready after this time.
    pub async fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        let number = {
            let mut state = self.shared.state.lock();
            state.next += 1;
            state.next
        };
        // A future that is dropped is woken no more.
        let entry = TimerEntry { shared: &self.shared, key: (end, number) };
        poll_fn(|context| {
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            let mut state = self.shared.state.lock();
            state.tasks.insert(entry.key, context.waker().clone());
            if state.tasks.first_key_value().is_some_and(|(first, _)| *first == entry.key) {
                self.shared.changed.notify_all();
            }
            Poll::Pending
        })
        .await;
    }
}

/// A task of the timer, until it is dropped.
struct TimerEntry<'t> {
    shared: &'t TimerShared,
    key: (Instant, u64),
}

impl Drop for TimerEntry<'_> {
    fn drop(&mut self) {
        drop(self.shared.state.lock().tasks.remove(&self.key));
    }
}

impl TimerShared {
    fn run(&self) {
        let mut state = self.state.lock();
        while !state.is_closed {
            let now = Instant::now();
            match state.tasks.first_key_value().map(|((end, _), _)| *end) {
                None => self.changed.wait(&mut state),
                Some(end) if end > now => _ = self.changed.wait_for(&mut state, end - now),
                Some(_) => {
                    let task = state.tasks.pop_first();
                    drop(state);
                    if let Some((_, waker)) = task {
                        waker.wake();
                    }
                    state = self.state.lock();
                }
            }
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.shared.state.lock().is_closed = true;
        self.shared.changed.notify_all();
        // The last task may end in that thread.
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id()) {
            _ = thread.join();
        }
    }
}
