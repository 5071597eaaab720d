//! The threads of a server that accept connections, read requests and run servants, up to a limit.

use std::io;

use spandrel_sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    thread,
};

/// Starts and counts the threads of one server, up to a limit.
#[derive(Debug)]
pub(super) struct ServerThreads {
    count: Arc<AtomicUsize>,
    limit: usize,
}

/// Counts a thread while it runs.
struct ThreadCount(Arc<AtomicUsize>);

impl Drop for ThreadCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ServerThreads {
    pub(super) fn new(limit: usize) -> Self {
        Self { count: Arc::default(), limit }
    }

    /// The number of threads that run.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Whether this many more threads may be started.
    pub(super) fn has_room_for(&self, threads: usize) -> bool {
        self.count().saturating_add(threads) <= self.limit
    }

    /// Starts a detached thread. Connections report their own end.
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] at the limit; errors of the system.
    pub(super) fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let more = |count| (count < self.limit).then(|| count + 1);
        if self.count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_err() {
            let text = format!("{} server threads run already, which is the limit (-ORBMaxServerThreads)", self.limit);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        let counted = ThreadCount(Arc::clone(&self.count));
        let run = move || {
            let _counted = counted;
            run();
        };
        thread::Builder::new().name(name.into()).spawn(run).map(drop)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn no_thread_is_started_beyond_the_limit_before_another_has_ended() {
        let threads = ServerThreads::new(1);
        let (end, ended) = mpsc::channel::<()>();
        threads.spawn("spandrel-test", move || assert!(ended.recv().is_err())).unwrap();
        assert_eq!(threads.spawn("spandrel-test", || ()).unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        drop(end);
        while !threads.has_room_for(1) {
            thread::yield_now();
        }
        threads.spawn("spandrel-test", || ()).unwrap();
    }
}
