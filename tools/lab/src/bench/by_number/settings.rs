//! Settings of a series.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::placement::Placement;

/// The configurations to measure, and the number and length of their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings<C> {
    /// The placements, one series each: the load is the transmitter, the server the receiver.
    pub placements: Vec<Placement>,
    /// The numbers of connections or of calls in flight, in the order of the report.
    pub numbers: Vec<u32>,
    /// The contenders, in the order of the report.
    pub contenders: Vec<C>,
    /// The duration of a run, in milliseconds.
    pub run_millis: u64,
    /// The runs of each configuration; they take turns with those of the others.
    pub rounds: u32,
    /// Processor time of each upcall in microseconds; zero for servants that answer at once.
    pub work_micros: u32,
    /// The folder with the plain C server, if it is not built from the source tree.
    pub peers: Option<PathBuf>,
    /// The folder with omniORB's programs, if it is not where the source tree builds them.
    pub omniorb: Option<PathBuf>,
    /// The folder with JacORB's programs, if it is not where the source tree builds them.
    pub jacorb: Option<PathBuf>,
    /// The longest response time of a server, in seconds.
    pub limit_seconds: u32,
    /// After this many seconds no further round is begun.
    pub budget_seconds: Option<u64>,
}

impl<C> Settings<C> {
    pub(in crate::bench) fn run_time(&self) -> Duration {
        Duration::from_millis(self.run_millis)
    }

    pub(in crate::bench) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_seconds.into())
    }
}
