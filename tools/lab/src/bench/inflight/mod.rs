//! The experiment with many calls in flight on one connection: calls per second, the cost of a call at both
//! ends, and response times, beside sequential calls.
//!
//! Client and server are processes of their own. A client's commands have the number of calls in flight, where 0 means
//! sequential, blocking calls. The server's count of calls is compared with that of the client after each run.

mod client;
mod contender;
mod executor;

use std::time::Duration;

pub use super::by_number::report;
use super::by_number::series::{self, WARM_UP_PART};
use super::by_number::{Experiment, Figures, Subject};
use super::driver::client::{ClientProcess, Run};
use super::driver::exchange::Exchange;
use super::driver::pipeline::Pipeline;
use super::driver::server::ServerProcess;
use crate::LabError;
use crate::peer::pair::Launch;
use crate::placement::{Placement, Role, cores};

pub(crate) use client::call;
pub use contender::Contender;

/// The configurations to measure, and the number and length of their runs.
pub type Settings = super::by_number::Settings<Contender>;
/// The measurements of all rounds with their summaries, as the result file has them.
pub type Results = super::by_number::Results<Contender>;

/// The experiment [by number](super::by_number) whose number is that of the calls in flight.
#[derive(Clone, Copy, Debug)]
pub struct InFlight;

/// Runs the whole series, with sequential calls first, and summarises it.
///
/// # Errors
/// If the settings are invalid, or a run fails.
pub fn run(settings: &Settings, launch: Launch<'_>) -> Result<Results, LabError> {
    let mut settings = settings.clone();
    if settings.numbers.first() != Some(&SEQUENTIAL) {
        settings.numbers.insert(0, SEQUENTIAL);
    }
    series::run::<InFlight>(&settings, launch)
}

/// The number of calls in flight that means sequential, blocking calls.
const SEQUENTIAL: u32 = 0;

impl Experiment for InFlight {
    type Contender = Contender;
    const NAME: &str = "inflight";
    const UNIT: &str = "calls in flight";
    const LEAST: u32 = SEQUENTIAL;
    const MOST: u32 = contender::MOST_IN_FLIGHT;
    const BASE: Contender = Contender::C;

    fn label(number: u32) -> String {
        if number == SEQUENTIAL { "sequential".to_owned() } else { number.to_string() }
    }

    fn start(
        contender: Contender,
        settings: &Settings,
        launch: Launch<'_>,
        placement: Placement,
    ) -> Result<Result<Box<dyn Subject>, String>, LabError> {
        let (cores, plain, limit) = (cores(), Exchange::plain(), settings.limit());
        let server = match contender.server(settings, launch, &plain) {
            Ok(command) => command,
            Err(reason) => return Ok(Err(reason)),
        };
        let of_server = placement.core(Role::Receiver, &cores)?;
        let mut server = ServerProcess::start(contender.to_string(), server, of_server, &plain, limit)?;
        let client = match contender.client(settings, launch, server.line()) {
            None => {
                let pipeline = server.pipeline().map_err(LabError::io("connect to the plain C server"))?;
                Client::Thread(pipeline)
            }
            Some(Ok(command)) => {
                let of_client = placement.core(Role::Transmitter, &cores)?;
                Client::Process(ClientProcess::start(command, of_client, limit)?)
            }
            Some(Err(reason)) => return Ok(Err(reason)),
        };
        let calls = server.calls()?; // what the client's start needed
        Ok(Ok(Box::new(Pair { server, client, calls })))
    }
}

/// A client with one connection to its server.
enum Client {
    /// A thread of this program.
    Thread(Pipeline),
    /// A process that makes calls by commands on its standard input.
    Process(ClientProcess),
}

impl Client {
    fn run(&mut self, number: u32, time: Duration) -> Result<Run, LabError> {
        match self {
            Self::Process(client) => client.run(number, time),
            Self::Thread(pipeline) => {
                let run = pipeline.run(number.max(1) as usize, time);
                let run = run.map_err(LabError::io("call the plain C server"))?;
                Ok(Run {
                    calls: run.nanos.count(),
                    calls_per_second: run.rate(),
                    times: run.times(),
                    cpu: Some(Duration::from_secs_f64(run.load_cpu)),
                    fairness: None,
                })
            }
        }
    }
}

/// The processes of a contender.
struct Pair {
    client: Client, // ends before its server
    server: ServerProcess,
    /// Calls that the server has counted before.
    calls: u64,
}

impl Subject for Pair {
    fn run(&mut self, number: u32, time: Duration) -> Result<Result<Figures, String>, LabError> {
        let warm_up = self.client.run(number, time / WARM_UP_PART)?;
        let cpu_before = self.server.processor_time();
        let run = self.client.run(number, time)?;
        let server_cpu = self.server.processor_time().zip(cpu_before).map(|(after, before)| after - before);
        self.calls = self.server.check_calls(self.calls, warm_up.calls + run.calls)?;
        Ok(Ok(run.figures(server_cpu)))
    }
}
