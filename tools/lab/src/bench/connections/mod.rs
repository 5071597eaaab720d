//! The experiment with busy connections: calls per second, the server's cost of a call, and response times, by
//! the number of connections that each have one call in flight.
//!
//! The load is one thread of this program over plain sockets and epoll, the same for all servers: GIOP 1.2
//! requests for ORBs, and as many octets for plain C. Only tonic has a client of its own: HTTP/2 has no messages that can
//! be repeated. Each server is a process of its own, and its count of calls is compared with that of the load after each
//! run.

mod contender;

use std::time::Duration;

use spandrel_measure::units::grouped;

pub use super::by_number::report;
use super::by_number::series::{self, WARM_UP_PART};
use super::by_number::{Experiment, Figures, Subject};
use super::driver::client::ClientProcess;
use super::driver::exchange::Exchange;
use super::driver::load::Driven;
use super::driver::server::{ServerProcess, descriptor_shortage, raise_descriptor_limit};
use crate::LabError;
use crate::peer::pair::Launch;
use crate::placement::{Placement, Role, cores};

pub use contender::Contender;

/// The configurations to measure, and the number and length of their runs.
pub type Settings = super::by_number::Settings<Contender>;
/// The measurements of all rounds with their summaries, as the result file has them.
pub type Results = super::by_number::Results<Contender>;

/// The experiment with busy connections.
#[derive(Clone, Copy, Debug)]
pub struct Connections;

/// Runs the whole series and summarises it.
///
/// # Errors
/// If the settings are invalid, or a run fails.
pub fn run(settings: &Settings, launch: Launch<'_>) -> Result<Results, LabError> {
    raise_descriptor_limit(0)?;
    series::run::<Connections>(settings, launch)
}

impl Experiment for Connections {
    type Contender = Contender;
    const NAME: &str = "connections";
    const UNIT: &str = "busy connections";
    /// Roughly the number of ports for connections from one address to another.
    const MOST: u32 = 28_000;
    const BASE: Contender = Contender::Epoll;

    fn start(
        contender: Contender,
        settings: &Settings,
        launch: Launch<'_>,
        placement: Placement,
    ) -> Result<Result<Box<dyn Subject>, String>, LabError> {
        let core = placement.core(Role::Receiver, &cores())?;
        let plain = Exchange::plain();
        let command = match contender.server(settings, launch, &plain) {
            Ok(command) => command,
            Err(reason) => return Ok(Err(reason)),
        };
        let server = ServerProcess::start(contender.to_string(), command, core, &plain, settings.limit())?;
        if contender != Contender::Tonic {
            return Ok(Ok(Box::new(Server(server))));
        }
        let client = match settings.tokio_client("tonic-connections", server.line()) {
            Ok(command) => command,
            Err(reason) => return Ok(Err(reason)),
        };
        let core = placement.core(Role::Transmitter, &cores())?;
        let client = ClientProcess::start(client, core, settings.limit())?;
        Ok(Ok(Box::new(Pair { client, server })))
    }
}

/// The process of a server.
struct Server(ServerProcess);

impl Subject for Server {
    fn run(&mut self, number: u32, time: Duration) -> Result<Result<Figures, String>, LabError> {
        if let Some(reason) = descriptor_shortage(number.into()) {
            return Ok(Err(reason));
        }
        let outcome = self.drive(number, time)?;
        // Connections that are still being closed do not count in the next run.
        self.0.settle()?;
        if outcome.is_err() {
            self.0.wait_until_idle()?; // calls in flight on closed connections
        }
        Ok(outcome)
    }
}

impl Server {
    fn drive(&mut self, number: u32, time: Duration) -> Result<Result<Figures, String>, LabError> {
        let refuse = |error| Ok(Err(format!("it does not serve {} connections: {error}", grouped(number.into()))));
        let mut connections = match self.0.open(0, number) {
            Ok(connections) => connections,
            Err(error) => return refuse(error),
        };
        let calls_before = self.0.calls()?;
        let warm_up = match connections.run(time / WARM_UP_PART) {
            Ok(warm_up) => warm_up,
            Err(error) => return refuse(error),
        };
        let cpu_before = self.0.processor_time();
        let run = match connections.run(time) {
            Ok(run) => run,
            Err(error) => return refuse(error),
        };
        let server_cpu = self.0.processor_time().zip(cpu_before).map(|(after, before)| after - before);
        self.0.check_calls(calls_before, warm_up.nanos.count() + run.nanos.count())?;
        Ok(Ok(figures(&run, server_cpu)))
    }
}

fn figures(run: &Driven, server_cpu: Option<Duration>) -> Figures {
    let times = run.times();
    let calls = run.nanos.count();
    let per_call = |seconds: f64| seconds * 1e6 / calls as f64;
    Figures {
        calls,
        calls_per_second: run.rate(),
        p50_us: times.median,
        p99_us: times.p99,
        p999_us: times.p999,
        server_us: server_cpu.map(|cpu| per_call(cpu.as_secs_f64())),
        load_us: Some(per_call(run.load_cpu)),
        fairness: (run.answers.len() > 1).then(|| run.fairness()),
    }
}

/// A server with the client that calls it.
struct Pair {
    client: ClientProcess, // ends before its server
    server: ServerProcess,
}

impl Subject for Pair {
    fn run(&mut self, number: u32, time: Duration) -> Result<Result<Figures, String>, LabError> {
        if let Some(reason) = descriptor_shortage(number.into()) {
            return Ok(Err(reason));
        }
        let calls_before = self.server.calls()?;
        let warm_up = self.client.run(number, time / WARM_UP_PART)?;
        let cpu_before = self.server.processor_time();
        let run = self.client.run(number, time)?;
        let server_cpu = self.server.processor_time().zip(cpu_before).map(|(after, before)| after - before);
        self.server.check_calls(calls_before, warm_up.calls + run.calls)?;
        Ok(Ok(run.figures(server_cpu)))
    }
}
