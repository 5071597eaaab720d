//! The deadline of a wait with a timeout.

use std::time::Duration;

use spandrel_sync::time::Instant;

/// An instant in the future, or never.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    /// The timeout from now; never for `None`.
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        Self(timeout.map(|timeout| (Instant::now(), timeout)))
    }

    /// The time left; `None` if there is no limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.0.map(|(start, timeout)| timeout.saturating_sub(Instant::now().saturating_duration_since(start)))
    }
}
