//! Results of the experiment with priorities: the runs, and their summaries.

use serde::{Deserialize, Serialize};
use spandrel_measure::stats::Summary;

use super::settings::{Contender, Load, Settings, Sockets};
use crate::machine::Machine;
use crate::placement::Placement;

/// The figures of one run. Times are in microseconds, from the beginning of the period until the reply has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The calls of the urgent client that were measured.
    pub calls: u64,
    /// Periods of the run, each with one deadline.
    pub periods: u64,
    /// Periods whose call ended late, or was not begun because an earlier one took so long.
    pub missed: u64,
    /// The shortest response time.
    pub min_us: f64,
    /// Half of the calls took less.
    pub median_us: f64,
    /// The sum of the times, divided by their number.
    pub mean_us: f64,
    /// The standard deviation of the times.
    pub deviation_us: f64,
    /// 99 in 100 took less.
    pub p99_us: f64,
    /// 999 in 1,000 took less.
    pub p999_us: f64,
    /// The longest response time.
    pub worst_us: f64,
    /// Calls of the other clients.
    pub others: u64,
    /// The part of the processors' time that the host took away; none if the system does not report it.
    pub steal: Option<f64>,
    /// The runs that were made: several if the host took too much processor time away. The figures are those
    /// of the best one.
    pub attempts: u32,
}

impl Figures {
    /// The figures of a run with these response times in nanoseconds; `None` without a call.
    pub(super) fn from_nanos(nanos: &[u64]) -> Option<Self> {
        let mut micros: Vec<f64> = nanos.iter().map(|nanos| *nanos as f64 / 1000.0).collect();
        micros.sort_by(f64::total_cmp);
        let (first, last) = (*micros.first()?, *micros.last()?);
        let count = micros.len() as f64;
        let at = |part: f64| micros[((part * count).ceil() as usize).clamp(1, micros.len()) - 1];
        let mean = micros.iter().sum::<f64>() / count;
        let variance = micros.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        Some(Self {
            calls: nanos.len() as u64,
            periods: nanos.len() as u64,
            missed: 0,
            min_us: first,
            median_us: at(0.5),
            mean_us: mean,
            deviation_us: variance.sqrt(),
            p99_us: at(0.99),
            p999_us: at(0.999),
            worst_us: last,
            others: 0,
            steal: None,
            attempts: 1,
        })
    }

    /// Missed deadlines in 100 periods.
    pub(super) fn missed_percent(&self) -> f64 {
        if self.periods == 0 { 0.0 } else { 100.0 * self.missed as f64 / self.periods as f64 }
    }
}

/// A contender and its surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// The cores of clients and server.
    pub placement: Placement,
    /// The family of the sockets between clients and server.
    pub sockets: Sockets,
    /// The clients beside the measured one.
    pub load: Load,
    /// The server that the clients call.
    pub contender: Contender,
}

/// One run of one contender.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The contender and its surroundings.
    #[serde(flatten)]
    pub configuration: Configuration,
    /// The round; runs of one round followed each other directly.
    pub round: u32,
    /// The times of its calls.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The rounds of one contender, summarised. Times are in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The contender and its surroundings.
    #[serde(flatten)]
    pub configuration: Configuration,
    /// The rounds' shortest times; none if the contender is absent.
    pub min_us: Option<Summary>,
    /// The median time of each round.
    pub median_us: Option<Summary>,
    /// The mean time of each round.
    pub mean_us: Option<Summary>,
    /// The standard deviations of the rounds.
    pub deviation_us: Option<Summary>,
    /// The rounds' 99th percentiles.
    pub p99_us: Option<Summary>,
    /// The rounds' 99.9th percentiles.
    pub p999_us: Option<Summary>,
    /// The rounds' longest times.
    pub worst_us: Option<Summary>,
    /// Missed deadlines in 100 periods.
    pub missed_percent: Option<Summary>,
    /// The ratio of the 99th percentile to that of the same contender alone in the same round, with an intermediary if
    /// there is one.
    pub inflation: Option<Summary>,
    /// The ratio of the longest time to the base's in the same round.
    pub worst_ratio: Option<Summary>,
    /// The reason for missing figures, if any.
    pub absent: Option<String>,
}

/// A contender that could not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Absent {
    pub(super) contender: Contender,
    pub(super) sockets: Sockets,
    /// The load, or all if none.
    pub(super) load: Option<Load>,
    pub(super) reason: String,
}

/// The measurements of all rounds with their summaries, as the result file has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The experiment's name, for programs that read the file.
    pub experiment: String,
    /// The machine and program of the measurement.
    pub machine: Machine,
    /// The native scheduling class of clients and servers.
    pub scheduling: String,
    /// `sched_rt_runtime_us` of the kernel: the part of a second in which real-time threads may run; -1 is all.
    pub rt_runtime_us: Option<i64>,
    /// The settings with which these figures were measured.
    pub settings: Settings,
    /// A summary of each configuration.
    pub rows: Vec<Row>,
    /// The single runs, in the order in which they were made.
    pub measured: Vec<Measurement>,
}

impl Results {
    pub(super) fn from_measurements(
        machine: Machine,
        scheduling: String,
        settings: Settings,
        measured: Vec<Measurement>,
        absent: &[Absent],
    ) -> Self {
        let base = if settings.contenders.contains(&Contender::C) { Contender::C } else { settings.contenders[0] };
        let mut rows = Vec::new();
        for placement in &settings.placements {
            for sockets in &settings.sockets {
                for load in &settings.loads {
                    for contender in &settings.contenders {
                        let configuration = Configuration {
                            placement: *placement,
                            sockets: *sockets,
                            load: *load,
                            contender: *contender,
                        };
                        rows.push(Row::summarise(configuration, base, &measured, absent));
                    }
                }
            }
        }
        let rt_runtime = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").ok();
        let rt_runtime_us = rt_runtime.and_then(|text| text.trim().parse().ok());
        Self { experiment: "rt".to_owned(), machine, scheduling, rt_runtime_us, settings, rows, measured }
    }
}

impl Row {
    fn summarise(configuration: Configuration, base: Contender, measured: &[Measurement], absent: &[Absent]) -> Self {
        type Value = fn(&Figures) -> f64;
        let values = |configuration: Configuration, value: Value| {
            let runs = measured.iter().filter(|run| run.configuration == configuration);
            runs.map(|run| (run.round, value(&run.figures))).collect::<Vec<_>>()
        };
        let summary =
            |value: Value| Summary::from_values(values(configuration, value).into_iter().map(|(_, value)| value));
        let ratio =
            |value: Value, to: Configuration| Summary::of_ratios(&values(configuration, value), &values(to, value));
        let median_us = summary(|figures| figures.median_us);
        let is_reason = |absent: &&Absent| {
            (absent.contender, absent.sockets) == (configuration.contender, configuration.sockets)
                && absent.load.is_none_or(|load| load == configuration.load)
        };
        let reason = absent.iter().find(is_reason).map(|absent| absent.reason.clone());
        Self {
            configuration,
            min_us: summary(|figures| figures.min_us),
            median_us,
            mean_us: summary(|figures| figures.mean_us),
            deviation_us: summary(|figures| figures.deviation_us),
            p99_us: summary(|figures| figures.p99_us),
            p999_us: summary(|figures| figures.p999_us),
            worst_us: summary(|figures| figures.worst_us),
            missed_percent: summary(Figures::missed_percent),
            inflation: ratio(
                |figures| figures.p99_us,
                Configuration { load: configuration.load.base(), ..configuration },
            ),
            worst_ratio: ratio(|figures| figures.worst_us, Configuration { contender: base, ..configuration }),
            absent: reason.filter(|_| median_us.is_none()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_run_are_those_of_its_times() {
        let nanos: Vec<u64> = (1..=1_000).rev().map(|micros| micros * 1_000).collect();
        let figures = Figures { missed: 250, periods: 1_250, ..Figures::from_nanos(&nanos).unwrap() };
        let times = [figures.min_us, figures.median_us, figures.p99_us, figures.p999_us, figures.worst_us];
        assert_eq!(times, [1.0, 500.0, 990.0, 999.0, 1_000.0]);
        assert!(
            (figures.mean_us - 500.5).abs() < 1e-9 && (figures.deviation_us - 288.675).abs() < 0.001,
            "{figures:?}"
        );
        assert!((figures.missed_percent() - 20.0).abs() < 1e-9);
        assert_eq!(Figures::from_nanos(&[]), None);
    }
}
