//! Time limits of transfers.

use std::io;
use std::time::Duration;

use spandrel_sync::time::Deadline;

/// The time limit of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// Returns `WouldBlock` in place of a wait.
    No,
    /// Until the deadline at which the underlying stream's own timeout, started now, ends.
    Configured(Deadline),
    /// Waits until the deadline at most.
    Until(Deadline),
}

impl Wait {
    pub(crate) fn within(timeout: Duration) -> Self {
        Self::Until(Deadline::after(timeout))
    }

    pub(crate) fn may_wait(self) -> bool {
        !matches!(self, Self::No)
    }

    /// This limit, but at most until `deadline`.
    pub(crate) fn not_beyond(self, deadline: Deadline) -> Self {
        match self {
            Self::No => Self::No,
            Self::Configured(own) | Self::Until(own) => Self::Until(own.earlier(deadline)),
        }
    }

    /// This limit, after some of the time was used: the underlying stream would restart its own timeout.
    pub(crate) fn started(self) -> Self {
        self.not_beyond(Deadline::NEVER)
    }

    /// The time left; `None` without a limit.
    ///
    /// # Errors
    /// The error with which the transfer ends if it may not wait, or no longer.
    pub(crate) fn left(self) -> io::Result<Option<Duration>> {
        match self {
            Self::No => Err(io::ErrorKind::WouldBlock.into()),
            Self::Configured(deadline) | Self::Until(deadline) => match deadline.remaining() {
                Some(Duration::ZERO) => Err(io::ErrorKind::TimedOut.into()),
                left => Ok(left),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expired_wait_reports_its_own_error() {
        assert_eq!(Wait::No.left().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(Wait::within(Duration::ZERO).left().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(Wait::Until(Deadline::NEVER).left().unwrap(), None);
        assert!(matches!(Wait::No.not_beyond(Deadline::after(Duration::ZERO)), Wait::No));
        assert!(matches!(Wait::Configured(Deadline::NEVER).started(), Wait::Until(_)));
    }
}
