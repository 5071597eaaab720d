//! Settings of a series, and their validation.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use spandrel_reactor::timer::TimerStrategy;

use crate::LabError;

/// A timer queue strategy, in a form for result files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub struct Strategy(pub TimerStrategy);

impl Strategy {
    /// All strategies of the reactor's timer queues.
    #[must_use]
    pub fn all() -> Vec<Self> {
        TimerStrategy::ALL.into_iter().map(Self).collect()
    }

    /// The reason why it is not measured with that many timers, if so.
    pub(super) fn unsupported_reason(self, timers: u32) -> Option<String> {
        let too_many = self.0 == TimerStrategy::List && timers > MAX_LIST_TIMERS;
        too_many.then(|| "scheduling takes a step for every other timer".to_owned())
    }
}

/// The largest number of timers for a list; more would take minutes.
const MAX_LIST_TIMERS: u32 = 10_000;

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Strategy {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        text.parse().map(Self).map_err(|error| LabError::Settings(format!("{error}")))
    }
}

impl From<Strategy> for &'static str {
    fn from(strategy: Strategy) -> Self {
        strategy.0.name()
    }
}

impl TryFrom<String> for Strategy {
    type Error = LabError;

    fn try_from(text: String) -> Result<Self, LabError> {
        text.parse()
    }
}

/// The configurations to measure, and the number and length of their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Strategies, in the order of the report.
    pub strategies: Vec<Strategy>,
    /// Numbers of timers, in the order of the report.
    pub counts: Vec<u32>,
    /// The runs of each configuration; they take turns with those of the others.
    pub rounds: u32,
    /// Delays are random up to this many seconds.
    pub horizon_seconds: u32,
    /// The core to which the experiment is pinned; without one, the scheduler chooses.
    pub core: Option<usize>,
    /// After this many seconds no further round is begun.
    pub budget_seconds: Option<u64>,
}

/// Roughly the capacity of a queue.
const MAX_TIMERS: u32 = 50_000_000;

impl Settings {
    /// Finds faults of the settings before anything is measured.
    ///
    /// # Errors
    /// If a list is empty, or a number out of range.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |reason: String| Err(LabError::Settings(reason));
        if self.strategies.is_empty() || self.counts.is_empty() {
            return refuse("nothing to run: there must be a strategy and a number of timers".to_owned());
        }
        if self.rounds == 0 || self.horizon_seconds == 0 {
            return refuse("nothing to run: rounds and delays must be above zero".to_owned());
        }
        if let Some(count) = self.counts.iter().find(|count| **count == 0 || **count > MAX_TIMERS) {
            return refuse(format!("there can be between 1 and {MAX_TIMERS} timers, not {count}"));
        }
        Ok(())
    }
}
