//! Where the time of floods and calls goes, by layer and by function.

use std::env;
use std::process::Command;
use std::time::Duration;

use spandrel_lab::LabError;
use spandrel_lab::bench::marshal;
use spandrel_lab::child_command::launch;
use spandrel_lab::mechanism::{Job as Transfer, MechanismName, SocketOptions, Work};
use spandrel_lab::peer::Outcome;
use spandrel_lab::peer::pair::{Launch, Pair};
use spandrel_lab::scalability::{self, CallData, Contender, Job, PROGRAMS, program_folder};
use spandrel_lab::workload::{CallKind, DataType, Flood};

use super::rounds::placement;
use crate::folder::Form;
use crate::profile::{self, Calls};
use crate::series::{Measured, Series, Unit};

/// The mechanisms whose floods are profiled.
const MECHANISMS: [MechanismName; 3] = [MechanismName::C, MechanismName::Ipc, MechanismName::Orb];
/// The socket queues of the papers' profiles.
const QUEUE_OCTETS: u32 = 64 << 10;
/// The time limit of one run under a profiler.
const LIMIT: Duration = Duration::from_secs(240);
/// Octets of user data of one flood without a profiler.
const FLOOD_OCTETS: u64 = 16 << 20;
/// Octets of user data of the flood that is sampled.
const SAMPLED_OCTETS: u64 = 8 << 30;

/// Floods of each mechanism: sender and receiver by layer and function, and their processor time without a profiler.
pub(super) fn of_floods(form: Form, data: DataType, buffer_octets: usize) -> Result<Measured, LabError> {
    let (calls, rounds, octets) = match form {
        Form::Full => {
            (Calls { few: 16, more: 80, sampled: Some(SAMPLED_OCTETS / buffer_octets as u64) }, 10, FLOOD_OCTETS)
        }
        Form::Short => (Calls { few: 20, more: 60, sampled: Some(20_000) }, 2, 1 << 20),
    };
    let mut measured = Measured::default();
    for mechanism in MECHANISMS {
        if form == Form::Short && mechanism != MechanismName::Orb {
            measured.absent.push((mechanism.name().to_owned(), "the short form profiles one mechanism".to_owned()));
            continue;
        }
        let flood = |buffers| Flood { data, call: CallKind::OneWay, buffer_octets, buffers };
        profile::measure(&mut measured, mechanism.name(), calls, &|start, buffers| {
            transfer(&|role| start.launch(role), mechanism, flood(buffers), 1).map(drop)
        })?;
        let flood = Flood::with_total(data, CallKind::OneWay, buffer_octets, octets);
        let outcomes = transfer(&launch, mechanism, flood, rounds)?;
        let micros = |seconds: fn(&Outcome) -> f64| {
            outcomes.iter().map(|outcome| seconds(outcome) * 1e6 / flood.buffers as f64).collect::<Vec<f64>>()
        };
        let counted = flood.buffers * u64::from(rounds);
        for (side, times) in [
            ("sender", micros(|outcome| outcome.transmitter_cpu)),
            ("receiver", micros(|outcome| outcome.receiver_cpu)),
        ] {
            let name = format!("{mechanism} {side} processor time");
            measured.series.push(Series::new(name, Unit::Microseconds, times).counting("calls", counted));
        }
    }
    Ok(measured)
}

/// Sequences written and read by each rung of the ladder: instructions and functions.
pub(super) fn of_the_ladder(form: Form, data: DataType, octets: usize) -> Result<Measured, LabError> {
    let (calls, rungs) = match form {
        Form::Full => (Calls { few: 10, more: 60, sampled: None }, marshal::Contender::rungs()),
        Form::Short => (Calls { few: 10, more: 60, sampled: None }, vec![marshal::Contender::ORIGINAL]),
    };
    let mut measured = Measured::default();
    for rung in marshal::Contender::rungs() {
        if !rungs.contains(&rung) {
            measured.absent.push((format!("{rung} "), "the short form profiles one rung".to_owned()));
            continue;
        }
        for direction in marshal::DIRECTIONS {
            let name = format!("{rung} {}", direction.name());
            profile::measure_process(&mut measured, &name, calls, &|turns| {
                let mut command = Command::new(env::current_exe().unwrap_or_else(|_| "spandrel-lab".into()));
                command.args(["repeat", rung.name(), direction.name(), data.name(), &octets.to_string()]);
                command.arg(turns.to_string());
                command
            })?;
        }
    }
    Ok(measured)
}

/// The same flood that many times, between two new processes that have ended afterwards.
fn transfer(launch: Launch<'_>, mechanism: MechanismName, flood: Flood, rounds: u32) -> Result<Vec<Outcome>, LabError> {
    let mut pair = Pair::start(launch, placement(), None)?;
    let sockets = SocketOptions { queue_octets: Some(QUEUE_OCTETS) };
    let job = Transfer { mechanism, sockets, work: Work::Flood(flood) };
    (0..rounds).map(|_| pair.run(&job, LIMIT)).collect()
}

/// Calls of each ORB with native programs: client and server by layer and function.
pub(super) fn of_calls(form: Form, job: Job, servants: u32) -> Result<Measured, LabError> {
    let calls = match (form, job.case) {
        (Form::Short, _) => Calls { few: 100, more: 200, sampled: Some(20_000) },
        (Form::Full, CallData::Void) => Calls { few: 200, more: 1_000, sampled: Some(200_000) },
        (Form::Full, _) => Calls { few: 100, more: 300, sampled: Some(20_000) },
    };
    let mut measured = Measured::default();
    for contender in [Contender::Orb, Contender::OmniOrb, Contender::Tao] {
        let name = format!("{contender} {}", job.style);
        // Only processes of this program sample themselves.
        let calls = if contender == Contender::Orb { calls } else { Calls { sampled: None, ..calls } };
        let folder = match program_folder(contender) {
            Ok(_) if form == Form::Short && contender != Contender::Orb => {
                Err("the short form profiles one ORB".to_owned())
            }
            other => other,
        };
        let folder = match folder {
            Ok(folder) => folder,
            Err(reason) => {
                measured.absent.push((name, reason));
                continue;
            }
        };
        let mut refused = None;
        let outcome = profile::measure(&mut measured, &name, calls, &|start, count| {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let folder = folder.as_deref().map(|folder| start.programs(folder, PROGRAMS)).transpose()?;
            let settings = scalability::Settings {
                servants: vec![servants],
                placements: vec![placement()],
                algorithms: vec![job.algorithm],
                calls: vec![job.call],
                cases: vec![job.case],
                styles: vec![job.style],
                contenders: vec![contender],
                calls_per_round: count,
                most_calls: count,
                rounds: 1,
                omniorb: folder,
                jacorb: None,
                limit_seconds: LIMIT.as_secs(),
                budget_seconds: None,
            };
            let results = scalability::run(&settings, &|role| start.launch(role))?;
            let reason = results.rows.iter().find_map(|row| row.absent.clone());
            match reason {
                Some(detail) => Err(LabError::Peer { role: format!("client of {contender}"), detail }),
                None => Ok(()),
            }
        });
        if let Err(error) = outcome {
            if contender == Contender::Orb {
                return Err(error);
            }
            refused = Some(error.chain());
        }
        measured.absent.extend(refused.map(|reason| (name, reason)));
    }
    measured.absent.push((format!("jacorb {}", job.style), "callgrind sees no functions of Java".to_owned()));
    Ok(measured)
}
