//! Runs the rounds of echoes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use spandrel_measure::units::grouped;

use super::contender::Contender;
use super::results::{Absent, Echoed, Measurement};
use super::settings::Load;
use super::{Results, Settings};
use crate::LabError;
use crate::bench::driver::exchange::Exchange;
use crate::bench::driver::load::Connections;
use crate::bench::driver::peers;
use crate::machine::{Machine, resident_octets};
use crate::peer::EchoServer;
use crate::peer::child::{ChildHandle, ChildKind, ChildRole};
use crate::peer::pair::Launch;
use crate::placement::{Placement, Role, cores, on_core};
use crate::progress::Progress;
use crate::raw::processor_time::processor_time;

/// The duration of the warm-up run of each contender and load, as a fraction of a run.
const WARM_UP_PART: u32 = 10;
/// An upper bound of the open descriptors besides connections.
const OTHER_DESCRIPTORS: u64 = 128;
/// The pause before a server that refused is tried again.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(1);

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
            (_, Some(name)) => peers::find(name, settings.peers.as_deref()).map(Program::Other),
            (Contender::Ours(server), _) if server.is_available() => Ok(Program::This(server)),
            _ => Err("this system does not offer it".to_owned()),
        };
        match server {
            Ok(program) => available.push(AvailableContender { contender, program }),
            Err(reason) => absent.push(Absent { contender, load: None, reason }),
        }
    }
    (available, absent)
}

/// Raises the descriptor limit as far as the system permits; the servers inherit it.
fn raise_descriptor_limit(connections: u64) -> Result<(), LabError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    raised.map_err(|errno| LabError::io("raise the limit of open descriptors")(errno.into()))?;
    match limit.maximum {
        Some(most) if most < connections + OTHER_DESCRIPTORS => Err(LabError::Settings(format!(
            "{} connections need as many descriptors in one process, and the limit is {}; raise it (ulimit -Hn)",
            grouped(connections as f64),
            grouped(most as f64)
        ))),
        _ => Ok(()),
    }
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
    This(EchoServer),
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
    process: ChildHandle,
    addr: SocketAddr,
    exchange: Exchange,
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
        match Connections::open(server.addr, load, &server.exchange, self.settings.limit()) {
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
        server.settle(self.settings.limit())
    }
}

impl Server {
    fn start(
        launch: Launch<'_>,
        available: &AvailableContender,
        core: Option<usize>,
        settings: &Settings,
    ) -> Result<Self, LabError> {
        let (octets, limit) = (settings.octets as usize, settings.limit());
        let command = match &available.program {
            Program::Other(program) => Command::new(program),
            Program::This(server) => launch(&ChildRole { kind: ChildKind::Echo(*server), core: None }),
        };
        // A child inherits the core of the thread that starts it.
        let mut process = on_core(core, || ChildHandle::start("echo server", command))??;
        let line = process.line(limit)?;
        let (port, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let parsed = port.parse::<u16>().ok().zip(Exchange::read(rest, octets));
        let (port, exchange) = parsed.ok_or_else(|| LabError::Protocol {
            role: format!("{} server", available.contender),
            found: line.clone(),
        })?;
        let addr = (Ipv4Addr::LOCALHOST, port).into();
        Ok(Self { contender: available.contender, process, addr, exchange, least_octets: u64::MAX })
    }

    /// Its present memory, where the system reports it.
    fn look(&mut self) -> Option<u64> {
        let now = resident_octets(self.process.id())?;
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
        let before = processor_time(self.process.id()).ok();
        let echoed = connections.run(time).map_err(drive)?;
        let after = processor_time(self.process.id()).ok();
        Ok((echoed, before.zip(after).map(|(before, after)| (after - before).as_secs_f64())))
    }

    /// Waits until the server has noticed that all connections are closed, so that this does not count in the
    /// next run.
    ///
    /// A server that had as many connections as it can hold refuses further ones until then, and is retried.
    fn settle(&self, limit: Duration) -> Result<(), LabError> {
        let (alone, start) = (Load { idle: 0, active: 1 }, Instant::now());
        loop {
            match Connections::open(self.addr, alone, &self.exchange, limit) {
                Ok(_) => return Ok(()),
                Err(_) if start.elapsed() < limit => thread::sleep(BETWEEN_ATTEMPTS),
                Err(error) => return Err(LabError::io(format!("reach the {} server again", self.contender))(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_connections_than_descriptors_are_refused() {
        let error = raise_descriptor_limit(u64::MAX / 2).unwrap_err();
        assert!(error.to_string().contains("descriptors"), "{error}");
    }
}
