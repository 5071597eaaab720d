//! Warnings of requests that only the application can let run, and that wait for it for long: a holding manager, the
//! turn in a single-threaded adapter, the main thread, and an executor whose threads are all blocked.
//!
//! The first request that waits starts a timer. There is at most one for each place where requests wait, and none
//! while nothing waits, so that a busy adapter costs one timer in a second.

use std::time::Duration;

use spandrel_orb::{
    Orb,
    internal::{PollingExecutor, Spawner, TimerFuture, WeakOrb},
};
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
    time::Instant,
};

/// The shortest time between two warnings of one place.
const REPETITION: Duration = Duration::from_secs(60);

/// A queue or table of waiting requests, as [`LongWaitWatch`] sees it.
pub trait WaitingRequests: Send + Sync + 'static {
    /// The time at which the first waiting request began to wait; `None` if none waits.
    fn waiting_since(&self) -> Option<Instant>;

    /// Logs a warning with the queue or table, and the remedy.
    fn warn(&self, waited: Duration);
}

/// Logs a warning when requests wait for too long in one queue or table.
#[derive(Debug, Default)]
pub struct LongWaitWatch {
    /// Whether the timer runs.
    is_timed: Arc<AtomicBool>,
}

impl LongWaitWatch {
    /// Logs a warning if a request waits for this time. To be called without a lock when a request has begun to wait.
    pub fn request_waits<W: WaitingRequests>(&self, orb: &Orb, limit: Duration, requests: impl FnOnce() -> W) {
        if self.is_timed.load(Ordering::SeqCst) || self.is_timed.swap(true, Ordering::SeqCst) {
            return;
        }
        let task = watch(WeakOrb::of(orb), Arc::clone(&self.is_timed), limit, requests());
        if orb.client_reactor().run(Box::pin(task)).is_err() {
            // The ORB ends, or has no thread for a warning.
            self.is_timed.store(false, Ordering::SeqCst);
        }
    }
}

/// Looks at the waiting requests until there are none, or until the ORB ends.
async fn watch(orb: WeakOrb, is_timed: Arc<AtomicBool>, limit: Duration, requests: impl WaitingRequests) {
    let timer = |pause| orb.upgrade().map(|orb| TimerFuture::of_request(&orb, Instant::now() + pause));
    let mut pause = limit;
    while let Some(timer) = timer(pause)
        && timer.await
    {
        pause = match requests.waiting_since().map(|since| Instant::now().saturating_duration_since(since)) {
            Some(waited) if waited >= limit => {
                requests.warn(waited);
                REPETITION.max(limit)
            }
            Some(waited) => limit - waited,
            None => {
                is_timed.store(false, Ordering::SeqCst);
                // A request that has begun to wait before that has found the timer running.
                if requests.waiting_since().is_none() || is_timed.swap(true, Ordering::SeqCst) {
                    return;
                }
                limit
            }
        };
    }
}

/// Requests that were given to an executor of the application, which has to begin them.
#[derive(Debug)]
pub(crate) struct UnbegunRequests {
    executor: Executor,
    /// The time after which a warning is logged.
    limit: Option<Duration>,
    received: AtomicU64,
    begun: AtomicU64,
    last_progress: Mutex<Progress>,
    watch: LongWaitWatch,
    /// Whether a call that blocks a thread of the executor was reported.
    has_warned_of_call: AtomicBool,
}

/// An executor of the application.
#[derive(Debug)]
pub(crate) enum Executor {
    MainThread,
    /// The one of [`OrbBuilder::spawner`](spandrel_orb::OrbBuilder::spawner), if one is installed.
    Spawner(Option<Spawner>),
}

/// The last time at which the number of begun requests was seen to rise.
#[derive(Debug, Default)]
struct Progress {
    begun: u64,
    since: Option<Instant>,
}

/// A request that its executor has not begun. Dropped when it is begun, or will never be.
#[derive(Debug)]
pub(crate) struct UnbegunRequest(Arc<UnbegunRequests>);

impl UnbegunRequests {
    pub(crate) fn new(executor: Executor, limit: Option<Duration>) -> Arc<Self> {
        let (received, begun) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self {
            executor,
            limit,
            received,
            begun,
            last_progress: Mutex::default(),
            watch: LongWaitWatch::default(),
            has_warned_of_call: AtomicBool::new(false),
        })
    }

    /// Counts a request that is given to the executor.
    pub(crate) fn give(self: &Arc<Self>, orb: &Orb) -> UnbegunRequest {
        self.received.fetch_add(1, Ordering::SeqCst);
        if let Some(limit) = self.limit {
            self.watch.request_waits(orb, limit, || {
                *self.last_progress.lock() = Progress::default();
                let _begins = self.waiting_since();
                Waiting(Arc::clone(self))
            });
        }
        UnbegunRequest(Arc::clone(self))
    }

    /// The time since when requests wait and none was begun.
    fn waiting_since(&self) -> Option<Instant> {
        let begun = self.begun.load(Ordering::SeqCst);
        let mut last = self.last_progress.lock();
        if self.received.load(Ordering::SeqCst) == begun {
            *last = Progress::default();
        } else if last.since.is_none() || last.begun != begun {
            *last = Progress { begun, since: Some(Instant::now()) };
        }
        last.since
    }
}

impl PollingExecutor for UnbegunRequests {
    fn call_blocks(&self, operation: &str) {
        let Executor::Spawner(Some(spawner)) = &self.executor else { return };
        if self.limit.is_none() || self.has_warned_of_call.load(Ordering::SeqCst) || !spawner.0.is_worker() {
            return;
        }
        if !self.has_warned_of_call.swap(true, Ordering::SeqCst) {
            tracing::warn!(
                operation,
                "a synchronous call blocks a thread of the executor of `OrbBuilder::spawner`, which can poll no other \
                 request meanwhile: use the asynchronous form of the call (`{operation}_async`); later calls that \
                 block are not reported"
            );
        }
    }
}

impl Drop for UnbegunRequest {
    fn drop(&mut self) {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
    }
}

/// The requests of one executor, for its watch.
struct Waiting(Arc<UnbegunRequests>);

impl WaitingRequests for Waiting {
    fn waiting_since(&self) -> Option<Instant> {
        self.0.waiting_since()
    }

    fn warn(&self, waited: Duration) {
        // Requests may be received and begun between the two loads.
        let begun = self.0.begun.load(Ordering::SeqCst);
        let requests = self.0.received.load(Ordering::SeqCst).saturating_sub(begun);
        match &self.0.executor {
            Executor::MainThread => tracing::warn!(
                requests,
                ?waited,
                "requests for adapters with MAIN_THREAD_MODEL wait for the main thread: the first thread that calls \
                 `Orb::run` or `Orb::perform_work` runs them, and no thread does so, or its last job has not ended"
            ),
            Executor::Spawner(_) => tracing::warn!(
                requests,
                ?waited,
                "requests wait for the executor of `OrbBuilder::spawner`, which has polled none of them: a call that \
                 blocks may keep its threads; use the asynchronous form of the call, or an executor with more threads"
            ),
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Requests that wait without end. Sends `Ended` when the watch drops them.
    struct Endless(mpsc::Sender<Watched>);

    #[derive(Debug, Eq, PartialEq)]
    enum Watched {
        Warned,
        Ended,
    }

    impl WaitingRequests for Endless {
        fn waiting_since(&self) -> Option<Instant> {
            Instant::now().checked_sub(Duration::from_secs(1))
        }

        fn warn(&self, _waited: Duration) {
            self.0.send(Watched::Warned).unwrap();
        }
    }

    impl Drop for Endless {
        fn drop(&mut self) {
            self.0.send(Watched::Ended).unwrap();
        }
    }

    #[test]
    fn a_watch_that_has_warned_does_not_keep_its_orb() {
        let orb = Orb::builder().build().unwrap();
        let (sender, watched) = mpsc::channel();
        LongWaitWatch::default().request_waits(&orb, Duration::from_millis(1), || Endless(sender));
        // Less than the time to the next warning.
        let next = || watched.recv_timeout(REPETITION / 2).unwrap();
        assert_eq!(next(), Watched::Warned);
        let weak = WeakOrb::of(&orb);
        drop(orb);
        assert_eq!(next(), Watched::Ended);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn requests_wait_since_the_last_one_was_begun() {
        let requests = UnbegunRequests::new(Executor::Spawner(None), None);
        let give = || {
            requests.received.fetch_add(1, Ordering::SeqCst);
            UnbegunRequest(Arc::clone(&requests))
        };
        assert_eq!(requests.waiting_since(), None);
        let (first, second) = (give(), give());
        let begin = requests.waiting_since().expect("two wait");
        assert_eq!(requests.waiting_since(), Some(begin), "none was begun");
        drop(second);
        let progress = requests.waiting_since().expect("one waits");
        assert!(progress > begin, "one was begun");
        assert_eq!(requests.waiting_since(), Some(progress));
        drop(first);
        assert_eq!(requests.waiting_since(), None);
    }
}
