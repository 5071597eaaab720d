//! The server's concurrency: which threads read requests, and which run them.

use std::{fmt, num::NonZero, str::FromStr, thread::available_parallelism};

/// Connections that have a thread of their own, unless something else is said.
const OWN_THREADS: usize = 64;
/// Requests that wait in the queue of a [`Concurrency::ThreadPool`], unless something else is said.
const QUEUE: usize = 1024;

/// Which threads read a server's requests, and which run them (`-ORBConcurrency`). Chosen once for each ORB.
///
/// In all of them idle connections that have no thread of their own cost no thread and no memory for reading.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Concurrency {
    /// One thread of the ORB does everything, one request after the other. Servants are called by nobody else, except for calls of the program on
    /// objects of its own ([`Collocation`](crate::Collocation)). One that waits for the reply to a call of its own serves others meanwhile,
    /// nested up to 64 deep; one that lasts keeps everybody else waiting. Written `reactive`.
    Reactive,
    /// Each connection has a thread of its own, which reads a request, runs it and answers: the shortest path there is. Connections beyond the
    /// limit are served as by [`LeaderFollowers`](Self::LeaderFollowers) with as many threads as are needed. The default, with 64 connections.
    /// Written `thread-per-connection:64`.
    ThreadPerConnection {
        /// Connections that have a thread of their own.
        limit: usize,
    },
    /// A few threads serve all connections: one waits for all of them and runs what comes right away, while another goes on waiting. One more
    /// system call for each request than with a thread of its own. Written `leader-followers` or `leader-followers:4`.
    LeaderFollowers {
        /// So many, at least one: while as many servants run, everybody else waits, except that those which wait for replies serve others
        /// meanwhile. `None`: as many as are needed; a servant that lasts has another thread in its stead.
        threads: Option<usize>,
    },
    /// One thread reads the requests of all connections into a queue, and others run them (half-sync/half-async). Requests of one
    /// connection run side by side, except that nothing overtakes a one-way that does not last. Two more changes of thread for each request than with
    /// `LeaderFollowers`; but a fixed number of servants at a time, and what waits for them is read, counted and bounded. Written `thread-pool:8`
    /// or `thread-pool:8:1024`.
    ThreadPool {
        /// Threads that run servants, at least one. Those which wait for replies serve others meanwhile.
        threads: usize,
        /// Requests that may wait, at least one; what happens beyond says [`OrbBuilder::queue_overflow`](crate::OrbBuilder::queue_overflow).
        queue: usize,
    },
}

/// What happens to requests that find the queue of a [`Concurrency::ThreadPool`] full (`-ORBQueueOverflow`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum QueueOverflow {
    /// They are not read before there is room, so that in the end their clients wait with writing (`wait`).
    #[default]
    Wait,
    /// They are answered with TRANSIENT at once (`refuse`).
    Refuse,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self::ThreadPerConnection { limit: OWN_THREADS }
    }
}

impl Concurrency {
    /// With numbers that can be meant.
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
            Self::ThreadPerConnection { limit } => limit,
            _ => 0,
        }
    }

    /// How many threads it names.
    pub(super) fn threads(self) -> usize {
        match self {
            Self::Reactive => 1,
            Self::ThreadPerConnection { limit } => limit,
            Self::LeaderFollowers { threads } => threads.unwrap_or(1),
            Self::ThreadPool { threads, .. } => threads.saturating_add(1),
        }
    }

    /// So many threads run the reactor and no more; otherwise as many as are needed.
    pub fn reactor_threads(self) -> Option<usize> {
        match self {
            Self::Reactive | Self::ThreadPool { .. } => Some(1),
            Self::ThreadPerConnection { .. } => None,
            Self::LeaderFollowers { threads } => threads,
        }
    }
}

impl fmt::Display for Concurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reactive => f.write_str("reactive"),
            Self::ThreadPerConnection { limit } => write!(f, "thread-per-connection:{limit}"),
            Self::LeaderFollowers { threads: None } => f.write_str("leader-followers"),
            Self::LeaderFollowers { threads: Some(threads) } => write!(f, "leader-followers:{threads}"),
            Self::ThreadPool { threads, queue } => write!(f, "thread-pool:{threads}:{queue}"),
        }
    }
}

/// What a concurrency strategy can be written as.
pub(crate) const SYNTAX: &str =
    "reactive, thread-per-connection[:CONNECTIONS], leader-followers[:THREADS] or thread-pool[:THREADS[:QUEUE]]";

/// A text names no concurrency strategy.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is no concurrency strategy: expected {SYNTAX}")]
pub struct ConcurrencyError(String);

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
            ("reactive", Concurrency::Reactive),
            ("thread-per-connection:3", Concurrency::ThreadPerConnection { limit: 3 }),
            ("leader-followers", Concurrency::LeaderFollowers { threads: None }),
            ("leader-followers:4", Concurrency::LeaderFollowers { threads: Some(4) }),
            ("thread-pool:8:16", Concurrency::ThreadPool { threads: 8, queue: 16 }),
        ] {
            assert_eq!(text.parse(), Ok(strategy));
            assert_eq!(strategy.to_string(), text);
        }
        assert_eq!("thread-per-connection".parse(), Ok(Concurrency::default()));
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
