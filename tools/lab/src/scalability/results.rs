//! What was measured, and what it comes to.

use serde::{Deserialize, Serialize};

use super::contender::Contender;
use super::job::{Algorithm, Job, Style};
use super::settings::Settings;
use crate::call_times::CallTimes;
use crate::machine::Machine;
use crate::placement::Placement;
use crate::stats::Summary;
use crate::workload::{CallKind, PingCase};

/// The calls of one contender in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// On which cores.
    pub placement: Placement,
    /// How many servants the server had.
    pub servants: u32,
    /// What was done.
    pub job: Job,
    /// The round; runs of a job in one round followed each other directly.
    pub round: u32,
    /// Who did it.
    pub contender: Contender,
    /// Where the targets began.
    pub begin: u32,
    /// How many servants the timed calls have reached, as their server has counted.
    pub servants_called: u32,
    /// The times.
    pub times: CallTimes,
}

/// Why a contender has no figures for some servants or style.
#[derive(Clone, Debug)]
pub(super) struct Absent {
    /// Who.
    pub(super) contender: Contender,
    /// With how many servants; with any, if it is not said.
    pub(super) servants: Option<u32>,
    /// In which style; in all, if it is not said.
    pub(super) style: Option<Style>,
    /// In words.
    pub(super) why: String,
}

/// Octets of memory that a server has more with so many servants than with the fewest of the series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Whose server.
    pub contender: Contender,
    /// Its servants.
    pub servants: u32,
    /// Resident octets of its process.
    pub resident: u64,
}

/// The rounds of one contender, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// On which cores.
    pub placement: Placement,
    /// In which order.
    pub algorithm: Algorithm,
    /// Whether answered.
    pub call: CallKind,
    /// What calls carried.
    pub case: PingCase,
    /// By which interface.
    pub style: Style,
    /// Who called.
    pub contender: Contender,
    /// How many servants the server had.
    pub servants: u32,
    /// The rounds' median times in microseconds.
    pub median_us: Option<Summary>,
    /// The rounds' mean times in microseconds: what the paper gives. One call on a servant that is in no cache, among a hundred, shows in the mean alone.
    pub mean_us: Option<Summary>,
    /// The ratio of medians to the same contender's static calls in the same round.
    pub to_static: Option<Summary>,
    /// The ratio of medians to the same contender's calls with the fewest servants in the same round.
    pub to_fewest: Option<Summary>,
    /// The same ratio of means.
    pub mean_to_fewest: Option<Summary>,
    /// How many servants the timed calls of a round have reached.
    pub servants_called: Option<Summary>,
    /// Why there are no figures, if there are none.
    pub absent: Option<String>,
}

impl Row {
    /// What a table or a picture is of, without its styles.
    pub(super) fn heading(&self) -> String {
        let call = if self.call == CallKind::OneWay { "one-way" } else { "two-way" };
        let load = match self.case {
            PingCase::Void => "without parameters",
            PingCase::Structs => "with 1,024 BinStructs",
        };
        format!("{call} calls {load}, {}", self.algorithm)
    }
}

/// A whole series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The experiment's name, for programs that read the file.
    pub experiment: String,
    /// What it was measured on.
    pub machine: Machine,
    /// What was to be run.
    pub settings: Settings,
    /// The summaries.
    pub rows: Vec<Row>,
    /// What servers took.
    pub memory: Vec<Memory>,
    /// The single rounds, in the order in which they were run.
    pub measured: Vec<Measured>,
}

impl Results {
    pub(super) fn of(
        machine: Machine,
        settings: Settings,
        measured: Vec<Measured>,
        memory: Vec<Memory>,
        absent: &[Absent],
    ) -> Self {
        let mut rows = Vec::new();
        for placement in &settings.placements {
            for job in settings.jobs() {
                for contender in &settings.contenders {
                    let fewest = settings.servants.iter().min().copied().unwrap_or(1);
                    let base = Rounds::of(&measured, *placement, &job, *contender, fewest);
                    for servants in &settings.servants {
                        let why = absent.iter().find(|absent| {
                            absent.contender == *contender
                                && absent.servants.is_none_or(|those| those == *servants)
                                && absent.style.is_none_or(|style| style == job.style)
                        });
                        let own = Rounds::of(&measured, *placement, &job, *contender, *servants);
                        let plain = Job { style: Style::Static, ..job };
                        let plain = Rounds::of(&measured, *placement, &plain, *contender, *servants);
                        let median_us = summary(&own.medians);
                        rows.push(Row {
                            placement: *placement,
                            algorithm: job.algorithm,
                            call: job.call,
                            case: job.case,
                            style: job.style,
                            contender: *contender,
                            servants: *servants,
                            median_us,
                            mean_us: summary(&own.means),
                            to_static: Summary::of_ratios(&own.medians, &plain.medians),
                            to_fewest: Summary::of_ratios(&own.medians, &base.medians),
                            mean_to_fewest: Summary::of_ratios(&own.means, &base.means),
                            servants_called: summary(&own.servants_called),
                            absent: why.filter(|_| median_us.is_none()).map(|absent| absent.why.clone()),
                        });
                    }
                }
            }
        }
        Self { experiment: "scalability".to_owned(), machine, settings, rows, memory, measured }
    }

    /// Octets of a server's memory that each further servant takes, between the fewest and the most that it had.
    #[must_use]
    pub fn octets_per_servant(&self, contender: Contender) -> Option<f64> {
        let own = || self.memory.iter().filter(|memory| memory.contender == contender);
        let fewest = own().min_by_key(|memory| memory.servants)?;
        let most = own().max_by_key(|memory| memory.servants)?;
        let more = most.servants.checked_sub(fewest.servants).filter(|more| *more >= 1_000)?;
        Some((most.resident as f64 - fewest.resident as f64) / f64::from(more))
    }
}

/// The measurements of each round of one row.
struct Rounds {
    medians: Vec<(u32, f64)>,
    means: Vec<(u32, f64)>,
    servants_called: Vec<(u32, f64)>,
}

impl Rounds {
    fn of(measured: &[Measured], placement: Placement, job: &Job, contender: Contender, servants: u32) -> Self {
        let those = || {
            measured
                .iter()
                .filter(|m| (m.placement, m.contender, m.servants) == (placement, contender, servants) && m.job == *job)
        };
        Self {
            medians: those().map(|m| (m.round, m.times.median)).collect(),
            means: those().map(|m| (m.round, m.times.mean)).collect(),
            servants_called: those().map(|m| (m.round, f64::from(m.servants_called))).collect(),
        }
    }
}

fn summary(rounds: &[(u32, f64)]) -> Option<Summary> {
    Summary::of(rounds.iter().map(|(_, value)| *value))
}
