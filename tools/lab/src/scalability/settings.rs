//! Settings of a series, and their validation.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::contender::Contender;
use super::job::{Algorithm, CALLS_ON_EACH, CallData, Job, JobRun, Style};
use crate::LabError;
use crate::placement::Placement;
use crate::workload::CallKind;

/// The maximum number of servants: references alone would take tens of gigabytes beyond it.
const MAX_SERVANTS: u32 = 10_000_000;

/// The configurations to measure, and the number and length of their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The numbers of servants to measure.
    pub servants: Vec<u32>,
    /// The placements, one series each.
    pub placements: Vec<Placement>,
    /// Orders in which servants are called.
    pub algorithms: Vec<Algorithm>,
    /// One-way calls, two-way calls, or both.
    pub calls: Vec<CallKind>,
    /// The data that calls pass.
    pub cases: Vec<CallData>,
    /// The interfaces by which requests are made.
    pub styles: Vec<Style>,
    /// The contenders, in the order of the report.
    pub contenders: Vec<Contender>,
    /// Timed calls per round, at least.
    pub calls_per_round: u32,
    /// The maximum of timed calls per round, if a hundred on each servant would be more.
    pub most_calls: u32,
    /// The runs of each configuration; they take turns with those of the others.
    pub rounds: u32,
    /// The folder with omniORB's programs, if it is not where the source tree builds them.
    pub omniorb: Option<PathBuf>,
    /// The folder with JacORB's programs, if it is not where the source tree builds them.
    pub jacorb: Option<PathBuf>,
    /// The longest that one run, or the start of a server with all its servants, may take, in seconds.
    pub limit_seconds: u64,
    /// The seconds of calls to static servants after which no further round begins; dynamic servants have as
    /// many of their own.
    pub budget_seconds: Option<u64>,
}

impl Settings {
    /// Finds faults of the settings before anything is measured.
    ///
    /// # Errors
    /// If a list is empty or a number zero, or there would be too many servants.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |reason: String| Err(LabError::Settings(reason));
        if self.jobs().is_empty()
            || self.servants.is_empty()
            || self.placements.is_empty()
            || self.contenders.is_empty()
        {
            return refuse("nothing to run: a list of servants, placements, mechanisms or calls is empty".to_owned());
        }
        if self.rounds == 0 || self.calls_per_round == 0 || self.most_calls == 0 {
            return refuse("nothing to run: rounds and calls must be above zero".to_owned());
        }
        match self.servants.iter().find(|servants| !(1..=MAX_SERVANTS).contains(*servants)) {
            Some(servants) => {
                refuse(format!("the number of servants must be between 1 and {MAX_SERVANTS}, not {servants}"))
            }
            None => Ok(()),
        }
    }

    /// The jobs with each number of servants, in the order of the report.
    pub(super) fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for case in &self.cases {
            for call in &self.calls {
                for algorithm in &self.algorithms {
                    let job = |style: &Style| Job { algorithm: *algorithm, call: *call, case: *case, style: *style };
                    jobs.extend(self.styles.iter().map(job));
                }
            }
        }
        jobs
    }

    /// Whether each of that many servants is called a hundred times in each round (paper 001, 4.2.3).
    #[must_use]
    pub fn covers(&self, servants: u32) -> bool {
        u64::from(servants) * u64::from(CALLS_ON_EACH) <= u64::from(self.most_calls.max(self.calls_per_round))
    }

    /// A job in one round: a hundred calls on each servant, or a multiple of that; if those would be too
    /// many, on other servants in each round.
    pub(super) fn run(&self, job: Job, servants: u32, round: u32) -> JobRun {
        let most = self.most_calls.max(self.calls_per_round);
        let (calls, begin) = if self.covers(servants) {
            let all = servants * CALLS_ON_EACH;
            (all.saturating_mul(self.calls_per_round.div_ceil(all)), 0)
        } else {
            // The same for all contenders of a round, and far from the beginning of the next round.
            (most, round.wrapping_add(1).wrapping_mul(0x9e37_79b1))
        };
        // Whole trains, so that the timed ones are whole too.
        JobRun { job, warm_up: (calls / 10).next_multiple_of(CALLS_ON_EACH), calls, begin }
    }

    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn settings(calls_per_round: u32, most_calls: u32) -> Settings {
        Settings {
            servants: vec![1],
            placements: vec![Placement::Free],
            algorithms: Algorithm::ALL.to_vec(),
            calls: vec![CallKind::TwoWay],
            cases: vec![CallData::Void],
            styles: vec![Style::Static],
            contenders: vec![Contender::Orb],
            calls_per_round,
            most_calls,
            rounds: 1,
            omniorb: None,
            jacorb: None,
            limit_seconds: 10,
            budget_seconds: None,
        }
    }

    /// The number of calls on each called servant in a round.
    fn called(settings: &Settings, algorithm: Algorithm, servants: u32, round: u32) -> HashMap<usize, u32> {
        let job = Job { algorithm, call: CallKind::TwoWay, case: CallData::Void, style: Style::Static };
        let run = settings.run(job, servants, round);
        let mut next = algorithm.targets(servants, run.begin);
        (0..run.warm_up).for_each(|_| _ = next());
        let mut called = HashMap::new();
        (0..run.calls).for_each(|_| *called.entry(next()).or_default() += 1);
        called
    }

    #[test]
    fn each_servant_is_called_a_hundred_times_or_a_multiple_of_that() {
        let settings = settings(10_000, 100_000);
        for (servants, times) in [(1, 10_000), (7, 1_500), (100, 100), (300, 100), (1_000, 100)] {
            for algorithm in [Algorithm::Train, Algorithm::RoundRobin] {
                let called = called(&settings, algorithm, servants, 3);
                assert_eq!(called.len(), servants as usize, "{algorithm} of {servants}");
                assert!(called.values().all(|count| *count == times), "{algorithm} of {servants}: {called:?}");
            }
            assert_eq!(called(&settings, Algorithm::Random, servants, 3).len(), servants as usize);
        }
    }

    #[test]
    fn each_round_calls_different_servants_of_too_many() {
        let settings = settings(10_000, 100_000);
        for algorithm in [Algorithm::Train, Algorithm::RoundRobin, Algorithm::Random] {
            let (one, other) = (called(&settings, algorithm, 1_000_000, 0), called(&settings, algorithm, 1_000_000, 1));
            let both = one.keys().filter(|servant| other.contains_key(*servant)).count();
            assert!(both * 8 < one.len(), "{algorithm}: {both} of {} came again", one.len());
        }
    }
}
