//! Time limits of transfers.

use std::io;
use std::time::Duration;

use spandrel_sync::time::Instant;

/// An instant in the future, or never.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) const NEVER: Self = Self(None);

    /// The timeout from now; never if the clock does not reach it.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self(Instant::now().checked_add(timeout))
    }

    /// The time left; `None` without a limit.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0.map(|end| end.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn is_over(self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    pub(crate) fn earlier(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(one), Some(another)) => Self(Some(one.min(another))),
            (one, another) => Self(one.or(another)),
        }
    }
}

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
            Self::Configured(deadline) | Self::Until(deadline) => match deadline.left() {
                Some(Duration::ZERO) => Err(io::ErrorKind::TimedOut.into()),
                left => Ok(left),
            },
        }
    }
}

/// The timeouts of a family.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) handshake: Duration,
    pub(crate) close: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_deadline_wins_and_never_is_the_latest() {
        let soon = Deadline::after(Duration::from_secs(1));
        let late = Deadline::after(Duration::from_secs(1000));
        for (one, other) in [(soon, late), (late, soon), (soon, Deadline::NEVER), (Deadline::NEVER, soon)] {
            assert!(one.earlier(other).left().unwrap() <= Duration::from_secs(1));
        }
        assert_eq!(Deadline::NEVER.earlier(Deadline::NEVER).left(), None);
        assert!(!Deadline::after(Duration::MAX).is_over());
    }

    #[test]
    fn an_expired_wait_reports_its_own_error() {
        assert_eq!(Wait::No.left().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(Wait::within(Duration::ZERO).left().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(Wait::Until(Deadline::NEVER).left().unwrap(), None);
        assert!(matches!(Wait::No.not_beyond(Deadline::after(Duration::ZERO)), Wait::No));
        assert!(matches!(Wait::Configured(Deadline::NEVER).started(), Wait::Until(_)));
    }
}
