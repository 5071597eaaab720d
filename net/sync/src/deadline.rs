//! The end of a wait in several steps.

use std::time::Duration;

use crate::time::Instant;

/// A time limit that began at some instant, or no limit.
///
/// It does not overflow: a limit beyond the range of the clock never passes. [`left`](Self::left) and
/// [`has_passed`](Self::has_passed) compute with a given time; [`remaining`](Self::remaining) and
/// [`is_over`](Self::is_over) read the clock, except without a limit.
///
/// ```
/// use std::time::Duration;
///
/// use spandrel_sync::time::{Deadline, Instant}; // spandrel::net::sync::time
///
/// let begin = Instant::now();
/// let deadline = Deadline::from_begin(begin, Duration::from_secs(5));
/// assert_eq!(deadline.left(begin + Duration::from_secs(2)), Some(Duration::from_secs(3)));
/// assert!(deadline.has_passed(begin + Duration::from_secs(5)));
/// assert_eq!(Deadline::NEVER.left(begin), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    /// No limit: such a wait ends only by its event.
    pub const NEVER: Self = Self(None);

    /// A limit that begins now; none for `None`, without reading the clock.
    #[must_use]
    #[inline]
    pub fn after(limit: impl Into<Option<Duration>>) -> Self {
        Self(limit.into().map(|limit| (Instant::now(), limit)))
    }

    /// A limit that began, or begins, at `begin`; none for `None`.
    #[must_use]
    #[inline]
    pub fn from_begin(begin: Instant, limit: impl Into<Option<Duration>>) -> Self {
        Self(limit.into().map(|limit| (begin, limit)))
    }

    /// The time left at `now`: zero once it has passed, `None` without a limit.
    #[must_use]
    #[inline]
    pub fn left(self, now: Instant) -> Option<Duration> {
        self.0.map(|(begin, limit)| limit.saturating_sub(now.saturating_duration_since(begin)))
    }

    /// Whether no time is left at `now`; never without a limit.
    #[must_use]
    #[inline]
    pub fn has_passed(self, now: Instant) -> bool {
        self.left(now) == Some(Duration::ZERO)
    }

    /// The time [left](Self::left) now.
    #[must_use]
    #[inline]
    pub fn remaining(self) -> Option<Duration> {
        if self.0.is_none() { None } else { self.left(Instant::now()) }
    }

    /// Whether it [has passed](Self::has_passed) by now.
    #[must_use]
    #[inline]
    pub fn is_over(self) -> bool {
        self.remaining() == Some(Duration::ZERO)
    }

    /// The whole limit, from its beginning to its end; `None` without one.
    #[must_use]
    #[inline]
    pub fn limit(self) -> Option<Duration> {
        self.0.map(|(_, limit)| limit)
    }

    /// The instant of the end; `None` without a limit, and if the clock does not reach the end.
    #[must_use]
    #[inline]
    pub fn end(self) -> Option<Instant> {
        self.0.and_then(|(begin, limit)| begin.checked_add(limit))
    }

    /// The one of two deadlines that ends first.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        match (self.end(), other.end()) {
            (Some(one), Some(another)) if another < one => other,
            (None, Some(_)) => other,
            (Some(_), _) => self,
            (None, None) => {
                if self.0.is_some() {
                    self
                } else {
                    other
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_time_left_follows_from_the_given_time() {
        let begin = Instant::now();
        let deadline = Deadline::from_begin(begin, SECOND * 3);
        assert_eq!(deadline.left(begin), Some(SECOND * 3));
        let later = Deadline::from_begin(begin + SECOND, SECOND * 3);
        assert_eq!(later.left(begin), Some(SECOND * 3), "before the beginning, all of it");
        assert_eq!(deadline.left(begin + SECOND), Some(SECOND * 2));
        assert_eq!(deadline.left(begin + SECOND * 9), Some(Duration::ZERO));
        assert!(!deadline.has_passed(begin + SECOND * 2) && deadline.has_passed(begin + SECOND * 3));
        assert_eq!((deadline.limit(), deadline.end()), (Some(SECOND * 3), Some(begin + SECOND * 3)));
    }

    #[test]
    fn a_limit_of_zero_is_over_and_the_longest_is_not() {
        assert!(Deadline::after(Duration::ZERO).is_over());
        let longest = Deadline::from_begin(Instant::now() + SECOND, Duration::MAX);
        assert!(!longest.is_over() && longest.remaining() > Some(Duration::MAX / 2));
        assert_eq!(longest.end(), None, "the clock does not reach it");
        for never in
            [Deadline::NEVER, Deadline::after(None::<Duration>), Deadline::from_begin(Instant::now(), None::<Duration>)]
        {
            assert_eq!((never.remaining(), never.limit(), never.end()), (None, None, None));
            assert!(!never.is_over() && !never.has_passed(Instant::now()));
        }
    }

    #[test]
    fn the_earlier_of_two_ends_first_whenever_they_began() {
        let begin = Instant::now();
        let late = Deadline::from_begin(begin, SECOND * 9);
        let soon = Deadline::from_begin(begin + SECOND, SECOND * 2);
        let endless = Deadline::from_begin(begin, Duration::MAX);
        for (one, other) in [(soon, late), (soon, Deadline::NEVER), (soon, endless)] {
            assert_eq!((one.earlier(other), other.earlier(one)), (soon, soon));
        }
        assert_eq!(Deadline::NEVER.earlier(endless), endless);
        assert_eq!(endless.earlier(Deadline::NEVER), endless);
        assert_eq!(Deadline::NEVER.earlier(Deadline::NEVER), Deadline::NEVER);
    }
}
