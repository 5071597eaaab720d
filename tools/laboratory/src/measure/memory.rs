//! Experiments in one thread: engines and look-ups.

use std::time::Duration;

use spandrel_lab::LabError;
use spandrel_lab::bench::demux::{self, Algorithm, Strategy, WholeRequests};
use spandrel_lab::bench::marshal::{self, Contender, Direction};
use spandrel_lab::workload::DataType;

use super::rounds::{core, cut_rounds};
use crate::folder::Form;
use crate::series::{Measured, Series, Unit};

/// The time after which no further round begins.
const BUDGET: Duration = Duration::from_secs(12);
/// The same for whole requests by strategy.
const BUDGET_OF_REQUESTS: Duration = Duration::from_secs(4);
/// Whole requests of a round by each strategy.
const REQUESTS: u32 = 1_000;

/// Sequences of one type written and read by each engine, and the calls of each function of the ladder's rungs.
pub(super) fn marshaling(form: Form, data: DataType, octets: usize) -> Result<Measured, LabError> {
    let (rounds, run_micros) = if form == Form::Full { (11, 10_000) } else { (2, 200) };
    let settings = marshal::Settings {
        contenders: Contender::all(),
        types: vec![data],
        sizes: vec![octets],
        rounds,
        run_micros,
        core: core()?,
        budget_seconds: Some(BUDGET.as_secs()),
    };
    let results = marshal::run(&settings)?;
    let mut measured = Measured::default();
    let mut rounds_done = 0;
    for contender in &settings.contenders {
        for (direction, name) in [(Direction::Write, "write"), (Direction::Read, "read")] {
            let own = results.measured.iter().filter(|run| run.contender == *contender && run.direction == direction);
            let rates: Vec<f64> = own.map(|run| run.rate).collect();
            rounds_done = rates.len();
            measured.series.push(Series::new(format!("{contender} {name}"), Unit::MibPerSecond, rates));
            let counted = results.counted.iter();
            for counted in counted.filter(|one| one.contender == *contender && one.direction == direction) {
                for (function, calls) in &counted.calls {
                    let name = format!("{contender} {name} calls of {function}");
                    measured.series.push(Series::new(name, Unit::Count, vec![*calls]));
                }
            }
        }
    }
    measured.cut = cut_rounds(rounds_done, rounds, BUDGET);
    Ok(measured)
}

/// Look-ups of objects and operations by each strategy: both, each by itself, and within whole two-way requests.
pub(super) fn lookups(form: Form, algorithm: Algorithm, objects: u32, operations: u32) -> Result<Measured, LabError> {
    let (rounds, run_micros) = if form == Form::Full { (11, 1_000) } else { (2, 100) };
    let settings = demux::Settings {
        strategies: Strategy::ALL.to_vec(),
        objects: vec![objects],
        operations: vec![operations],
        adapters: 1,
        algorithms: vec![algorithm],
        rounds,
        run_micros,
        lookups: None,
        calls: 0,
        core: core()?,
        budget_seconds: Some(BUDGET.as_secs()),
    };
    let results = demux::run(&settings)?;
    let mut measured = Measured::default();
    let mut rounds_done = usize::MAX;
    for strategy in &settings.strategies {
        let runs = || results.measured.iter().filter(|run| run.strategy == *strategy);
        let values = |part: fn(&demux::Measurement) -> f64| runs().map(part).collect::<Vec<f64>>();
        let parts: [(&str, Vec<f64>); 3] = [
            ("", values(|run| run.costs.both.nanos)),
            (" object", values(|run| run.costs.object.nanos)),
            (" operation", values(|run| run.costs.operation.nanos)),
        ];
        if parts[0].1.is_empty() {
            let row = results.rows.iter().find(|row| row.strategy == *strategy);
            let reason = row.and_then(|row| row.absent.clone()).unwrap_or_else(|| "not measured".to_owned());
            measured.absent.push((strategy.to_string(), reason));
            continue;
        }
        rounds_done = rounds_done.min(parts[0].1.len());
        for (part, values) in parts {
            measured.series.push(Series::new(format!("{strategy}{part}"), Unit::Nanoseconds, values));
        }
    }
    let requests = if form == Form::Full { REQUESTS } else { 20 };
    let whole = WholeRequests {
        strategies: settings.strategies,
        objects,
        operations,
        algorithm,
        requests,
        rounds,
        core: core()?,
        budget: BUDGET_OF_REQUESTS,
    };
    for times in whole.measure()? {
        rounds_done = rounds_done.min(times.nanos.len());
        let counted = u64::from(requests) * times.nanos.len() as u64;
        let series = Series::new(format!("{} request", times.strategy), Unit::Nanoseconds, times.nanos);
        measured.series.push(series.counting("requests", counted));
    }
    measured.cut = cut_rounds(rounds_done, rounds, BUDGET);
    Ok(measured)
}

/// Two-way calls of 100 objects, with and without the client's cached headers and the server's predicted look-ups.
pub(super) fn predictions(form: Form) -> Result<Measured, LabError> {
    let (rounds, calls) = if form == Form::Full { (11, 10_000) } else { (2, 50) };
    let settings = demux::Settings {
        // One look-up is measured beside the calls, and not shown.
        strategies: vec![Strategy::Active],
        objects: vec![1],
        operations: vec![1],
        adapters: 1,
        algorithms: vec![Algorithm::RoundRobin],
        rounds,
        run_micros: 1,
        lookups: Some(1),
        calls,
        core: core()?,
        budget_seconds: None,
    };
    let results = demux::run(&settings)?;
    let mut measured = Measured::default();
    for row in &results.calls {
        let own = results
            .measured_calls
            .iter()
            .filter(|call| (call.predictions, call.algorithm) == (row.predictions, row.algorithm));
        let micros: Vec<f64> = own.map(|call| call.cost.nanos / 1e3).collect();
        let counted = u64::from(calls) * micros.len() as u64;
        let name = format!("{} {}", row.predictions.name(), row.algorithm);
        measured.series.push(Series::new(name, Unit::Microseconds, micros).counting("calls", counted));
    }
    Ok(measured)
}
