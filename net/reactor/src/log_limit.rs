//! Rate limit for log lines that peers can cause.

use std::{collections::HashMap, time::Duration};

use spandrel_sync::{Mutex, time::Instant};

/// Lines of one cause in one period.
const LINES: u64 = 10;
/// The time for which the lines of a cause are counted.
const PERIOD: Duration = Duration::from_secs(60);

/// Admits ten log lines of each cause in a minute, and counts the others.
///
/// ```
/// # use spandrel_reactor::{LogLimit, Unlogged};
/// # let (limit, peer) = (LogLimit::default(), "192.0.2.1");
/// if let Some(Unlogged(unlogged)) = limit.admit("refused") {
///     tracing::warn!(peer, unlogged, "refused");
/// }
/// ```
#[derive(Debug, Default)]
pub struct LogLimit(Mutex<HashMap<&'static str, Period>>);

/// The number of suppressed lines of the same cause since the last logged one; `None` if there are none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unlogged(pub Option<u64>);

#[derive(Debug)]
struct Period {
    begin: Instant,
    lines: u64,
    unlogged: u64,
}

impl LogLimit {
    /// Whether a line of this cause is to be logged.
    pub fn admit(&self, cause: &'static str) -> Option<Unlogged> {
        self.admit_at(cause, Instant::now())
    }

    fn admit_at(&self, cause: &'static str, now: Instant) -> Option<Unlogged> {
        let mut periods = self.0.lock();
        let period = periods.entry(cause).or_insert(Period { begin: now, lines: 0, unlogged: 0 });
        if now.saturating_duration_since(period.begin) >= PERIOD {
            (period.begin, period.lines) = (now, 0);
        }
        if period.lines >= LINES {
            period.unlogged += 1;
            return None;
        }
        period.lines += 1;
        let unlogged = std::mem::take(&mut period.unlogged);
        Some(Unlogged((unlogged > 0).then_some(unlogged)))
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_per_cause_and_minute_are_logged_and_others_counted() {
        let (limit, begin) = (LogLimit::default(), Instant::now());
        let admitted = (0..1000).filter(|_| limit.admit_at("one", begin).is_some()).count();
        assert_eq!(admitted, 10);
        assert_eq!(limit.admit_at("another", begin), Some(Unlogged(None)));
        let later = begin + PERIOD;
        assert_eq!(limit.admit_at("one", later), Some(Unlogged(Some(990))));
        assert_eq!(limit.admit_at("one", later), Some(Unlogged(None)));
    }
}
