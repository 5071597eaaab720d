//! When a wait with a time-out has to end.

use std::time::Duration;

use spandrel_sync::time::Instant;

/// A moment in the future, or never.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    /// So long from now; never for `None`.
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        Self(timeout.map(|timeout| (Instant::now(), timeout)))
    }

    /// What is left of the time; `None` is for ever.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.0.map(|(start, timeout)| timeout.saturating_sub(Instant::now().saturating_duration_since(start)))
    }
}
