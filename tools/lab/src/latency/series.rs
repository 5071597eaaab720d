//! Runs the rounds of calls.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::contender::Contender;
use super::foreign_orb::{ForeignOrb, OrbName};
use super::results::{Measurement, Results};
use super::settings::Settings;
use crate::LabError;
use crate::machine::Machine;
use crate::mechanism::{Job, MechanismName, SocketOptions, Work};
use crate::peer::pair::{Launch, Pair};
use crate::placement::Placement;
use crate::progress::Progress;
use crate::workload::{BIN_STRUCT_OCTETS, PING_STRUCTS, PingCase, PingPong};

/// The octets of an ORB's message besides a call's data, if there is no ORB in the series to measure them.
const USUAL_REQUEST_OCTETS: usize = 64;
const USUAL_REPLY_OCTETS: usize = 24;

/// Runs the whole series and summarises it. A contender that is not available keeps its row, with the reason.
///
/// # Errors
/// If the settings are invalid, or a run fails.
pub fn run(settings: &Settings, launch: Launch<'_>) -> Result<Results, LabError> {
    settings.check()?;
    let machine = Machine::here();
    let (available, absent) = find_contenders(settings);
    let runs = available.len() * settings.placements.len() * settings.cases.len() * settings.rounds as usize;
    let progress = Progress::begin(runs as u64);
    let mut series = Series { settings, start: Instant::now(), progress, available, measured: Vec::new() };
    let mut outcome = Ok(());
    for (index, placement) in settings.placements.iter().enumerate() {
        outcome = outcome.and_then(|()| series.placed(launch, *placement, index + 1));
    }
    series.progress.finish();
    outcome?;
    Ok(Results::from_measurements(machine, settings.clone(), series.measured, &absent))
}

/// The contenders that can be run, and the others, with the reason.
fn find_contenders(settings: &Settings) -> (Vec<AvailableContender>, Vec<(Contender, String)>) {
    let (mut available, mut absent) = (Vec::new(), Vec::new());
    for contender in &settings.contenders {
        let found = match contender {
            Contender::Mechanism(name) if settings.remote.is_some() && !name.leaves_the_machine() => {
                Err("it is run on this machine only".to_owned())
            }
            Contender::Mechanism(name) => {
                name.mechanism().map(|_| AvailableContender::Mechanism(*name)).map_err(|error| error.to_string())
            }
            Contender::OmniOrb | Contender::Tao if settings.remote.is_some() => {
                Err("it is run on this machine only".to_owned())
            }
            Contender::OmniOrb => find_foreign(OrbName::OmniOrb, settings.omniorb.as_deref()),
            Contender::Tao => find_foreign(OrbName::Tao, None),
        };
        match found {
            Ok(found) => available.push(found),
            Err(reason) => absent.push((*contender, reason)),
        }
    }
    (available, absent)
}

fn find_foreign(orb: OrbName, folder: Option<&Path>) -> Result<AvailableContender, String> {
    orb.find(folder).map(|folder| AvailableContender::Foreign(orb, folder))
}

#[derive(Clone, Debug)]
enum AvailableContender {
    Mechanism(MechanismName),
    /// The ORB, and the folder with its programs.
    Foreign(OrbName, PathBuf),
}

struct Series<'a> {
    settings: &'a Settings,
    start: Instant,
    progress: Progress,
    available: Vec<AvailableContender>,
    measured: Vec<Measurement>,
}

/// The processes of one placement.
struct Stage {
    placement: Placement,
    pair: Pair,
    foreign: Vec<(OrbName, ForeignOrb)>,
    wire: Vec<(PingCase, usize, usize)>,
}

impl Series<'_> {
    fn placed(&mut self, launch: Launch<'_>, placement: Placement, number: usize) -> Result<(), LabError> {
        let mut stage = Stage {
            placement,
            pair: Pair::start(launch, placement, self.settings.remote.as_deref())?,
            foreign: Vec::new(),
            wire: Vec::new(),
        };
        for contender in &self.available {
            if let AvailableContender::Foreign(orb, folder) = contender {
                stage.foreign.push((*orb, ForeignOrb::start(*orb, folder, placement)?));
            }
        }
        for case in &self.settings.cases {
            let (request, reply) = self.octets(&mut stage, *case)?;
            stage.wire.push((*case, request, reply));
        }
        for round in 0..self.settings.rounds {
            if round > 0 && self.is_overdue(number) {
                break;
            }
            for (case, request, reply) in stage.wire.clone() {
                let work = PingPong {
                    case,
                    warm_up: self.settings.warm_up(),
                    calls: self.settings.calls,
                    request_octets: request,
                    reply_octets: reply,
                };
                let mut order = self.available.clone();
                let turn = round as usize % order.len().max(1);
                order.rotate_left(turn);
                for contender in &order {
                    self.one(&mut stage, round, contender, &work)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the placement's share of the time is used up.
    fn is_overdue(&self, number: usize) -> bool {
        let share =
            |budget: u64| Duration::from_secs(budget).mul_f64(number as f64 / self.settings.placements.len() as f64);
        self.settings.budget_seconds.is_some_and(|budget| self.start.elapsed() >= share(budget))
    }

    /// The number of octets of a request and a reply of the ORB.
    fn octets(&self, stage: &mut Stage, case: PingCase) -> Result<(usize, usize), LabError> {
        for contender in &self.available {
            let AvailableContender::Mechanism(mechanism) = contender else { continue };
            if mechanism.counts_octets() {
                let job = Job { mechanism: *mechanism, sockets: SOCKETS, work: Work::Wire(case) };
                if let Some((request, reply)) = stage.pair.run(&job, self.settings.limit())?.wire {
                    return Ok((request as usize, reply as usize));
                }
            }
        }
        let data = match case {
            PingCase::Void => 0,
            PingCase::Structs => PING_STRUCTS * BIN_STRUCT_OCTETS,
        };
        Ok((USUAL_REQUEST_OCTETS + data, USUAL_REPLY_OCTETS))
    }

    fn one(
        &mut self,
        stage: &mut Stage,
        round: u32,
        contender: &AvailableContender,
        work: &PingPong,
    ) -> Result<(), LabError> {
        let limit = self.settings.limit();
        let name = match contender {
            AvailableContender::Mechanism(mechanism) => Contender::Mechanism(*mechanism),
            AvailableContender::Foreign(OrbName::OmniOrb, _) => Contender::OmniOrb,
            AvailableContender::Foreign(OrbName::Tao, _) => Contender::Tao,
        };
        let label = format!("{name} {} ({})", work.case, stage.placement.description());
        self.progress.at(&label);
        let (times, wire) = match contender {
            AvailableContender::Mechanism(mechanism) => {
                let job = Job { mechanism: *mechanism, sockets: SOCKETS, work: Work::PingPong(*work) };
                (stage.pair.run(&job, limit)?.times, Some((work.request_octets, work.reply_octets)))
            }
            AvailableContender::Foreign(orb, _) => {
                let running = stage.foreign.iter_mut().find(|(name, _)| name == orb);
                let times = running.map(|(_, foreign)| foreign.run(work.case, work.warm_up, work.calls, limit));
                (times.transpose()?, None)
            }
        };
        let missing =
            || LabError::Protocol { role: "transmitter".to_owned(), found: "an outcome without times".to_owned() };
        let times = times.ok_or_else(missing)?;
        self.progress.step(&label, &format!("{:.2} µs", times.each.median));
        self.measured.push(Measurement {
            placement: stage.placement,
            case: work.case,
            round,
            contender: name,
            times,
            wire,
        });
        Ok(())
    }
}

/// Latency is measured with the queues that the system chooses.
const SOCKETS: SocketOptions = SocketOptions { queue_octets: None };

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            placements: vec![Placement::Free],
            cases: vec![PingCase::Void],
            contenders: Contender::all(),
            calls: 100,
            rounds: 3,
            remote: None,
            omniorb: None,
            limit_seconds: 10,
            budget_seconds: None,
        }
    }

    #[test]
    fn an_absent_contender_is_named_with_the_reason() {
        let nowhere = tempfile::tempdir().unwrap();
        let settings = Settings { omniorb: Some(nowhere.path().to_owned()), ..settings() };
        let (available, absent) = find_contenders(&settings);
        assert_eq!(available.len() + absent.len(), Contender::all().len());
        let (_, reason) =
            absent.iter().find(|(contender, _)| *contender == Contender::OmniOrb).expect("nothing is there");
        assert!(reason.contains("has no latency-server"), "{reason}");
        let results = Results::from_measurements(Machine::example(), settings, Vec::new(), &absent);
        assert!(results.rows.iter().any(|row| row.contender == Contender::OmniOrb && row.absent.is_some()));
    }

    #[test]
    fn invalid_settings_are_refused() {
        assert!(settings().check().is_ok());
        assert!(Settings { calls: 0, ..settings() }.check().is_err());
        assert!(Settings { cases: Vec::new(), ..settings() }.check().is_err());
    }
}
