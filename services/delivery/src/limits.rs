//! The treatment of peers that fail or are slow.

use std::time::Duration;

/// The time limit of calls on consumers and suppliers, and the failures after which they are disconnected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerOptions {
    /// The time limit of a call on a peer (default 10 seconds).
    pub timeout: Duration,
    /// The failures in a row after which a peer is disconnected (default 10).
    pub max_failures: u32,
    /// The pause after the first failure (default 50 ms). Each further failure doubles it, up to 100 times.
    pub retry_pause: Duration,
    /// Whether pull suppliers are called with `pull`, which waits for an event; else with `try_pull`, in the interval of
    /// the channel (default).
    pub blocking_pull: bool,
}

impl Default for PeerOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            max_failures: 10,
            retry_pause: Duration::from_millis(50),
            blocking_pull: false,
        }
    }
}

impl PeerOptions {
    /// The pause before the next call, after this many failures in a row (at least one).
    #[must_use]
    pub fn pause(&self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(100).min(100);
        self.retry_pause.saturating_mul(factor)
    }
}
