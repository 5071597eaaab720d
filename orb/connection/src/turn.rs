//! The turn of one connection among those that a thread serves.

use std::time::Duration;

/// The most requests of a turn while other connections are ready.
const MOST_REQUESTS: u32 = 16;
/// The time after which a turn ends with the request that runs.
const MOST_TIME: Duration = Duration::from_micros(200);

/// The requests of one connection that a thread serves before it looks at the others: at most 16 while others are known
/// to be ready, and none more after 200 µs. The requests behind them are in memory, and are served in a later turn.
///
/// The time is that since the end of the first request, so that a turn of one request takes no look at the clock. A turn
/// of slow requests therefore has two.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    requests: u32,
}

impl Turn {
    /// Whether the turn ends, after a request, although further octets are in memory. `others_are_ready`: whether other
    /// connections are. `elapsed`: the time since the end of the first request.
    pub fn ends(&mut self, others_are_ready: bool, elapsed: impl FnOnce() -> Duration) -> bool {
        self.requests += 1;
        others_are_ready && self.requests >= MOST_REQUESTS || elapsed() >= MOST_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_after_16_requests_beside_others_and_after_200_microseconds_in_any_case() {
        let requests = |others_are_ready, microseconds_each: u64| {
            let mut turn = Turn::default();
            let ends = |request: &u64| {
                turn.ends(others_are_ready, || Duration::from_micros(microseconds_each * (request - 1)))
            };
            (1..10_000).find(ends)
        };
        assert_eq!(requests(true, 0), Some(16));
        assert_eq!(requests(false, 0), None);
        for others_are_ready in [true, false] {
            assert_eq!(requests(others_are_ready, 20), Some(11));
            assert_eq!(requests(others_are_ready, 20_000), Some(2));
        }
    }
}
