//! Runs the interleaved rounds of all contenders.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::clients::{self, Target};
use super::results::{Absent, Configuration, Figures, Measurement, Results};
use super::settings::{Contender, Load, Settings, Sockets, scheduling};
use super::steal;
use crate::LabError;
use crate::interop;
use crate::machine::Machine;
use crate::peer::child::ChildHandle;
use crate::peer::pair::Launch;
use crate::placement::{Placement, Role, cores, on_core};
use crate::progress::Progress;

/// Runs the whole series and summarises it. A contender that is not available keeps its row, with the reason.
///
/// # Errors
/// If the settings are invalid, or a run fails.
pub fn run(settings: &Settings, launch: Launch<'_>) -> Result<Results, LabError> {
    let mut settings = settings.clone();
    settings.check()?;
    settings.loads.retain(|load| *load != Load::Alone);
    settings.loads.insert(0, Load::Alone);
    if let Some(index) = settings.loads.iter().position(|load| load.base() == Load::Nested(0)) {
        settings.loads.retain(|load| *load != Load::Nested(0));
        settings.loads.insert(index, Load::Nested(0));
    }
    let machine = Machine::here();
    let runs = settings.contenders.len() * settings.placements.len() * settings.sockets.len() * settings.loads.len();
    let progress = Progress::begin((runs * settings.rounds as usize) as u64);
    let mut series = Series { start: Instant::now(), progress, absent: Vec::new(), measured: Vec::new() };
    let all: Vec<(Placement, Sockets)> = settings
        .placements
        .iter()
        .flat_map(|placement| settings.sockets.iter().map(move |sockets| (*placement, *sockets)))
        .collect();
    let mut outcome = Ok(());
    for (index, (placement, sockets)) in all.iter().enumerate() {
        let share = (index + 1) as f64 / all.len() as f64;
        outcome = outcome.and_then(|()| series.placed(&settings, launch, (*placement, *sockets), share));
    }
    series.progress.finish();
    outcome?;
    let class = scheduling().class().to_string();
    let Series { measured, absent, .. } = series;
    Ok(Results::from_measurements(machine, class, settings, measured, &absent))
}

struct Series {
    start: Instant,
    progress: Progress,
    absent: Vec<Absent>,
    measured: Vec<Measurement>,
}

/// The servers of one contender.
struct Servers {
    server: Server,
    /// Calls of the first one.
    intermediary: Option<Server>,
}

/// The process of a server, and the file of its UNIX-domain socket.
struct Server {
    target: Target,
    /// Its port, its path, or the reference of its object.
    address: String,
    _process: ChildHandle,
    _path: Option<SocketPath>,
}

/// The path of a socket, which is removed when it is dropped.
struct SocketPath(PathBuf);

impl SocketPath {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("spandrel-rt-{}-{number}", std::process::id())))
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

impl Server {
    /// Starts a contender's server on its core; or returns the reason why it is absent.
    fn start(
        contender: Contender,
        settings: &Settings,
        launch: Launch<'_>,
        (placement, sockets): (Placement, Sockets),
        next: Option<&Self>,
    ) -> Result<Result<Self, String>, LabError> {
        let path = (sockets == Sockets::Unix).then(SocketPath::new);
        let text = path.as_ref().map(|path| path.0.to_string_lossy().into_owned());
        let command = match contender.server(settings, launch, text.as_deref(), next.map(|next| &*next.address)) {
            Ok(command) => command,
            Err(reason) => return Ok(Err(reason)),
        };
        // A child inherits the core of the thread that starts it.
        let core = placement.core(Role::Receiver, &cores())?;
        let mut process = on_core(core, || ChildHandle::start("server", command))??;
        let line = process.line(settings.limit())?;
        let Some(target) = Target::from_line(line.trim(), path.as_ref().map(|path| &*path.0)) else {
            return Err(LabError::Protocol { role: format!("{contender} server"), found: line });
        };
        let is_orb = target.is_orb();
        let address = text.filter(|_| !is_orb).unwrap_or_else(|| line.trim().to_owned());
        Ok(Ok(Self { target, address, _process: process, _path: path }))
    }
}

impl Series {
    /// All rounds of one placement with one kind of sockets. The clients run on their core.
    fn placed(
        &mut self,
        settings: &Settings,
        launch: Launch<'_>,
        surroundings: (Placement, Sockets),
        share: f64,
    ) -> Result<(), LabError> {
        let is_nested = settings.loads.contains(&Load::Nested(0));
        let mut servers = Vec::new();
        for contender in &settings.contenders {
            let start = |next| Server::start(*contender, settings, launch, surroundings, next);
            match start(None)? {
                Ok(server) => {
                    let intermediary = if is_nested { start(Some(&server))?.ok() } else { None };
                    servers.push((*contender, Servers { server, intermediary }));
                }
                Err(reason) => {
                    self.absent.push(Absent { contender: *contender, sockets: surroundings.1, load: None, reason });
                }
            }
        }
        let budget = settings.budget_seconds.map(|budget| Duration::from_secs(budget).mul_f64(share));
        let core = surroundings.0.core(Role::Transmitter, &cores())?;
        on_core(core, move || {
            for round in 0..settings.rounds {
                if round > 0 && budget.is_some_and(|budget| self.start.elapsed() >= budget) {
                    break;
                }
                for load in &settings.loads {
                    // The order rotates from round to round, so that no contender always follows the same one.
                    let turn = round as usize % servers.len().max(1);
                    for (contender, servers) in servers[turn..].iter().chain(&servers[..turn]) {
                        self.one(settings, (*contender, servers), (surroundings, *load, round))?;
                    }
                }
            }
            Ok(())
        })?
    }

    fn one(
        &mut self,
        settings: &Settings,
        (contender, servers): (Contender, &Servers),
        ((placement, sockets), load, round): ((Placement, Sockets), Load, u32),
    ) -> Result<(), LabError> {
        let label = format!("{contender}, {load} ({sockets}, {})", placement.description());
        self.progress.at(&label);
        let Servers { server, intermediary } = servers;
        let run = match (load, intermediary) {
            (Load::Spin, _) if !contender.has_priorities() => Err("its threads have no priorities".to_owned()),
            (Load::Foreign(_), _) if !contender.has_orb() => Err("its messages are not those of an ORB".to_owned()),
            (Load::Foreign(clients), _) => {
                let folder = interop::find("omniorb", &[FLOOD_CLIENT], settings.omniorb.as_deref());
                folder.map(|folder| (server, Some((folder.join(FLOOD_CLIENT), clients))))
            }
            (Load::Nested(_), Some(intermediary)) => Ok((intermediary, None)),
            (Load::Nested(_), None) => Err("it has no intermediary".to_owned()),
            _ => Ok((server, None)),
        };
        let (server, foreign) = match run {
            Ok(run) => run,
            Err(reason) => {
                self.progress.step(&label, &reason);
                self.absent.push(Absent { contender, sockets, load: Some(load), reason });
                return Ok(());
            }
        };
        let foreign = || {
            let (program, clients) = foreign.as_ref()?;
            let mut command = Command::new(program);
            command.args([&server.address, &clients.to_string()]);
            Some(command)
        };
        let figures = measure(&server.target, load, settings, &foreign)?;
        self.progress.step(&label, &format!("{:.0} µs at the 99th percentile", figures.p99_us));
        let configuration = Configuration { placement, sockets, load, contender };
        self.measured.push(Measurement { configuration, round, figures });
        Ok(())
    }
}

/// omniORB's program that floods a server.
const FLOOD_CLIENT: &str = "flood-client";

/// Makes a run, and repeats it as long as the host takes too much of the processors' time.
fn measure(
    target: &Target,
    load: Load,
    settings: &Settings,
    foreign: &dyn Fn() -> Option<Command>,
) -> Result<Figures, LabError> {
    let mut best: Option<Figures> = None;
    for attempts in 1..=steal::ATTEMPTS {
        let meter = steal::Meter::start();
        let calls = clients::run(target, load, settings, foreign())?;
        let steal = meter.part();
        let periods = (settings.run_time().as_nanos() / settings.period().as_nanos()).max(1) as u64;
        let figures = Figures::from_nanos(&calls.nanos).expect("a run has a call");
        let figures = Figures { periods, missed: calls.missed, others: calls.others, steal, attempts, ..figures };
        if figures.median_us < settings.high_work().as_secs_f64() * 1e6 {
            let detail = "a call took less time than its servant".to_owned();
            return Err(LabError::Peer { role: "server".to_owned(), detail });
        }
        let is_better = best.is_none_or(|best| steal < best.steal);
        best = best.filter(|_| !is_better).or(Some(figures)).map(|best| Figures { attempts, ..best });
        if steal.is_none_or(|steal| steal <= steal::MOST) {
            break;
        }
    }
    Ok(best.expect("there is at least one attempt"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Settings of a short series in one thread.
    pub(in super::super) fn settings() -> Settings {
        Settings {
            placements: vec![Placement::Free],
            sockets: vec![Sockets::Tcp],
            loads: vec![Load::Alone],
            contenders: vec![Contender::C],
            run_millis: 20,
            rounds: 1,
            period_micros: 1_000,
            high_work_micros: 100,
            low_work_micros: 2_000,
            peers: None,
            omniorb: None,
            jacorb: None,
            limit_seconds: 60,
            budget_seconds: None,
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        assert!(settings().check().is_ok());
        let wrong = [
            (Settings { contenders: Vec::new(), ..settings() }, "nothing to run"),
            (Settings { run_millis: 0, ..settings() }, "above zero"),
            (Settings { loads: vec![Load::Flood(1_001)], ..settings() }, "not 1001"),
            (Settings { loads: vec![Load::Nested(1_001)], ..settings() }, "not 1001"),
            (Settings { loads: vec![Load::Foreign(0)], ..settings() }, "not 0"),
            (Settings { period_micros: 0, ..settings() }, "not 0"),
        ];
        for (settings, words) in wrong {
            let error = settings.check().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
