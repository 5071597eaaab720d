//! Results: the runs, and their summaries.

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use spandrel_measure::stats::Summary;

use super::settings::Settings;
use crate::machine::Machine;
use crate::placement::Placement;

/// The figures of one run. Times of calls are in microseconds, from sending the request until the reply has
/// arrived.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// All calls of the run, those included that were in flight at its end.
    pub calls: u64,
    /// Replies per second until the end of the run.
    pub calls_per_second: f64,
    /// Half of the calls took less.
    pub p50_us: f64,
    /// 99 in 100 took less.
    pub p99_us: f64,
    /// 999 in 1,000 took less.
    pub p999_us: f64,
    /// Processor time of the server's process per call, in microseconds; none if the system does not report it.
    pub server_us: Option<f64>,
    /// Processor time of the load or client per call, in microseconds; none if it is not reported.
    pub load_us: Option<f64>,
    /// The calls on the slowest connection as a part of the median of all connections; none for one connection.
    pub fairness: Option<f64>,
}

/// One run of one contender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The cores of load and server.
    pub placement: Placement,
    /// The number of connections or of calls in flight.
    pub number: u32,
    /// The round; runs with a number in one round followed each other directly.
    pub round: u32,
    /// The contender as options and tables name it.
    pub contender: String,
    /// The times and costs of its calls.
    pub figures: Figures,
}

/// A contender that could not be run.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::bench) struct Absent {
    pub(super) contender: String,
    /// The number, or all if none.
    pub(super) number: Option<u32>,
    pub(super) reason: String,
}

/// The rounds of one contender with one placement and number, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The cores of load and server.
    pub placement: Placement,
    /// The number of connections or of calls in flight.
    pub number: u32,
    /// The contender as options and tables name it.
    pub contender: String,
    /// Replies per second; none if the contender is absent.
    pub calls_per_second: Option<Summary>,
    /// The ratio of the replies per second to the base's in the same round: above one is better.
    pub ratio: Option<Summary>,
    /// The ratio of the replies per second to the same contender's with the first of the numbers, in the same
    /// round.
    pub to_first: Option<Summary>,
    /// The rounds' medians in microseconds.
    pub p50_us: Option<Summary>,
    /// The rounds' 99th percentiles in microseconds.
    pub p99_us: Option<Summary>,
    /// The ratio of the 99th percentile to the base's in the same round: below one is better.
    pub p99_ratio: Option<Summary>,
    /// The rounds' 99.9th percentiles in microseconds.
    pub p999_us: Option<Summary>,
    /// Processor time of the server per call, in microseconds.
    pub server_us: Option<Summary>,
    /// The ratio of the server's processor time per call to the base's in the same round: below one is
    /// better.
    pub server_ratio: Option<Summary>,
    /// Processor time of the load or client per call, in microseconds.
    pub load_us: Option<Summary>,
    /// The calls on the slowest connection as a part of the median of all connections.
    pub fairness: Option<Summary>,
    /// The reason for missing figures, if any.
    pub absent: Option<String>,
}

/// The measurements of all rounds with their summaries, as the result file has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results<C> {
    /// The name of the experiment and of its files.
    pub experiment: String,
    /// The name of the contender that is the base of the ratios.
    pub base: String,
    /// The machine and program of the measurement.
    pub machine: Machine,
    /// The settings with which these figures were measured.
    pub settings: Settings<C>,
    /// A summary of each configuration.
    pub rows: Vec<Row>,
    /// The single runs, in the order in which they were made.
    pub measured: Vec<Measurement>,
}

impl<C: Display> Results<C> {
    pub(in crate::bench) fn from_measurements(
        experiment: &str,
        base: &str,
        machine: Machine,
        settings: Settings<C>,
        measured: Vec<Measurement>,
        absent: &[Absent],
    ) -> Self {
        let mut rows = Vec::new();
        for placement in &settings.placements {
            let placed: Vec<&Measurement> = measured.iter().filter(|m| m.placement == *placement).collect();
            for number in &settings.numbers {
                for contender in &settings.contenders {
                    let key = (*placement, *number, contender.to_string());
                    let row = Row::summarise(key, base, settings.numbers[0], &placed);
                    let absence =
                        |a: &&Absent| a.contender == row.contender && a.number.is_none_or(|where_| where_ == *number);
                    let reason = absent.iter().find(absence).map(|absent| absent.reason.clone());
                    let absent = reason.filter(|_| row.calls_per_second.is_none());
                    rows.push(Row { absent, ..row });
                }
            }
        }
        Self { experiment: experiment.to_owned(), base: base.to_owned(), machine, settings, rows, measured }
    }
}

impl Row {
    /// `placed`: all measurements of the placement.
    fn summarise(
        (placement, number, contender): (Placement, u32, String),
        base: &str,
        first: u32,
        placed: &[&Measurement],
    ) -> Self {
        type Value = fn(&Figures) -> Option<f64>;
        let values = |contender: &str, number: u32, value: Value| {
            let runs = placed.iter().filter(|m| m.contender == contender && m.number == number);
            runs.filter_map(|m| Some((m.round, value(&m.figures)?))).collect::<Vec<_>>()
        };
        let summary =
            |value: Value| Summary::from_values(values(&contender, number, value).into_iter().map(|(_, value)| value));
        let ratio = |value: Value| Summary::of_ratios(&values(&contender, number, value), &values(base, number, value));
        let rate: Value = |figures| Some(figures.calls_per_second);
        Self {
            placement,
            number,
            calls_per_second: summary(rate),
            ratio: ratio(rate),
            to_first: Summary::of_ratios(&values(&contender, number, rate), &values(&contender, first, rate)),
            p50_us: summary(|figures| Some(figures.p50_us)),
            p99_us: summary(|figures| Some(figures.p99_us)),
            p99_ratio: ratio(|figures| Some(figures.p99_us)),
            p999_us: summary(|figures| Some(figures.p999_us)),
            server_us: summary(|figures| figures.server_us),
            server_ratio: ratio(|figures| figures.server_us),
            load_us: summary(|figures| figures.load_us),
            fairness: summary(|figures| figures.fairness),
            absent: None,
            contender,
        }
    }
}
