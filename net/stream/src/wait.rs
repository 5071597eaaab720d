//! Time limits of calls that may wait.

use std::time::Duration;

use spandrel_sync::time::Deadline;

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

/// The end of a wait.
#[derive(Clone, Copy, Debug)]
pub enum WaitEnd {
    /// The wait does not begin; the clock is not read.
    Now,
    /// At the deadline.
    At(Deadline),
}

impl Wait {
    /// The end of a wait that begins now.
    pub(crate) fn end(self) -> WaitEnd {
        match self {
            Self::Never => WaitEnd::Now,
            Self::For(time) => WaitEnd::At(Deadline::after(time)),
            Self::Forever => WaitEnd::At(Deadline::NEVER),
        }
    }
}
