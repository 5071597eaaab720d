//! The time limit of a script.

use std::time::{Duration, Instant};

use anyhow::anyhow;

/// The end of the time of a script (`--max-time`).
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimit {
    /// And the whole time.
    end: Option<(Instant, Duration)>,
    /// The time limit of a call.
    call: Duration,
}

impl TimeLimit {
    pub(super) fn new(limit: Option<Duration>, call: Duration) -> Self {
        Self { end: limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit))), call }
    }

    /// Whether the script has a limit.
    pub(super) fn is_set(self) -> bool {
        self.end.is_some()
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
        let Some((end, limit)) = self.end else { return Ok(None) };
        match end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            Some(left) => Ok(Some(left)),
            None => Err(anyhow!("the script did not end within {} (--max-time)", humantime::format_duration(limit))),
        }
    }
}
