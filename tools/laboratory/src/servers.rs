//! Servers of every architecture under the load of paper 004 (section 5.6), each in a process of its own.

use std::env;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use spandrel_architectures::transfer::Transfer;
use spandrel_architectures::{Architecture, Port, Service, Settings};
use spandrel_ipc::inet::Addr;
use spandrel_lab::LabError;
use spandrel_lab::peer::child::ChildHandle;
use spandrel_orchestra::agent::processor_times;
use spandrel_orchestra::load::{self, Control};

use crate::folder::Form;
use crate::series::{Measured, Series, Unit};

/// The architectures of the paper's servers on Linux.
const ARCHITECTURES: [Architecture; 6] = [
    Architecture::Iterative,
    Architecture::Reactive,
    Architecture::ProcessPerConnection,
    Architecture::ThreadPerConnection,
    Architecture::QueuePool,
    Architecture::AcceptPool,
];
/// The load of the paper: requests of a sample, octets of an answer, and clients at once.
const REQUESTS: u64 = 20_000;
const OCTETS: u32 = 4_000;
const CLIENTS: u32 = 5;
/// The time after which no further round begins.
const BUDGET: Duration = Duration::from_secs(600);
/// The longest start of a server.
const START: Duration = Duration::from_secs(10);
/// The time that connections have to end, when a server stops.
const STOP: Duration = Duration::from_secs(2);

/// Serve the transfer service of paper 004 until standard input ends; prints the port.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// The architecture of the server
    architecture: Architecture,
}

impl ServeArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let port = Port::exclusive(&Addr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))?;
        let addr = SocketAddr::from(port.addr()?);
        let service = Service::Transfer(Transfer { has_greeting: true });
        let server = self.architecture.start(&port, &service, &Settings::default());
        let server = server.with_context(|| format!("cannot start the server `{}`", self.architecture))?;
        let mut out = io::stdout().lock();
        writeln!(out, "{}", addr.port()).and_then(|()| out.flush()).context("cannot speak to the parent")?;
        io::copy(&mut io::stdin().lock(), &mut io::sink()).context("cannot listen to the parent")?;
        _ = server.stop(STOP);
        Ok(ExitCode::SUCCESS)
    }
}

/// A server under test, and what was measured.
struct Tested {
    architecture: Architecture,
    server: ChildHandle,
    addr: SocketAddr,
    elapsed: Vec<f64>,
    user: Vec<f64>,
    system: Vec<f64>,
    answered: u64,
}

impl Tested {
    fn start(architecture: Architecture) -> Result<Self, LabError> {
        let program = env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(["serve", architecture.name()]);
        let mut server = ChildHandle::start("server", command)?;
        let line = server.line(START)?;
        let port: u16 =
            line.parse().map_err(|_| LabError::Protocol { role: "server".to_owned(), found: line.clone() })?;
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (elapsed, user, system) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { architecture, server, addr, elapsed, user, system, answered: 0 })
    }

    /// Applies the load once.
    fn sample(&mut self, requests: u64) -> Result<(), LabError> {
        let before = processor_times(self.server.id());
        let load = load::paper_load(&self.addr.ip().to_string(), self.addr.port(), requests, OCTETS, CLIENTS);
        let result = load::run(&load, &self.addr, &Control::default()).map_err(|error| failed(error.reason))?;
        if result.answered != requests {
            let (name, lost) = (self.architecture, requests - result.answered);
            return Err(failed(format!("the server `{name}` did not answer {lost} of {requests} requests")));
        }
        let after = processor_times(self.server.id());
        self.elapsed.push(result.elapsed);
        self.user.push((after.0 - before.0).max(0.0));
        self.system.push((after.1 - before.1).max(0.0));
        self.answered += result.answered;
        Ok(())
    }
}

fn failed(reason: impl ToString) -> LabError {
    LabError::Peer { role: "experiment".to_owned(), detail: reason.to_string() }
}

/// Elapsed and processor time of a load by architecture; the servers take turns in each round.
pub(crate) fn measure(form: Form) -> Result<Measured, LabError> {
    let (rounds, requests) = if form == Form::Full { (10_usize, REQUESTS) } else { (2, 50) };
    let mut measured = Measured::default();
    let mut tested = Vec::new();
    for architecture in ARCHITECTURES {
        if architecture.is_available() {
            tested.push(Tested::start(architecture)?);
        } else {
            let reason = "this system does not have it".to_owned();
            measured.absent.push((architecture.name().to_owned(), reason));
        }
    }
    let start = Instant::now();
    for round in 0..rounds {
        if round > 0 && start.elapsed() >= BUDGET {
            measured.cut = Some(format!("{round} of {rounds} rounds within {} s", BUDGET.as_secs()));
            break;
        }
        // The order rotates, so that no server always follows the same one.
        tested.rotate_left(1);
        for one in &mut tested {
            one.sample(requests)?;
        }
    }
    tested.sort_by_key(|one| ARCHITECTURES.iter().position(|architecture| *architecture == one.architecture));
    for one in tested {
        let name = one.architecture;
        let both = one.user.iter().zip(&one.system).map(|(user, system)| user + system).collect();
        let elapsed = Series::new(format!("{name} elapsed"), Unit::Seconds, one.elapsed);
        measured.series.push(elapsed.counting("answers", one.answered));
        measured.series.push(Series::new(format!("{name} processor"), Unit::Seconds, both));
        measured.series.push(Series::new(format!("{name} user"), Unit::Seconds, one.user));
        measured.series.push(Series::new(format!("{name} system"), Unit::Seconds, one.system));
    }
    Ok(measured)
}
