//! The end of a run by a signal: the sample that is being taken is given up, and its server and loads are ended.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use spandrel::net::reactor::{TerminationHandler, on_termination};

/// Whether the user or the system has requested the end of the run (SIGINT, SIGTERM).
#[derive(Debug, Default)]
pub(super) struct Interruption {
    is_requested: Mutex<bool>,
    request: Condvar,
}

impl Interruption {
    /// Handles the first request while the handler exists. The second one ends the process at once.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn handled() -> anyhow::Result<(Arc<Self>, TerminationHandler)> {
        let this = Arc::new(Self::default());
        let handling = Arc::clone(&this);
        let handler = on_termination(move |request| {
            let is_first = handling.request();
            if is_first {
                eprintln!("{request}: the present sample is given up; another signal ends the run at once");
            }
            is_first
        });
        Ok((this, handler.context("cannot handle signals")?))
    }

    /// Requests the end; whether this is the first request.
    fn request(&self) -> bool {
        let mut is_requested = self.is_requested.lock().unwrap_or_else(PoisonError::into_inner);
        self.request.notify_all();
        !std::mem::replace(&mut *is_requested, true)
    }

    pub(super) fn is_requested(&self) -> bool {
        *self.is_requested.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for this time, or until the end is requested.
    pub(super) fn wait(&self, time: Duration) {
        let is_requested = self.is_requested.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.request.wait_timeout_while(is_requested, time, |is_requested| !*is_requested));
    }
}
