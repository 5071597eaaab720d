//! Results of the latency experiment: the rounds, and their summaries.
//!
//! `report` writes the files with these results.

use serde::{Deserialize, Serialize};
use spandrel_measure::Times;
use spandrel_measure::stats::Summary;

use super::contender::Contender;
use super::settings::Settings;
use crate::call_times::CallTimes;
use crate::machine::Machine;
use crate::placement::Placement;
use crate::workload::PingCase;

/// The calls of one contender in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The cores of both processes.
    pub placement: Placement,
    /// The parameters of a call.
    pub case: PingCase,
    /// The round; runs of a case in one round followed each other directly.
    pub round: u32,
    /// The ORB or mechanism that was called.
    pub contender: Contender,
    /// The times from calls to their answers.
    pub times: CallTimes,
    /// Octets of a request and of a reply, where they are known.
    pub wire: Option<(usize, usize)>,
}

/// The rounds of one contender in one placement and case, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The cores of both processes.
    pub placement: Placement,
    /// The parameters of a call.
    pub case: PingCase,
    /// The ORB or mechanism that was called.
    pub contender: Contender,
    /// The rounds' median times in microseconds; absent if the contender is.
    pub median_us: Option<Summary>,
    /// The rounds' 99th percentiles in microseconds.
    pub p99_us: Option<Summary>,
    /// The rounds' 99.9th percentiles in microseconds.
    pub p999_us: Option<Summary>,
    /// Calls per second over the rounds.
    pub calls_per_second: Option<Summary>,
    /// The ratio of the median to that of `c` in the same round.
    pub ratio: Option<Summary>,
    /// The ratio of the 99th percentile to that of `c` in the same round.
    pub p99_ratio: Option<Summary>,
    /// The ratio of the 99.9th percentile to that of `c` in the same round.
    pub p999_ratio: Option<Summary>,
    /// Octets of a request and of a reply, where they are known.
    pub wire: Option<(usize, usize)>,
    /// The reason for missing figures, if any.
    pub absent: Option<String>,
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
    /// The single rounds, in the order in which they were run.
    pub measured: Vec<Measurement>,
}

impl Results {
    pub(super) fn from_measurements(
        machine: Machine,
        settings: Settings,
        measured: Vec<Measurement>,
        absent: &[(Contender, String)],
    ) -> Self {
        let mut rows = Vec::new();
        for placement in &settings.placements {
            for case in &settings.cases {
                let here = |m: &&Measurement| m.placement == *placement && m.case == *case;
                let here: Vec<&Measurement> = measured.iter().filter(here).collect();
                for contender in &settings.contenders {
                    let absent =
                        absent.iter().find(|(absent, _)| absent == contender).map(|(_, reason)| reason.clone());
                    let row = Row { placement: *placement, case: *case, contender: *contender, absent, ..Row::EMPTY };
                    rows.push(row.filled(&here, Contender::base(&settings.contenders)));
                }
            }
        }
        Self { experiment: "latency".to_owned(), machine, settings, rows, measured }
    }
}

impl Row {
    const EMPTY: Self = Self {
        placement: Placement::Free,
        case: PingCase::Void,
        contender: Contender::BASE,
        median_us: None,
        p99_us: None,
        p999_us: None,
        calls_per_second: None,
        ratio: None,
        p99_ratio: None,
        p999_ratio: None,
        wire: None,
        absent: None,
    };

    fn filled(self, measured: &[&Measurement], base: Contender) -> Self {
        let of = |contender| measured.iter().filter(move |m| m.contender == contender);
        let rounds = |contender, time: fn(&Times) -> f64| {
            of(contender).map(|m| (m.round, time(&m.times.each))).collect::<Vec<_>>()
        };
        let ratio = |time| Summary::of_ratios(&rounds(self.contender, time), &rounds(base, time));
        Self {
            median_us: Summary::from_values(of(self.contender).map(|m| m.times.each.median)),
            p99_us: Summary::from_values(of(self.contender).map(|m| m.times.each.p99)),
            p999_us: Summary::from_values(of(self.contender).map(|m| m.times.each.p999)),
            calls_per_second: Summary::from_values(of(self.contender).map(|m| m.times.calls_per_second())),
            ratio: ratio(|times| times.median),
            p99_ratio: ratio(|times| times.p99),
            p999_ratio: ratio(|times| times.p999),
            wire: of(self.contender).find_map(|m| m.wire),
            ..self
        }
    }
}
