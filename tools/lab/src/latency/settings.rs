//! Settings of a series, and their validation.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::contender::Contender;
use crate::LabError;
use crate::placement::Placement;
use crate::workload::PingCase;

/// The configurations to measure, and the number and length of their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The placements, one series each.
    pub placements: Vec<Placement>,
    /// The parameters of calls.
    pub cases: Vec<PingCase>,
    /// The contenders, in the order of the report.
    pub contenders: Vec<Contender>,
    /// Timed calls per round; a twentieth as many precede them as warm-up.
    pub calls: u32,
    /// The runs of each configuration; they take turns with those of the others.
    pub rounds: u32,
    /// The control address of a running receiver, instead of one of our own.
    pub remote: Option<String>,
    /// The folder with omniORB's programs, if it is not where the source tree builds them.
    pub omniorb: Option<PathBuf>,
    /// The longest that one run may take, in seconds.
    pub limit_seconds: u64,
    /// After this many seconds no further round is begun.
    pub budget_seconds: Option<u64>,
}

impl Settings {
    /// Finds faults of the settings before anything is measured.
    ///
    /// # Errors
    /// If a list is empty or a number zero.
    pub fn check(&self) -> Result<(), LabError> {
        if self.placements.is_empty() || self.cases.is_empty() || self.contenders.is_empty() {
            return Err(LabError::Settings(
                "nothing to run: there must be a placement, a case and a mechanism".to_owned(),
            ));
        }
        if self.rounds == 0 || self.calls == 0 {
            return Err(LabError::Settings("nothing to run: rounds and calls must be above zero".to_owned()));
        }
        Ok(())
    }

    pub(super) fn warm_up(&self) -> u32 {
        self.calls / 20
    }

    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_seconds)
    }
}
