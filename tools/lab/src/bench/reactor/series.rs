//! Runs the rounds of echoes.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use spandrel_measure::units::grouped;

use super::contender::Contender;
use super::results::{Absent, Echoed, Measurement};
use super::settings::Load;
use super::{Results, Settings};
use crate::LabError;
use crate::bench::driver::exchange::Exchange;
use crate::bench::driver::load::Connections;
use crate::bench::driver::server::{ServerProcess, raise_descriptor_limit};
use crate::machine::Machine;
use crate::peer::child::{ChildKind, ChildRole};
use crate::peer::pair::Launch;
use crate::peer_programs;
use crate::placement::{Placement, Role, cores, on_core};
use crate::progress::Progress;

/// The duration of the warm-up run of each contender and load, as a fraction of a run.
const WARM_UP_PART: u32 = 10;
/// The options of the ORB: its connections share the threads of its reactor.
const ORB_OPTIONS: [&str; 2] = ["-ORBConcurrency", "leader-followers"];

/// Runs the whole series and summarises it. A contender that is not available, or cannot hold that many
/// connections, keeps its row, with the reason.
///
/// # Errors
/// If the settings are invalid, or a run fails.
pub fn run(settings: &Settings, launch: Launch<'_>) -> Result<Results, LabError> {
    settings.check()?;
    raise_descriptor_limit(settings.loads.iter().map(|load| load.connections()).max().unwrap_or(0))?;
    let machine = Machine::here();
    let (available, absent) = find_contenders(settings);
    let runs = available.len() * settings.placements.len() * settings.loads.len() * settings.rounds as usize;
    let progress = Progress::begin(runs as u64);
    let mut series = Series { settings, start: Instant::now(), progress, available, absent, measured: Vec::new() };
    let mut outcome = Ok(());
    for (index, placement) in settings.placements.iter().enumerate() {
        outcome = outcome.and_then(|()| series.placed(launch, *placement, index + 1));
    }
    series.progress.finish();
    outcome?;
    Ok(Results::from_measurements(machine, settings.clone(), series.measured, &series.absent))
}

/// The contenders that can be run, and the others, with the reason.
fn find_contenders(settings: &Settings) -> (Vec<AvailableContender>, Vec<Absent>) {
    let (mut available, mut absent) = (Vec::new(), Vec::new());
    for contender in settings.contenders.iter().copied() {
        let server = match (contender, contender.peer()) {
            (_, Some(name)) => peer_programs::find(name, settings.peers.as_deref()).map(Program::Other),
            (Contender::Ours(server), _) if server.is_available() => Ok(Program::This(ChildKind::Echo(server))),
            (Contender::Orb, _) => {
                let options = ORB_OPTIONS.map(str::to_owned).to_vec();
                Ok(Program::This(ChildKind::CallsServer { options, work_micros: 0, is_asynchronous: false }))
            }
            _ => Err("this system does not offer it".to_owned()),
        };
        match server {
            Ok(program) => available.push(AvailableContender { contender, program }),
            Err(reason) => absent.push(Absent { contender, load: None, reason }),
        }
    }
    (available, absent)
}

#[derive(Clone, Debug)]
struct AvailableContender {
    contender: Contender,
    program: Program,
}

/// The program of a server's process.
#[derive(Clone, Debug)]
enum Program {
    /// A program of another project.
    Other(PathBuf),
    /// This program, as one of our servers.
    This(ChildKind),
}

struct Series<'a> {
    settings: &'a Settings,
    start: Instant,
    progress: Progress,
    available: Vec<AvailableContender>,
    absent: Vec<Absent>,
    measured: Vec<Measurement>,
}

/// The process of an echo server.
struct Server {
    contender: Contender,
    process: ServerProcess,
    /// The least memory observed.
    least_octets: u64,
}

impl Series<'_> {
    /// All rounds of one placement. The servers run on their core, and this program's load on its own.
    fn placed(&mut self, launch: Launch<'_>, placement: Placement, number: usize) -> Result<(), LabError> {
        let cores = cores();
        let (of_load, of_server) =
            (placement.core(Role::Transmitter, &cores)?, placement.core(Role::Receiver, &cores)?);
        let start = |available: &AvailableContender| Server::start(launch, available, of_server, self.settings);
        let mut servers = self.available.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        on_core(of_load, || self.rounds(&mut servers, placement, number))?
    }

    fn rounds(&mut self, servers: &mut [Server], placement: Placement, number: usize) -> Result<(), LabError> {
        for round in 0..self.settings.rounds {
            for load in &self.settings.loads {
                if round > 0 && self.is_overdue(number) {
                    return Ok(());
                }
                // The order rotates from round to round, so that no contender always follows the same one.
                let turn = round as usize % servers.len().max(1);
                servers.rotate_left(turn);
                for server in &mut *servers {
                    self.one(server, placement, *load, round)?;
                }
                servers.rotate_right(turn);
            }
        }
        Ok(())
    }

    /// Whether the placement's share of the time is used up.
    fn is_overdue(&self, number: usize) -> bool {
        let share = number as f64 / self.settings.placements.len() as f64;
        let budget = self.settings.budget_seconds.map(|budget| Duration::from_secs(budget).mul_f64(share));
        budget.is_some_and(|budget| self.start.elapsed() >= budget)
    }

    fn one(&mut self, server: &mut Server, placement: Placement, load: Load, round: u32) -> Result<(), LabError> {
        let contender = server.contender;
        if self.absent.iter().any(|absent| absent.contender == contender && absent.load == Some(load)) {
            return Ok(());
        }
        let label = format!("{contender} {load} ({})", placement.description());
        self.progress.at(&label);
        let before = server.look();
        match server.process.open(load.idle, load.active) {
            Ok(mut connections) => {
                let each_octets = server.look().zip(before).map(|(now, _)| server.each(now, load));
                let (echoed, server_cpu) = server.drive(&mut connections, self.settings.run_time())?;
                let rate = format!("{} events/s", grouped(echoed.events_per_second()));
                self.progress.step(&label, &rate);
                self.measured.push(Measurement { placement, load, round, contender, echoed, server_cpu, each_octets });
            }
            Err(error) => {
                let reason = format!("it does not hold {} connections: {error}", grouped(load.connections() as f64));
                self.progress.step(&label, &reason);
                self.absent.push(Absent { contender, load: Some(load), reason });
            }
        }
        server.process.settle()
    }
}

impl Server {
    fn start(
        launch: Launch<'_>,
        available: &AvailableContender,
        core: Option<usize>,
        settings: &Settings,
    ) -> Result<Self, LabError> {
        let command = match &available.program {
            Program::Other(program) => Command::new(program),
            Program::This(kind) => launch(&ChildRole { kind: kind.clone(), core: None }),
        };
        let (name, echo) = (available.contender.to_string(), Exchange::echo(settings.octets as usize));
        let process = ServerProcess::start(name, command, core, &echo, settings.limit())?;
        Ok(Self { contender: available.contender, process, least_octets: u64::MAX })
    }

    /// Its present memory, where the system reports it.
    fn look(&mut self) -> Option<u64> {
        let now = self.process.resident()?;
        self.least_octets = self.least_octets.min(now);
        Some(now)
    }

    /// The share of each connection in its memory, which is `now`; allocators keep the memory of earlier
    /// loads.
    fn each(&self, now: u64, load: Load) -> f64 {
        (now - self.least_octets) as f64 / load.connections() as f64
    }

    /// One run, after a short warm-up, and the processor time that the server used for it.
    fn drive(&self, connections: &mut Connections, time: Duration) -> Result<(Echoed, Option<f64>), LabError> {
        let drive = |error| LabError::io(format!("drive the {} server", self.contender))(error);
        connections.run(time / WARM_UP_PART).map_err(drive)?;
        let before = self.process.processor_time();
        let run = connections.run(time).map_err(drive)?;
        let used = self.process.processor_time().zip(before).map(|(after, before)| (after - before).as_secs_f64());
        Ok((Echoed::from_run(&run), used))
    }
}
