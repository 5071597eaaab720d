//! The rule by which a server's busy connections are served: each by a thread of its own, or all by shared threads.
//!
//! A thread of its own is the shortest path of a request. With many busy connections it is not: their threads wait for
//! processors, and connections without one get a small share of them. The rule knows no threads. Its owner looks at all
//! connections now and then, and moves them.

use std::time::Duration;

/// The calls in a millisecond from which on threads of their own cost more than they save.
const MANY_CALLS: u64 = 5;
/// The time for which few connections have to be busy before they get threads of their own again.
const CALM_TIME: Duration = Duration::from_secs(1);
/// The looks in a row that have to find many busy connections.
const LOOKS: u32 = 2;

/// The way in which busy connections are served.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ServiceMode {
    /// Each by a thread of its own.
    #[default]
    OwnThreads,
    /// All by threads that they share.
    SharedThreads,
}

/// The measure by which the service mode is chosen: the activity between two looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Busyness {
    /// The connections with calls since the look before.
    pub connections: usize,
    /// The calls since the look before.
    pub calls: u64,
}

/// The rule, and what it remembers of the looks before.
///
/// | | few are busy | between | many are busy |
/// | --- | --- | --- | --- |
/// | `OwnThreads` | stays | stays | `SharedThreads`, at the second look in a row |
/// | `SharedThreads` | `OwnThreads`, if so for a second | stays | stays |
///
/// Many are busy if they are more than may have threads, or more than twice the processors while they make many calls.
/// Few are busy if they are no more than the processors.
#[derive(Clone, Debug)]
pub struct ServiceModeRule {
    processors: usize,
    /// The most connections with a thread of their own.
    limit: usize,
    mode: ServiceMode,
    last: Option<Duration>,
    /// The looks in a row that have found many busy connections.
    many: u32,
    /// The first of the looks in a row that have found few.
    few_since: Option<Duration>,
}

impl ServiceModeRule {
    /// The rule for this number of processors, where at most `limit` connections may have threads of their own.
    #[must_use]
    pub fn new(processors: usize, limit: usize) -> Self {
        Self { processors, limit, mode: ServiceMode::default(), last: None, many: 0, few_since: None }
    }

    /// The mode after a look at `now`, a time since a fixed start.
    pub fn look(&mut self, now: Duration, look: Busyness) -> ServiceMode {
        let elapsed = self.last.replace(now).map(|last| now.saturating_sub(last));
        let milliseconds = elapsed.map_or(u64::MAX, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
        let makes_many_calls = look.calls >= milliseconds.max(1).saturating_mul(MANY_CALLS);
        let are_many = look.connections > self.limit || look.connections > 2 * self.processors && makes_many_calls;
        self.many = if are_many { self.many.saturating_add(1) } else { 0 };
        self.few_since = if look.connections <= self.processors { self.few_since.or(Some(now)) } else { None };
        let is_calm = self.few_since.is_some_and(|since| now.saturating_sub(since) >= CALM_TIME);
        self.mode = match self.mode {
            ServiceMode::OwnThreads if self.many >= LOOKS => ServiceMode::SharedThreads,
            ServiceMode::SharedThreads if is_calm => ServiceMode::OwnThreads,
            mode => mode,
        };
        self.mode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESSORS: usize = 2;
    const LIMIT: usize = 64;

    /// The modes after looks at intervals of 10 ms, which find these numbers of busy connections and of calls.
    fn modes(looks: impl IntoIterator<Item = (usize, u64)>) -> Vec<ServiceMode> {
        let mut rule = ServiceModeRule::new(PROCESSORS, LIMIT);
        let look = |(number, (connections, calls))| {
            rule.look(Duration::from_millis(10) * number, Busyness { connections, calls })
        };
        (0..).zip(looks).map(look).collect()
    }

    #[test]
    fn few_busy_connections_keep_threads_of_their_own() {
        for connections in 0..=2 * PROCESSORS {
            assert!(modes([(connections, 1_000_000); 300]).iter().all(|mode| *mode == ServiceMode::OwnThreads));
        }
    }

    #[test]
    fn many_busy_connections_share_threads_from_the_second_look_on() {
        use ServiceMode::{OwnThreads, SharedThreads};
        for busy in [(2 * PROCESSORS + 1, 10 * MANY_CALLS), (LIMIT + 1, 0)] {
            assert_eq!(modes([(0, 0), busy, busy, busy]), [OwnThreads, OwnThreads, SharedThreads, SharedThreads]);
            assert!(modes([busy, (0, 0)].repeat(50)).iter().all(|mode| *mode == OwnThreads), "never in a row");
        }
    }

    #[test]
    fn many_connections_with_few_calls_keep_threads_of_their_own() {
        let look = (LIMIT, 10 * MANY_CALLS - 1);
        assert!(modes([look; 300]).iter().all(|mode| *mode == ServiceMode::OwnThreads));
    }

    #[test]
    fn threads_are_shared_until_few_have_been_busy_for_a_second() {
        let many = [(LIMIT + 1, 10_000); 3];
        let with = |calm: &[(usize, u64)]| *modes(many.into_iter().chain(calm.iter().copied())).last().unwrap();
        assert_eq!(with(&[(PROCESSORS, 10_000); 100]), ServiceMode::SharedThreads, "990 ms");
        assert_eq!(with(&[(PROCESSORS, 10_000); 101]), ServiceMode::OwnThreads);
        assert_eq!(with(&[(PROCESSORS + 1, 0); 1_000]), ServiceMode::SharedThreads, "between the limits");
        let mut interrupted = [(0, 0); 101];
        interrupted[50] = (PROCESSORS + 1, 0);
        assert_eq!(with(&interrupted), ServiceMode::SharedThreads);
    }
}
