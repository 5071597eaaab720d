//! The server's concurrency: which threads read requests, and which run them.
//!
//! This module has the setting. The crate of the server side carries it out (`reactor_pool`, `queue`, `listener`).

use std::{fmt, num::NonZero, str::FromStr, thread::available_parallelism};

/// The default number of connections that have a thread of their own.
const OWN_THREADS: usize = 64;
/// The default number of requests that may wait in the queue of a [`Concurrency::ThreadPool`].
const QUEUE: usize = 1024;

/// The threads that read and run a server's requests (`-ORBConcurrency`). Chosen once for each ORB.
///
/// With all strategies, idle connections without a thread of their own cost no thread and no memory for
/// reading.
///
/// ```
/// # mod options { pub use spandrel_orb::Concurrency; }
/// use options::Concurrency; // of spandrel
///
/// let strategy: Concurrency = "leader-followers:4".parse()?;
/// assert_eq!(strategy, Concurrency::LeaderFollowers { threads: Some(4) });
/// # Ok::<(), spandrel_orb::ConcurrencyError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Concurrency {
    /// One thread of the ORB reads and runs all requests, one after the other. Written `reactive`.
    ///
    /// No other thread calls servants, except for calls of the program on its own objects
    /// ([`Collocation`](crate::Collocation)). While a servant waits for the reply to a call of its own, the
    /// thread serves other requests, nested up to 64 deep. A long upcall delays all other requests.
    Reactive,
    /// As [`ThreadPerConnection`](Self::ThreadPerConnection) while few connections are busy, and as
    /// [`LeaderFollowers`](Self::LeaderFollowers) with as many threads as are needed while many are. The default, with
    /// at most 64 threads of connections. Written `adaptive` or `adaptive:64`.
    ///
    /// The server looks at its connections some 35 times a second. If more than twice as many as there are processors
    /// make many calls, or more than the limit make any, the connections move to the shared threads. They get threads
    /// of their own again when no more than there are processors have been busy for a second. Nothing but the thread
    /// that runs a request changes.
    Adaptive {
        /// The most connections with a thread of their own.
        limit: usize,
    },
    /// Each connection has a thread of its own, which reads a request, runs it and sends the reply. This is
    /// the shortest path of a request. Written `thread-per-connection:64`.
    ///
    /// Connections beyond the limit are served as by [`LeaderFollowers`](Self::LeaderFollowers) with as many
    /// threads as are needed.
    ThreadPerConnection {
        /// Connections that have a thread of their own.
        limit: usize,
    },
    /// A few threads serve all connections. One waits for input on all of them and runs the next request
    /// itself, while another goes on waiting. Written `leader-followers` or `leader-followers:4`.
    ///
    /// Each request costs one more system call than with a thread per connection.
    LeaderFollowers {
        /// The number of threads, at least one. While as many servants run, other requests wait; a servant
        /// that waits for a reply has its thread serve them meanwhile. `None`: as many as are needed; the
        /// thread of a long upcall is replaced.
        threads: Option<usize>,
    },
    /// One thread reads the requests of all connections into a queue, and others run them
    /// (half-sync/half-async). Written `thread-pool:8` or `thread-pool:8:1024`.
    ///
    /// Requests of one connection run side by side, but none overtakes a one-way that does not last. Each
    /// request costs two more changes of thread than with `LeaderFollowers`. In return, a fixed number of
    /// servants run at a time, and the requests that wait for them are read, counted and bounded.
    ThreadPool {
        /// Threads that run servants, at least one. Threads that wait for replies serve other requests
        /// meanwhile.
        threads: usize,
        /// Requests that may wait, at least one.
        /// [`OrbBuilder::queue_overflow`](crate::OrbBuilder::queue_overflow) decides about further ones.
        queue: usize,
    },
}

/// The treatment of requests for which the queue of a [`Concurrency::ThreadPool`] has no room
/// (`-ORBQueueOverflow`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum QueueOverflow {
    /// They are not read before there is room, so that clients with many requests wait in their writes
    /// (`wait`).
    #[default]
    Wait,
    /// They are answered with TRANSIENT at once (`refuse`).
    Refuse,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self::Adaptive { limit: OWN_THREADS }
    }
}

impl Concurrency {
    /// The same strategy with all numbers at least one, where zero has no meaning.
    pub(crate) fn at_least_one(self) -> Self {
        match self {
            Self::LeaderFollowers { threads } => {
                Self::LeaderFollowers { threads: threads.map(|threads| threads.max(1)) }
            }
            Self::ThreadPool { threads, queue } => Self::ThreadPool { threads: threads.max(1), queue: queue.max(1) },
            other => other,
        }
    }

    /// Connections that have a thread of their own.
    pub fn own_threads(self) -> usize {
        match self {
            Self::Adaptive { limit } | Self::ThreadPerConnection { limit } => limit,
            _ => 0,
        }
    }

    /// The number of threads that the strategy implies; one where it sets none.
    pub(super) fn threads(self) -> usize {
        match self {
            Self::Reactive => 1,
            Self::Adaptive { limit } | Self::ThreadPerConnection { limit } => limit,
            Self::LeaderFollowers { threads } => threads.unwrap_or(1),
            Self::ThreadPool { threads, .. } => threads.saturating_add(1),
        }
    }

    /// The fixed number of threads that run the reactor. `None`: as many as are needed.
    pub fn reactor_threads(self) -> Option<usize> {
        match self {
            Self::Reactive | Self::ThreadPool { .. } => Some(1),
            Self::Adaptive { .. } | Self::ThreadPerConnection { .. } => None,
            Self::LeaderFollowers { threads } => threads,
        }
    }
}

impl fmt::Display for Concurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reactive => f.write_str("reactive"),
            Self::Adaptive { limit } => write!(f, "adaptive:{limit}"),
            Self::ThreadPerConnection { limit } => write!(f, "thread-per-connection:{limit}"),
            Self::LeaderFollowers { threads: None } => f.write_str("leader-followers"),
            Self::LeaderFollowers { threads: Some(threads) } => write!(f, "leader-followers:{threads}"),
            Self::ThreadPool { threads, queue } => write!(f, "thread-pool:{threads}:{queue}"),
        }
    }
}

/// The texts that name a concurrency strategy.
pub(crate) const SYNTAX: &str = "adaptive[:CONNECTIONS], reactive, thread-per-connection[:CONNECTIONS], leader-followers[:THREADS] or thread-pool[:THREADS[:QUEUE]]";

/// The error of a text that names no concurrency strategy.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is no concurrency strategy: expected {SYNTAX}")]
pub struct ConcurrencyError(String);
spandrel_error::debug_as_report!(ConcurrencyError);

impl FromStr for Concurrency {
    type Err = ConcurrencyError;

    fn from_str(text: &str) -> Result<Self, ConcurrencyError> {
        parse(text).ok_or_else(|| ConcurrencyError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Concurrency> {
    let mut parts = text.split(':');
    let name = parts.next()?;
    let mut number = || parts.next().map(|part| part.parse::<usize>().ok()).map_or(Some(None), |part| part.map(Some));
    let positive = |count: usize| NonZero::new(count).map(NonZero::get);
    let chosen = match name {
        "adaptive" => Concurrency::Adaptive { limit: number()?.unwrap_or(OWN_THREADS) },
        "reactive" => Concurrency::Reactive,
        "thread-per-connection" => Concurrency::ThreadPerConnection { limit: number()?.unwrap_or(OWN_THREADS) },
        "leader-followers" => match number()? {
            Some(threads) => Concurrency::LeaderFollowers { threads: Some(positive(threads)?) },
            None => Concurrency::LeaderFollowers { threads: None },
        },
        "thread-pool" => {
            let threads = number()?.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
            Concurrency::ThreadPool { threads: positive(threads)?, queue: positive(number()?.unwrap_or(QUEUE))? }
        }
        _ => return None,
    };
    parts.next().is_none().then_some(chosen)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_read_as_they_are_written() {
        for (text, strategy) in [
            ("adaptive:3", Concurrency::Adaptive { limit: 3 }),
            ("reactive", Concurrency::Reactive),
            ("thread-per-connection:3", Concurrency::ThreadPerConnection { limit: 3 }),
            ("leader-followers", Concurrency::LeaderFollowers { threads: None }),
            ("leader-followers:4", Concurrency::LeaderFollowers { threads: Some(4) }),
            ("thread-pool:8:16", Concurrency::ThreadPool { threads: 8, queue: 16 }),
        ] {
            assert_eq!(text.parse(), Ok(strategy));
            assert_eq!(strategy.to_string(), text);
        }
        assert_eq!("adaptive".parse(), Ok(Concurrency::default()));
        assert_eq!("thread-per-connection".parse(), Ok(Concurrency::ThreadPerConnection { limit: OWN_THREADS }));
        assert_eq!("thread-pool:8".parse(), Ok(Concurrency::ThreadPool { threads: 8, queue: QUEUE }));
    }

    #[test]
    fn unknown_strategies_are_refused() {
        for text in
            ["", "reactive:1", "thread-pool:0", "thread-pool:1:0", "leader-followers:0", "leader-followers:1:2", "pool"]
        {
            assert_eq!(text.parse::<Concurrency>(), Err(ConcurrencyError(text.to_owned())), "{text}");
        }
    }
}
