//! Times of single calls: to many servants, and beside plain sockets.

use std::time::Duration;

use spandrel_lab::LabError;
use spandrel_lab::child_command::launch;
use spandrel_lab::latency;
use spandrel_lab::mechanism::MechanismName;
use spandrel_lab::scalability::{self, Algorithm, CallData, Style};
use spandrel_lab::workload::CallKind;

use super::rounds::{cut_rounds, placement};
use crate::folder::Form;
use crate::series::{Measured, Series, Unit};

/// The longest single run, or start of a peer.
const LIMIT_SECONDS: u64 = 120;
/// Octets of a flood (paper 001, 3.3).
const FLOOD_OCTETS: u64 = 64 << 20;
/// The greatest number of servants whose references get a connection each: that of the paper.
const MOST_PRIVATE_CONNECTIONS: u32 = 500;
/// Calls of each kind in the trial that finds the number of calls.
const TRIAL_CALLS: u32 = 100;
/// The time after which no further round of calls to servants begins: to static ones, and to dynamic ones.
const BUDGET_OF_SERVANTS: Duration = Duration::from_secs(10);
/// The time after which no further round of calls beside sockets begins.
const BUDGET: Duration = Duration::from_secs(15);

/// Calls to all servants of a server, by style of invocation, with each ORB that is here.
pub(super) fn of_servants(
    form: Form,
    call: CallKind,
    algorithm: Algorithm,
    case: &str,
    servants: u32,
) -> Result<Measured, LabError> {
    let contenders = match form {
        Form::Full => scalability::Contender::ALL.to_vec(),
        Form::Short => vec![scalability::Contender::Orb, scalability::Contender::OmniOrb, scalability::Contender::Tao],
    };
    let case: CallData = case.parse()?;
    let mut contenders = contenders;
    if case == CallData::Void && servants <= MOST_PRIVATE_CONNECTIONS {
        contenders.push(scalability::Contender::OrbPrivate);
    }
    let is_full = form == Form::Full;
    let rounds = if is_full { 5 } else { 2 };
    // As many octets as in a flood of the paper at most, and a hundred calls on each of 500 servants without parameters.
    let calls = match (form, case.octets()) {
        (Form::Short, _) => 100,
        (Form::Full, octets) => (FLOOD_OCTETS / (octets + 1)).clamp(500, 10_000) as u32,
    };
    let calls_for_each = if is_full && case == CallData::Void { 50_000 } else { calls };
    let settings = scalability::Settings {
        servants: vec![servants],
        placements: vec![placement()],
        algorithms: vec![algorithm],
        calls: vec![call],
        cases: vec![case],
        styles: Style::ALL.to_vec(),
        contenders,
        calls_per_round: calls,
        most_calls: calls.max(calls_for_each),
        rounds,
        omniorb: None,
        jacorb: None,
        limit_seconds: LIMIT_SECONDS,
        budget_seconds: Some(BUDGET_OF_SERVANTS.as_secs()),
    };
    let planned = settings.most_calls;
    let settings = if is_full { within_budget(settings)? } else { settings };
    let fewer_calls = (settings.most_calls < planned)
        .then(|| format!("{} calls of each kind in a round in place of {planned}", settings.most_calls));
    let results = scalability::run(&settings, &launch)?;
    let mut measured = Measured::default();
    for contender in &settings.contenders {
        for style in &settings.styles {
            let name = format!("{contender} {style}");
            let runs = || results.measured.iter().filter(|run| run.contender == *contender && run.job.style == *style);
            let calls: u64 = runs().map(|run| run.times.calls).sum();
            if calls == 0 {
                let row = results.rows.iter().find(|row| row.contender == *contender && row.style == *style);
                let reason = row.and_then(|row| row.absent.clone()).unwrap_or_else(|| "not measured".to_owned());
                measured.absent.push((name, reason));
                continue;
            }
            let reached = runs().map(|run| u64::from(run.servants_called)).min().unwrap_or(0);
            let means = runs().map(|run| run.times.each.mean).collect();
            measured.series.push(
                Series::new(&name, Unit::Microseconds, means)
                    .counting("calls", calls)
                    .counting("servants reached in each round, at least", reached),
            );
            let slow = runs().map(|run| run.times.each.p99).collect();
            measured.series.push(Series::new(format!("{name} 99th percentile"), Unit::Microseconds, slow));
            if case.octets() > 0 {
                let mbits = |run: &scalability::Measurement| {
                    (case.octets() * run.times.calls) as f64 * 8.0 / run.times.seconds / 1e6
                };
                let rates = Series::new(format!("{name} throughput"), Unit::MbitPerSecond, runs().map(mbits).collect());
                measured.series.push(rates.counting("octets sent", case.octets() * calls));
            }
        }
    }
    let rounds_done = |style: &Style| {
        let own =
            |run: &&scalability::Measurement| run.contender == scalability::Contender::Orb && run.job.style == *style;
        results.measured.iter().filter(own).count()
    };
    let fewest = settings.styles.iter().map(rounds_done).min().unwrap_or(0);
    let fewer_rounds = cut_rounds(fewest, rounds, BUDGET_OF_SERVANTS);
    let remarks: Vec<String> = fewer_calls.into_iter().chain(fewer_rounds).collect();
    measured.cut = (!remarks.is_empty()).then(|| remarks.join(", "));
    if form == Form::Short {
        measured.absent.push(("jacorb".to_owned(), "its start is too slow for the short form".to_owned()));
    }
    Ok(measured)
}

/// The settings with as many calls as fit into the time, by a trial with a hundred of each kind.
fn within_budget(settings: scalability::Settings) -> Result<scalability::Settings, LabError> {
    let trial = scalability::Settings {
        calls_per_round: TRIAL_CALLS,
        most_calls: TRIAL_CALLS,
        rounds: 1,
        budget_seconds: None,
        ..settings.clone()
    };
    let trial = scalability::run(&trial, &launch)?;
    let seconds_per_call: f64 =
        trial.measured.iter().map(|run| run.times.seconds / run.times.calls.max(1) as f64).sum();
    let affordable = BUDGET_OF_SERVANTS.as_secs_f64() / f64::from(settings.rounds) / seconds_per_call.max(1e-9);
    let calls = |planned: u32| planned.min((affordable as u32).max(TRIAL_CALLS));
    let (calls_per_round, most_calls) = (calls(settings.calls_per_round), calls(settings.most_calls));
    Ok(scalability::Settings { calls_per_round, most_calls, ..settings })
}

/// Two-way calls to one object, and as many octets over plain sockets.
pub(super) fn of_sockets(form: Form, case: &str) -> Result<Measured, LabError> {
    let (calls, rounds) = if form == Form::Full { (20_000, 10) } else { (200, 2) };
    let mechanisms = [MechanismName::C, MechanismName::Ipc, MechanismName::Orb, MechanismName::OrbReactor];
    let contenders = mechanisms
        .into_iter()
        .map(latency::Contender::Mechanism)
        .chain([latency::Contender::OmniOrb, latency::Contender::Tao]);
    let settings = latency::Settings {
        placements: vec![placement()],
        cases: vec![case.parse()?],
        contenders: contenders.collect(),
        calls,
        rounds,
        remote: None,
        omniorb: None,
        limit_seconds: LIMIT_SECONDS,
        budget_seconds: Some(BUDGET.as_secs()),
    };
    let results = latency::run(&settings, &launch)?;
    let mut measured = Measured::default();
    let mut rounds_done = 0;
    for contender in &settings.contenders {
        let runs = || results.measured.iter().filter(|run| run.contender == *contender);
        let calls: u64 = runs().map(|run| run.times.calls).sum();
        if calls == 0 {
            let row = results.rows.iter().find(|row| row.contender == *contender);
            let reason = row.and_then(|row| row.absent.clone()).unwrap_or_else(|| "not measured".to_owned());
            measured.absent.push((contender.name().to_owned(), reason));
            continue;
        }
        rounds_done = runs().count();
        let mean = Series::new(contender.name(), Unit::Microseconds, runs().map(|run| run.times.each.mean).collect());
        measured.series.push(mean.counting("calls", calls));
        let slow = runs().map(|run| run.times.each.p99).collect();
        measured.series.push(Series::new(format!("{contender} 99th percentile"), Unit::Microseconds, slow));
    }
    measured.cut = cut_rounds(rounds_done, rounds, BUDGET);
    Ok(measured)
}
