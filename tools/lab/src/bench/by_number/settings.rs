//! Settings of a series, and their validation.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spandrel_measure::units::grouped;

use super::series::Experiment;
use crate::LabError;
use crate::placement::Placement;

/// The longest processor time of an upcall in microseconds.
const MAX_WORK_MICROS: u32 = 1_000_000;

/// Settings of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings<C> {
    /// The placements, one series each: the load is the transmitter, the server the receiver.
    pub placements: Vec<Placement>,
    /// The numbers of connections or of calls in flight, in the order of the report.
    pub numbers: Vec<u32>,
    /// The contenders, in the order of the report.
    pub contenders: Vec<C>,
    /// The duration of a run.
    pub run_millis: u64,
    /// The number of rounds.
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
    /// Validates the settings.
    ///
    /// # Errors
    /// If a list is empty, or a number out of range.
    pub fn check<E: Experiment<Contender = C>>(&self) -> Result<(), LabError> {
        let refuse = |reason: String| Err(LabError::Settings(reason));
        if self.placements.is_empty() || self.numbers.is_empty() || self.contenders.is_empty() {
            return refuse("nothing to run: there must be a placement, a number and a contender".to_owned());
        }
        if self.rounds == 0 || self.run_millis == 0 || self.limit_seconds == 0 {
            return refuse("nothing to run: rounds, milliseconds and the time limit must be above zero".to_owned());
        }
        if let Some(number) = self.numbers.iter().find(|number| !(1..=E::MOST).contains(*number)) {
            let most = grouped(E::MOST.into());
            return refuse(format!("the number of {} must be between 1 and {most}, not {number}", E::UNIT));
        }
        if self.work_micros > MAX_WORK_MICROS {
            let most = grouped(MAX_WORK_MICROS.into());
            return refuse(format!("a servant computes for up to {most} µs, not {}", self.work_micros));
        }
        Ok(())
    }

    pub(in crate::bench) fn run_time(&self) -> Duration {
        Duration::from_millis(self.run_millis)
    }

    pub(in crate::bench) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_seconds.into())
    }
}
