//! Results of the reactor experiment: the runs, and their summaries.

use serde::{Deserialize, Serialize};
use spandrel_measure::stats::Summary;

use super::contender::Contender;
use super::settings::{Load, Settings};
use crate::bench::driver::load::Driven;
use crate::machine::Machine;
use crate::placement::Placement;

/// The results of one run. Times are in microseconds, from sending a message until its echo has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Echoed {
    /// Messages that were echoed in full.
    pub events: u64,
    /// From the first message to the last counted answer, in seconds.
    pub seconds: f64,
    /// Half of the answers took less.
    pub p50_us: f64,
    /// 99 in 100 took less.
    pub p99_us: f64,
    /// The longest time of an echo, in microseconds.
    pub max_us: f64,
}

impl Echoed {
    /// Summarises a run.
    pub(super) fn from_run(run: &Driven) -> Self {
        let times = run.times();
        let (events, seconds) = (run.total(), run.seconds);
        Self { events, seconds, p50_us: times.median, p99_us: times.p99, max_us: times.max }
    }

    /// Messages echoed per second.
    #[must_use]
    pub fn events_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.events as f64 / self.seconds } else { 0.0 }
    }
}

/// One run of one contender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The cores of client and server.
    pub placement: Placement,
    /// The idle and active connections.
    pub load: Load,
    /// The round; runs of a load in one round followed each other directly.
    pub round: u32,
    /// The server that was measured.
    pub contender: Contender,
    /// The number and times of the echoes.
    pub echoed: Echoed,
    /// Processor time of the server's process meanwhile, in seconds; none if the system does not report it.
    pub server_cpu: Option<f64>,
    /// Octets of the server's memory for each connection, after all were open and had been served once.
    pub each_octets: Option<f64>,
}

impl Measurement {
    /// Processor time of the server per message, in microseconds.
    #[must_use]
    pub fn cpu_us_per_event(&self) -> Option<f64> {
        let cpu = self.server_cpu.filter(|_| self.echoed.events > 0)?;
        Some(cpu * 1e6 / self.echoed.events as f64)
    }
}

/// A contender that could not be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Absent {
    pub contender: Contender,
    /// The load, or all if none.
    pub load: Option<Load>,
    pub reason: String,
}

/// The rounds of one contender in one placement and load, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The cores of client and server.
    pub placement: Placement,
    /// The idle and active connections.
    pub load: Load,
    /// The server that was measured.
    pub contender: Contender,
    /// Messages echoed per second; none if the contender is absent.
    pub events_per_second: Option<Summary>,
    /// The ratio of the messages per second to the base's in the same round: above one is better.
    pub ratio: Option<Summary>,
    /// The ratio of the messages per second to the same server's with the first of the loads, in the same
    /// round.
    pub to_first_load: Option<Summary>,
    /// Octets of the server's memory for each connection.
    pub each_octets: Option<Summary>,
    /// The rounds' median times in microseconds.
    pub p50_us: Option<Summary>,
    /// The rounds' 99th percentiles in microseconds.
    pub p99_us: Option<Summary>,
    /// Processor time of the server per message, in microseconds.
    pub cpu_us: Option<Summary>,
    /// The ratio of the processor time per message to the base's in the same round: below one is better.
    pub cpu_ratio: Option<Summary>,
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
    /// The single runs, in the order in which they were made.
    pub measured: Vec<Measurement>,
}

impl Results {
    pub(super) fn from_measurements(
        machine: Machine,
        settings: Settings,
        measured: Vec<Measurement>,
        absent: &[Absent],
    ) -> Self {
        let mut rows = Vec::new();
        for placement in &settings.placements {
            for load in &settings.loads {
                let here = |m: &&Measurement| m.placement == *placement && m.load == *load;
                let here: Vec<&Measurement> = measured.iter().filter(here).collect();
                let first = |m: &&Measurement| m.placement == *placement && Some(&m.load) == settings.loads.first();
                let first: Vec<&Measurement> = measured.iter().filter(first).collect();
                for contender in &settings.contenders {
                    let row = Row::summarise(*placement, *load, *contender, &here, &first);
                    let absence =
                        |a: &&Absent| a.contender == *contender && a.load.is_none_or(|where_| where_ == *load);
                    let reason = absent.iter().find(absence).map(|absent| absent.reason.clone());
                    rows.push(Row { absent: reason.filter(|_| row.events_per_second.is_none()), ..row });
                }
            }
        }
        Self { experiment: "reactor".to_owned(), machine, settings, rows, measured }
    }
}

impl Row {
    /// `first`: the measurements with the first of the loads.
    fn summarise(
        placement: Placement,
        load: Load,
        contender: Contender,
        measured: &[&Measurement],
        first: &[&Measurement],
    ) -> Self {
        let of = |measured: &[&Measurement], contender: Contender, value: fn(&Measurement) -> Option<f64>| {
            let of = measured.iter().filter(|m| m.contender == contender);
            of.filter_map(|m| Some((m.round, value(m)?))).collect::<Vec<_>>()
        };
        let rate: fn(&Measurement) -> Option<f64> = |m| Some(m.echoed.events_per_second());
        let summary = |value| Summary::from_values(of(measured, contender, value).into_iter().map(|(_, value)| value));
        let ratio = |value| Summary::of_ratios(&of(measured, contender, value), &of(measured, Contender::BASE, value));
        Self {
            placement,
            load,
            contender,
            events_per_second: summary(rate),
            ratio: ratio(rate),
            to_first_load: Summary::of_ratios(&of(measured, contender, rate), &of(first, contender, rate)),
            each_octets: summary(|m| m.each_octets),
            p50_us: summary(|m| Some(m.echoed.p50_us)),
            p99_us: summary(|m| Some(m.echoed.p99_us)),
            cpu_us: summary(Measurement::cpu_us_per_event),
            cpu_ratio: ratio(Measurement::cpu_us_per_event),
            absent: None,
        }
    }
}
