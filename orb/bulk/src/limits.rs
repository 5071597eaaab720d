//! Limits of the offering side.

use std::time::Duration;

/// The bounds on offers, connections and times of the side that makes offers.
#[derive(Clone, Copy, Debug)]
pub struct BulkLimits {
    /// The most offers at a time, waiting, running or just ended (default 1,024). Those that ended first make room for new
    /// ones.
    pub offers: usize,
    /// The most offers of one party that have not ended (default 512), known as for `connections_per_party`. Offers to
    /// [`OfferedTo::Anyone`](crate::OfferedTo::Anyone) are of no party.
    pub offers_per_party: usize,
    /// The most bulk connections at a time, each with a thread (default 64). Beyond it the oldest one without a greeting
    /// makes room for a new one.
    pub connections: usize,
    /// The most bulk connections of one party (default 16), known by its certificate, its user on this
    /// machine, or its address (of IPv6 its first 64 bits). Further ones are refused as `Busy`, so that other
    /// parties get a connection.
    pub connections_per_party: usize,
    /// The time for a TLS handshake and the greeting of a connection (default 10 s).
    pub greeting: Duration,
    /// The time for which a connection waits for a further transfer after the end of one (default 5 s), if the other party
    /// asks for that. Zero ends each connection with its transfer. Waiting connections make room as those without a
    /// greeting do.
    pub reuse: Duration,
    /// The longest time without progress in a connection (default 30 s).
    pub idle: Duration,
    /// The longest time of one connection (default an hour).
    pub total: Duration,
    /// The time for which an offer is valid, without a connection (default 60 s).
    pub valid_for: Duration,
    /// The most octets of one upload (default 1 TiB).
    pub upload: u64,
}

impl Default for BulkLimits {
    fn default() -> Self {
        Self {
            offers: 1024,
            offers_per_party: 512,
            connections: 64,
            connections_per_party: 16,
            greeting: Duration::from_secs(10),
            reuse: Duration::from_secs(5),
            idle: Duration::from_secs(30),
            total: Duration::from_secs(3600),
            valid_for: Duration::from_secs(60),
            upload: 1 << 40,
        }
    }
}
