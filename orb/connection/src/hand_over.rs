//! The age of a long upcall at which another thread takes over the reading of its connection.

use std::time::Duration;

/// The times of the hand-over of reading. Models have none: there, each upcall that is found is old enough.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HandOverTimes {
    /// The age of an upcall at which reading is handed over while the replies of all running requests may
    /// exceed a memory limit.
    pub short_of_memory: Duration,
    /// The age of an upcall at which a client gets its first further thread, while it has taken fewer replies
    /// than it has requests running. It grows with the square of their number.
    pub slow_start: Duration,
    /// The bound on the growth of `slow_start`.
    pub longest_slow_start: Duration,
}

impl HandOverTimes {
    /// Reading is handed over as soon as an upcall is found to be long.
    pub const NONE: Self =
        Self { short_of_memory: Duration::ZERO, slow_start: Duration::ZERO, longest_slow_start: Duration::ZERO };
}

impl Default for HandOverTimes {
    fn default() -> Self {
        Self {
            short_of_memory: Duration::from_millis(100),
            slow_start: Duration::from_millis(2),
            longest_slow_start: Duration::from_millis(64),
        }
    }
}

/// The requests and the memory of a connection and its server at the time of a hand-over.
#[derive(Clone, Copy, Debug)]
pub struct HandOverLoad {
    /// The requests of the connection that run, with the one that keeps the reading.
    pub running: u32,
    /// The requests of the connection that have begun.
    pub begun_requests: u64,
    /// The octets of the longest recent reply of the server.
    pub longest_reply: usize,
    /// The octets that the connection may use.
    pub connection_limit: usize,
    /// The threads of the server, idle ones included.
    pub threads: usize,
    /// The octets that all connections of the server use at present.
    pub octets_in_use: usize,
    /// The octets that all connections may use.
    pub server_limit: usize,
}

impl HandOverLoad {
    /// The age of an upcall at which another thread reads on. Normally zero: as soon as the monitor finds the
    /// upcall.
    ///
    /// A client that has not yet shown that it takes replies gets further threads more and more slowly. The
    /// first reply that it does not take ends this.
    ///
    /// The age is [`short_of_memory`](HandOverTimes::short_of_memory) where the replies of all threads could exceed half
    /// of a memory limit. The estimate is that none is taken, and that each is as long as the longest recent one. Half,
    /// because each reply exists twice for a moment: as the servant's result and as the copy that is kept.
    #[must_use]
    pub fn delay(&self, times: &HandOverTimes) -> Duration {
        let (longest, running) = (self.longest_reply, u64::from(self.running));
        let of_connection = longest.saturating_mul(self.running as usize + 1);
        let of_all = longest.saturating_mul(self.threads).saturating_add(self.octets_in_use);
        let exceeds_server = longest > 0 && of_all > self.server_limit / 2;
        if of_connection > self.connection_limit / 2 || exceeds_server {
            times.short_of_memory
        } else if self.begun_requests.saturating_sub(running) >= running {
            Duration::ZERO
        } else {
            let squared = self.running.saturating_mul(self.running);
            times.slow_start.saturating_mul(squared).min(times.longest_slow_start)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: HandOverLoad = HandOverLoad {
        running: 1,
        begun_requests: 100,
        longest_reply: 0,
        connection_limit: 1000,
        threads: 10,
        octets_in_use: 0,
        server_limit: 10_000,
    };

    fn milliseconds(load: HandOverLoad) -> u128 {
        load.delay(&HandOverTimes::default()).as_millis()
    }

    #[test]
    fn a_client_that_takes_its_replies_gets_further_threads_at_once() {
        assert_eq!(milliseconds(QUIET), 0);
        // The requests that run have not shown whether it takes their replies.
        let delays = [2, 3, 4].map(|begun_requests| milliseconds(HandOverLoad { running: 2, begun_requests, ..QUIET }));
        assert_eq!(delays, [8, 8, 0]);
    }

    #[test]
    fn a_client_that_has_taken_no_reply_gets_further_threads_more_and_more_slowly() {
        let delays =
            [1, 2, 3, 5, 6, u32::MAX].map(|running| milliseconds(HandOverLoad { running, begun_requests: 1, ..QUIET }));
        assert_eq!(delays, [2, 8, 18, 50, 64, 64]);
    }

    #[test]
    fn replies_that_could_exceed_half_of_a_limit_delay_the_hand_over() {
        let of_connection =
            |longest_reply| milliseconds(HandOverLoad { longest_reply, server_limit: 1 << 20, ..QUIET });
        assert_eq!([250, 251].map(of_connection), [0, 100]);
        let of_server = |octets_in_use| milliseconds(HandOverLoad { longest_reply: 200, octets_in_use, ..QUIET });
        assert_eq!([3000, 3001].map(of_server), [0, 100]);
        // Memory without replies belongs to requests, which further threads do not add to.
        assert_eq!(milliseconds(HandOverLoad { octets_in_use: usize::MAX, ..QUIET }), 0);
        let huge = HandOverLoad { longest_reply: usize::MAX, running: u32::MAX, ..QUIET };
        assert_eq!(milliseconds(huge), 100);
    }

    #[test]
    fn models_hand_over_at_any_age() {
        let loads = [QUIET, HandOverLoad { begun_requests: 1, ..QUIET }, HandOverLoad { longest_reply: 5000, ..QUIET }];
        assert_eq!(loads.map(|load| load.delay(&HandOverTimes::NONE)), [Duration::ZERO; 3]);
    }
}
