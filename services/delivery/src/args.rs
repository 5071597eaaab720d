//! The options by which the executables of channels bound queues and calls.

use std::time::Duration;

use crate::limits::PeerOptions;

/// The bounds of queues and of calls on peers, as options of a command line.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct DeliveryArgs {
    /// The events in the queue of a consumer that has no bound of its own; beyond it some are discarded
    #[arg(long, value_name = "EVENTS", default_value_t = 1_023, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    queue: u32,
    /// The memory for the events in all queues, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    memory: u32,
    /// The time limit of a call on a consumer or pull supplier, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=86_400_000))]
    peer_timeout: u32,
    /// The failed calls in a row after which a consumer or pull supplier is disconnected
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    max_failures: u32,
}

impl DeliveryArgs {
    /// The option `--queue`: the most events that wait for one consumer.
    #[must_use]
    pub fn queue_events(&self) -> usize {
        self.queue as usize
    }

    /// The option `--memory` in octets: the bound on the events of all queues together.
    #[must_use]
    pub fn octets(&self) -> usize {
        (self.memory as usize).saturating_mul(1 << 20)
    }

    /// The options `--peer-timeout` and `--max-failures`; the rest has defaults.
    #[must_use]
    pub fn peers(&self) -> PeerOptions {
        let timeout = Duration::from_millis(self.peer_timeout.into());
        PeerOptions { timeout, max_failures: self.max_failures, ..PeerOptions::default() }
    }
}
