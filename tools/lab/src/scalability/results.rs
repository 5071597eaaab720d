//! Results of the scalability experiment: the rounds, and their summaries.

use serde::{Deserialize, Serialize};
use spandrel_measure::stats::Summary;

use super::contender::Contender;
use super::job::{Algorithm, CallData, Job, Style};
use super::settings::Settings;
use crate::call_times::CallTimes;
use crate::machine::Machine;
use crate::placement::Placement;
use crate::workload::CallKind;

/// The calls of one contender in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The cores of both processes.
    pub placement: Placement,
    /// The number of objects in the server, each with its servant.
    pub servants: u32,
    /// The calls that were made.
    pub job: Job,
    /// The round; runs of a job in one round followed each other directly.
    pub round: u32,
    /// The ORB that was called.
    pub contender: Contender,
    /// The number of the servant with which the calls began.
    pub begin: u32,
    /// The number of servants reached by the timed calls, as counted by their server.
    pub servants_called: u32,
    /// The times from calls to their answers.
    pub times: CallTimes,
}

/// The reason why a contender has no figures for some servants or style.
#[derive(Clone, Debug)]
pub(super) struct Absent {
    /// The ORB that is not here.
    pub(super) contender: Contender,
    /// The number of servants, or all if none.
    pub(super) servants: Option<u32>,
    /// The style, or all if none.
    pub(super) style: Option<Style>,
    /// The reason why it cannot be measured.
    pub(super) reason: String,
}

/// The additional memory of a server in octets with that many servants, compared with the fewest of the
/// series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The ORB whose server it is.
    pub contender: Contender,
    /// The number of servants that the server has.
    pub servants: u32,
    /// Resident octets of its process.
    pub resident: u64,
}

/// The rounds of one contender, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The cores of both processes.
    pub placement: Placement,
    /// The order of servants.
    pub algorithm: Algorithm,
    /// One-way or two-way calls.
    pub call: CallKind,
    /// The data that a call passes.
    pub case: CallData,
    /// The interface by which requests are made.
    pub style: Style,
    /// The ORB that was called.
    pub contender: Contender,
    /// The number of objects in the server, each with its servant.
    pub servants: u32,
    /// The rounds' median times in microseconds.
    pub median_us: Option<Summary>,
    /// The rounds' mean times in microseconds, as in the paper. One call in a hundred on a servant outside of
    /// the caches shows in the mean alone.
    pub mean_us: Option<Summary>,
    /// The ratio of medians to the same contender's static calls in the same round.
    pub to_static: Option<Summary>,
    /// The ratio of medians to the same contender's calls with the fewest servants in the same round.
    pub to_fewest: Option<Summary>,
    /// The ratio of means to the same contender's calls with the fewest servants in the same round.
    pub mean_to_fewest: Option<Summary>,
    /// The number of servants reached by the timed calls of a round.
    pub servants_called: Option<Summary>,
    /// The reason for missing figures, if any.
    pub absent: Option<String>,
}

impl Row {
    /// The heading of a table or a plot, without its styles.
    pub(super) fn heading(&self) -> String {
        let call = if self.call == CallKind::OneWay { "one-way" } else { "two-way" };
        format!("{call} calls {}, {}", self.case.description(), self.algorithm)
    }
}

/// The measurements of all rounds with their summaries, as the result file has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The experiment's name, for programs that read the file.
    pub experiment: String,
    /// The machine and program of the measurement.
    pub machine: Machine,
    /// The settings with which these figures were measured.
    pub settings: Settings,
    /// A summary of each configuration.
    pub rows: Vec<Row>,
    /// The resident memory of servers, by their number of servants.
    pub memory: Vec<Memory>,
    /// The single rounds, in the order in which they were run.
    pub measured: Vec<Measurement>,
}

impl Results {
    pub(super) fn from_measurements(
        machine: Machine,
        settings: Settings,
        measured: Vec<Measurement>,
        memory: Vec<Memory>,
        absent: &[Absent],
    ) -> Self {
        let mut rows = Vec::new();
        for placement in &settings.placements {
            for job in settings.jobs() {
                for contender in &settings.contenders {
                    let fewest = settings.servants.iter().min().copied().unwrap_or(1);
                    let base = Rounds::select(&measured, *placement, &job, *contender, fewest);
                    for servants in &settings.servants {
                        let reason = absent.iter().find(|absent| {
                            absent.contender == *contender
                                && absent.servants.is_none_or(|those| those == *servants)
                                && absent.style.is_none_or(|style| style == job.style)
                        });
                        let own = Rounds::select(&measured, *placement, &job, *contender, *servants);
                        let plain = Job { style: Style::Static, ..job };
                        let plain = Rounds::select(&measured, *placement, &plain, *contender, *servants);
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
                            absent: reason.filter(|_| median_us.is_none()).map(|absent| absent.reason.clone()),
                        });
                    }
                }
            }
        }
        Self { experiment: "scalability".to_owned(), machine, settings, rows, memory, measured }
    }

    /// Octets of a server's memory for each further servant, between the fewest and the most.
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
    fn select(measured: &[Measurement], placement: Placement, job: &Job, contender: Contender, servants: u32) -> Self {
        let those = || {
            measured
                .iter()
                .filter(|m| (m.placement, m.contender, m.servants) == (placement, contender, servants) && m.job == *job)
        };
        Self {
            medians: those().map(|m| (m.round, m.times.each.median)).collect(),
            means: those().map(|m| (m.round, m.times.each.mean)).collect(),
            servants_called: those().map(|m| (m.round, f64::from(m.servants_called))).collect(),
        }
    }
}

fn summary(rounds: &[(u32, f64)]) -> Option<Summary> {
    Summary::from_values(rounds.iter().map(|(_, value)| *value))
}
