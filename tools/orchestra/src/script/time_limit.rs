//! The time limit of a script.

use std::time::Duration;

use anyhow::bail;
use spandrel::net::sync::time::Deadline;

/// The end of the time of a script (`--max-time`).
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimit {
    script: Deadline,
    /// The time limit of a call.
    call: Duration,
}

impl TimeLimit {
    pub(super) fn new(limit: Option<Duration>, call: Duration) -> Self {
        Self { script: Deadline::after(limit), call }
    }

    /// Whether the script has a limit.
    pub(super) fn is_set(self) -> bool {
        self.script.limit().is_some()
    }

    /// The time that is left for a call; `None` without a limit of the script.
    ///
    /// # Errors
    /// The time is over.
    pub(super) fn left_for_call(self) -> anyhow::Result<Option<Duration>> {
        Ok(self.left()?.map(|left| left.min(self.call)))
    }

    /// The time that is left; `None` without a limit.
    ///
    /// # Errors
    /// The time is over.
    pub(super) fn left(self) -> anyhow::Result<Option<Duration>> {
        let left = self.script.remaining();
        if left == Some(Duration::ZERO) {
            let limit = humantime::format_duration(self.script.limit().unwrap_or_default());
            bail!("the script did not end within {limit} (--max-time)");
        }
        Ok(left)
    }
}
