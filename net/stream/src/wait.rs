//! Time limits of calls that may wait.

use std::time::Duration;

use spandrel_sync::time::Instant;

/// How long an operation may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Returns at once in place of a wait.
    Never,
    /// For at most this time.
    For(Duration),
    /// Waits without a time limit.
    Forever,
}

/// The time at which a wait ends.
#[derive(Clone, Copy, Debug)]
pub enum WaitEnd {
    /// It does not begin.
    Now,
    At(Instant),
    Open,
}

impl Wait {
    /// The end of a wait that begins now.
    pub(crate) fn end(self) -> WaitEnd {
        match self {
            Self::Never => WaitEnd::Now,
            Self::For(time) => Instant::now().checked_add(time).map_or(WaitEnd::Open, WaitEnd::At),
            Self::Forever => WaitEnd::Open,
        }
    }
}
