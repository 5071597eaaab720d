//! Floods over sockets, wrappers and the ORB.

use std::time::Duration;

use spandrel_lab::LabError;
use spandrel_lab::child_command::launch;
use spandrel_lab::mechanism::{MechanismName, SocketOptions};
use spandrel_lab::ttcp::{self, Results, Run, Settings};
use spandrel_lab::workload::{CallKind, DataType};
use spandrel_measure::units::Octets;

use super::rounds::{by_round, cut_rounds, placement};
use crate::folder::Form;
use crate::links::{LinkedNamespaces, rate_and_mtu};
use crate::point::Link;
use crate::series::{Measured, Series, Unit};

/// The contenders: plain sockets, wrappers, the ORB, and those of other projects; over loopback also the ORB's other engines,
/// and the rungs of the ladder.
const MECHANISMS: [MechanismName; 18] = [
    MechanismName::C,
    MechanismName::Ipc,
    MechanismName::Orb,
    MechanismName::OmniOrb,
    MechanismName::Tao,
    MechanismName::Ace,
    MechanismName::Rpc,
    MechanismName::RpcOpaque,
    MechanismName::OmniOrbOriginal,
    MechanismName::OmniOrbOptimised,
    MechanismName::OrbPadded,
    MechanismName::OrbInterpretive,
    MechanismName::RungOriginal,
    MechanismName::RungSimpleInlining,
    MechanismName::RungInlined,
    MechanismName::RungPrecomputed,
    MechanismName::RungSplitDecoding,
    MechanismName::RungSplitEncoding,
];
/// The number of these that a slower link is measured with: engines do not differ where the link is the limit.
const MECHANISMS_OF_A_LINK: usize = 8;
/// The contenders of floods as datagrams.
const DATAGRAM_MECHANISMS: [MechanismName; 3] =
    [MechanismName::Orb, MechanismName::OrbBatched, MechanismName::OrbDatagrams];
/// User data of a run (paper 000, 2.2).
const PAPER_OCTETS: u64 = 64 << 20;
/// The greatest number of buffers of the trial that finds the length of runs.
const TRIAL_BUFFERS: u64 = 200;
/// The number of trials that a link with a rate carries in a second.
const TRIALS_IN_A_SECOND: u64 = 4;
/// The longest single run; beyond it the measurement has failed.
const LIMIT_SECONDS: u64 = 120;

/// The time of a point as planned: start, trial and warm-up beside the rounds.
pub(super) fn planned(link: Link) -> Duration {
    budget(Form::Full, link) + Duration::from_secs(5)
}

/// The time of all rounds of a point.
fn budget(form: Form, link: Link) -> Duration {
    Duration::from_secs(match (form, link) {
        (Form::Short, _) => 1,
        (Form::Full, Link::Loopback) => 20,
        (Form::Full, Link::Ethernet | Link::Atm) => 30,
    })
}

pub(super) fn measure(
    form: Form,
    link: Link,
    queue_octets: usize,
    data: DataType,
    buffer_octets: usize,
) -> Result<Measured, LabError> {
    let count = if link == Link::Loopback { MECHANISMS.len() } else { MECHANISMS_OF_A_LINK };
    let queue = u32::try_from(queue_octets).ok();
    flood(form, link, queue, data, buffer_octets, &MECHANISMS[..count]).map(|(measured, _)| measured)
}

/// A flood as datagrams with light headers of GIOP, beside the same over connections, with and without batches.
pub(super) fn of_datagrams(form: Form, data: DataType, buffer_octets: usize) -> Result<Measured, LabError> {
    // The system's own queues: one of 64 K holds two datagrams of that size.
    let (mut measured, results) = flood(form, Link::Loopback, None, data, buffer_octets, &DATAGRAM_MECHANISMS)?;
    for mechanism in DATAGRAM_MECHANISMS.into_iter().filter(|mechanism| mechanism.may_lose()) {
        let lost = |run: &Run| 100.0 * (1.0 - run.outcome.octets as f64 / run.flood.total_octets() as f64);
        let values = by_round(&results.runs, |run| run.mechanism == mechanism, lost);
        let runs = results.runs.iter().filter(|run| run.mechanism == mechanism);
        let octets = runs.map(|run| run.flood.total_octets() - run.outcome.octets).sum();
        let series = Series::new(format!("{mechanism} lost"), Unit::Percent, values);
        measured.series.push(series.counting("octets lost", octets));
    }
    Ok(measured)
}

/// Floods of all these mechanisms, which take turns in each round.
fn flood(
    form: Form,
    link: Link,
    queue_octets: Option<u32>,
    data: DataType,
    buffer_octets: usize,
    contenders: &[MechanismName],
) -> Result<(Measured, Results), LabError> {
    let budget = budget(form, link);
    let rounds = if form == Form::Full { 10 } else { 2 };
    let (mut mechanisms, mut absent) = (Vec::new(), Vec::new());
    for mechanism in contenders {
        match mechanism.check() {
            Ok(()) => mechanisms.push(*mechanism),
            Err(error) => absent.push((mechanism.name().to_owned(), error.chain())),
        }
    }
    let settings = Settings {
        types: vec![data],
        sizes: vec![Octets(buffer_octets as u64)],
        calls: vec![CallKind::OneWay],
        mechanisms,
        bytes: Octets(PAPER_OCTETS),
        repetitions: rounds,
        sockets: SocketOptions { queue_octets },
        placement: placement(),
        remote: None,
        limit_seconds: LIMIT_SECONDS,
        budget_seconds: Some(budget.as_secs()),
    };
    // A trial with few buffers tells how many octets a run may have.
    let trial_octets = trial_octets(link, buffer_octets as u64);
    let trial = run(&Settings { bytes: Octets(trial_octets), repetitions: 1, ..settings.clone() }, link)?;
    let octets = affordable_octets(&trial, budget, rounds);
    let results = run(&Settings { bytes: Octets(octets), ..settings.clone() }, link)?;
    let series: Vec<Series> = settings
        .mechanisms
        .iter()
        .map(|mechanism| {
            let runs = || results.runs.iter().filter(|run| run.mechanism == *mechanism);
            let values = by_round(&results.runs, |run| run.mechanism == *mechanism, |run| run.outcome.mbps());
            Series::new(mechanism.name(), Unit::MbitPerSecond, values)
                .counting("octets received", runs().map(|run| run.outcome.octets).sum())
                .counting("buffers", runs().map(|run| run.flood.buffers).sum())
        })
        .collect();
    let fewer_octets = (octets < PAPER_OCTETS).then(|| format!("{} octets in place of 64M", Octets(octets)));
    let fewer_rounds = cut_rounds(results.rounds(), rounds, budget);
    let remarks: Vec<String> = fewer_octets.into_iter().chain(fewer_rounds).collect();
    let measured = Measured { series, absent, cut: (!remarks.is_empty()).then(|| remarks.join(", ")) };
    Ok((measured, results))
}

/// The octets of the trial: a number of buffers, but on a link no more than it carries in a fraction of a second.
fn trial_octets(link: Link, buffer_octets: u64) -> u64 {
    let octets = buffer_octets.saturating_mul(TRIAL_BUFFERS).clamp(1, PAPER_OCTETS);
    let most = rate_and_mtu(link).map_or(PAPER_OCTETS, |(rate, _)| rate / 8 / TRIALS_IN_A_SECOND);
    octets.min(most.max(buffer_octets))
}

/// The octets of a run so that all rounds of all mechanisms fit into the time, by the rates of a trial.
fn affordable_octets(trial: &Results, budget: Duration, rounds: u32) -> u64 {
    let seconds_per_octet: f64 =
        trial.runs.iter().map(|run| run.outcome.seconds / run.flood.total_octets().max(1) as f64).sum();
    // One round more for warm-up.
    let octets = budget.as_secs_f64() / f64::from(rounds + 1) / seconds_per_octet.max(1e-12);
    (octets as u64).clamp(1, PAPER_OCTETS)
}

fn run(settings: &Settings, link: Link) -> Result<Results, LabError> {
    match LinkedNamespaces::create(link)? {
        Some(_namespaces) => ttcp::run(settings, &LinkedNamespaces::launch),
        None => ttcp::run(settings, &launch),
    }
}
