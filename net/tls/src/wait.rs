//! How long a transfer may wait.

use std::io;
use std::time::Duration;

use spandrel_sync::time::Instant;

/// A moment in the future, or never.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) const NEVER: Self = Self(None);

    /// So long from now; what the clock does not reach is never.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self(Instant::now().checked_add(timeout))
    }

    /// What is left of the time; `None` is for ever.
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

/// How long a transfer may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// Not at all.
    No,
    /// Until then, for which the stream below is set up: its own time-out, begun now, ends at that moment.
    AsSet(Deadline),
    /// Until then.
    Until(Deadline),
}

impl Wait {
    pub(crate) fn within(timeout: Duration) -> Self {
        Self::Until(Deadline::after(timeout))
    }

    pub(crate) fn is_patient(self) -> bool {
        !matches!(self, Self::No)
    }

    /// As this, but not beyond `deadline`.
    pub(crate) fn not_beyond(self, deadline: Deadline) -> Self {
        match self {
            Self::No => Self::No,
            Self::AsSet(own) | Self::Until(own) => Self::Until(own.earlier(deadline)),
        }
    }

    /// As this, after some of the time was used: the stream below would begin its own time-out anew.
    pub(crate) fn begun(self) -> Self {
        self.not_beyond(Deadline::NEVER)
    }

    /// What is left of the time; `None` is for ever.
    ///
    /// # Errors
    /// The one with which the transfer ends if it may not wait, or no longer.
    pub(crate) fn left(self) -> io::Result<Option<Duration>> {
        match self {
            Self::No => Err(io::ErrorKind::WouldBlock.into()),
            Self::AsSet(deadline) | Self::Until(deadline) => match deadline.left() {
                Some(Duration::ZERO) => Err(io::ErrorKind::TimedOut.into()),
                left => Ok(left),
            },
        }
    }
}

/// How long a peer is waited for where nobody has set a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) handshake: Duration,
    pub(crate) close: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_of_two_moments_counts_and_never_is_the_latest() {
        let soon = Deadline::after(Duration::from_secs(1));
        let late = Deadline::after(Duration::from_secs(1000));
        for (one, other) in [(soon, late), (late, soon), (soon, Deadline::NEVER), (Deadline::NEVER, soon)] {
            assert!(one.earlier(other).left().unwrap() <= Duration::from_secs(1));
        }
        assert_eq!(Deadline::NEVER.earlier(Deadline::NEVER).left(), None);
        assert!(!Deadline::after(Duration::MAX).is_over());
    }

    #[test]
    fn what_is_over_is_told_as_what_it_was() {
        assert_eq!(Wait::No.left().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(Wait::within(Duration::ZERO).left().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(Wait::Until(Deadline::NEVER).left().unwrap(), None);
        assert!(matches!(Wait::No.not_beyond(Deadline::after(Duration::ZERO)), Wait::No));
        assert!(matches!(Wait::AsSet(Deadline::NEVER).begun(), Wait::Until(_)));
    }
}
