//! What a series covers, and what it refuses to.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::contender::Contender;
use super::job::{Algorithm, Job, Style};
use crate::LabError;
use crate::placement::Placement;
use crate::workload::{CallKind, PingCase};

/// More servants than this are refused: references alone would take tens of gigabytes.
const MAX_SERVANTS: u32 = 10_000_000;

/// What the series covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Numbers of servants.
    pub servants: Vec<u32>,
    /// On which cores, one series each.
    pub placements: Vec<Placement>,
    /// Orders in which servants are called.
    pub algorithms: Vec<Algorithm>,
    /// One-way, two-way.
    pub calls: Vec<CallKind>,
    /// What calls carry.
    pub cases: Vec<PingCase>,
    /// By which interfaces.
    pub styles: Vec<Style>,
    /// Who takes part, in the order of the report.
    pub contenders: Vec<Contender>,
    /// Timed calls per round.
    pub calls_per_round: u32,
    /// How often each contender is run.
    pub rounds: u32,
    /// The folder with omniORB's programs, if it is not where the source tree builds them.
    pub omniorb: Option<PathBuf>,
    /// The folder with JacORB's programs, if it is not where the source tree builds them.
    pub jacorb: Option<PathBuf>,
    /// The longest that one run, or the start of a server with all its servants, may take, in seconds.
    pub limit_seconds: u64,
}

impl Settings {
    /// Refuses what cannot be run.
    ///
    /// # Errors
    /// If a list is empty or a number zero, or there would be too many servants.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |why: String| Err(LabError::Settings(why));
        if self.jobs().is_empty()
            || self.servants.is_empty()
            || self.placements.is_empty()
            || self.contenders.is_empty()
        {
            return refuse("nothing to run: a list of servants, placements, mechanisms or calls is empty".to_owned());
        }
        if self.rounds == 0 || self.calls_per_round == 0 {
            return refuse("nothing to run: rounds and calls must be above zero".to_owned());
        }
        match self.servants.iter().find(|servants| !(1..=MAX_SERVANTS).contains(*servants)) {
            Some(servants) => refuse(format!("{servants} servants cannot be had; 1 to {MAX_SERVANTS} can")),
            None => Ok(()),
        }
    }

    /// What is measured with each number of servants, in the order of the report.
    pub(super) fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        let (warm_up, calls) = (self.calls_per_round / 10, self.calls_per_round);
        for case in &self.cases {
            for call in &self.calls {
                for algorithm in &self.algorithms {
                    let job = |style: &Style| Job {
                        algorithm: *algorithm,
                        call: *call,
                        case: *case,
                        style: *style,
                        warm_up,
                        calls,
                    };
                    jobs.extend(self.styles.iter().map(job));
                }
            }
        }
        jobs
    }

    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_seconds)
    }
}
