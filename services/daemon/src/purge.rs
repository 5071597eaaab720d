//! Removal of entries whose object does not exist any more, by a thread of the service.

use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use spandrel::{ObjectRef, SystemExceptionKind};

/// The pace at which entries of objects that do not exist any more are removed, and the rule for unreachable
/// ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PurgeOptions {
    /// The time from the end of a round to the begin of the next one.
    pub interval: Duration,
    /// Whether entries of unreachable objects are removed, too (default: no, so that a server that is down for a while
    /// keeps its entries).
    pub removes_unreachable: bool,
    /// The time limit of the call on each object (default 5 seconds).
    pub timeout: Duration,
}

impl PurgeOptions {
    /// Removes entries in rounds with this pause, but not those of unreachable objects.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, removes_unreachable: false, timeout: Duration::from_secs(5) }
    }

    /// Whether the entries of an object are removed. Calls `_non_existent`.
    #[must_use]
    pub fn is_gone(&self, object: &ObjectRef) -> bool {
        use SystemExceptionKind::{CommFailure, NoResponse, Timeout, Transient};
        object.with_timeout(Some(self.timeout)).non_existent().unwrap_or_else(|exception| {
            let is_unreachable = matches!(exception.kind(), CommFailure | NoResponse | Timeout | Transient);
            self.removes_unreachable && is_unreachable
        })
    }
}

/// The thread that removes entries. It ends when this is dropped, after the call that it waits for.
#[derive(Debug)]
pub struct Purger {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Tells a round in progress whether the service ends.
#[derive(Debug)]
pub struct PurgeStop(mpsc::Receiver<()>);

impl PurgeStop {
    /// Whether the round ends at the next entry.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.is_requested_within(Duration::ZERO)
    }

    fn is_requested_within(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) != Err(mpsc::RecvTimeoutError::Timeout)
    }
}

impl Purger {
    /// Runs a round after each interval. A round visits all entries, and returns the number of removed ones.
    /// `entries` is their name in the log.
    ///
    /// # Panics
    /// If the system has no more threads.
    pub fn start<E: fmt::Display>(
        entries: &'static str,
        interval: Duration,
        mut round: impl FnMut(&PurgeStop) -> Result<usize, E> + Send + 'static,
    ) -> Self {
        let (stop, stopped) = mpsc::channel();
        let stopped = PurgeStop(stopped);
        let rounds = move || {
            while !stopped.is_requested_within(interval) {
                match round(&stopped) {
                    Ok(0) => {}
                    Ok(removed) => tracing::info!(removed, "{entries} of objects that do not exist were removed"),
                    Err(error) => tracing::warn!(%error, "the removal of {entries} ended early"),
                }
            }
        };
        let thread = thread::Builder::new().name("spandrel-purge".to_owned()).spawn(rounds);
        let thread = thread.expect("the system has a thread left");
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Purger {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}
