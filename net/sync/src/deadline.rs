//! The instant at which a wait in several steps times out.

use std::time::Duration;

use crate::time::Instant;

/// None if it is so far away that the clock does not reach it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) fn after(timeout: Duration) -> Self {
        Self(Instant::now().checked_add(timeout))
    }

    /// The time left; zero once the deadline has passed.
    pub(crate) fn remaining(self) -> Duration {
        self.0.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()))
    }
}
