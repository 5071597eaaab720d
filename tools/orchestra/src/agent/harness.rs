//! The Harness: starts, measures and ends the servers of one machine.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use spandrel::SystemException;

use super::config::{AgentConfig, CommandConfig};
use super::group::Groups;
use super::recorder::Recorder;
use super::servers::Servers;
use super::{limited_time, machine, property};
use crate::idl::orchestra::harness::{
    RecordError, ServerAddressError, StartServerError, StopServerError, TakeSnapshotError,
};
use crate::idl::orchestra::{
    Address, Command as CommandInfo, HarnessServant, Property, Refused, Scope, Server, Snapshot, StartedServer,
};
use crate::idl::{HarnessServant as PaperHarness, Usage};

/// The number that names the server that was started last.
const LAST: u32 = 0;
/// The longest grace of a call.
const MAX_GRACE: f64 = 60.0;
/// The time limit of a program that prints its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest and longest interval of a recording, in seconds.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.01..=3600.0;

/// The servant of a machine's Harness.
#[derive(Debug)]
pub(crate) struct Harness {
    config: AgentConfig,
    groups: Result<Groups, String>,
    began: Instant,
    commands: Vec<CommandInfo>,
    servers: Arc<Mutex<Servers>>,
    recorder: Recorder,
}

impl Harness {
    pub(crate) fn new(config: AgentConfig) -> Self {
        let groups = Groups::find();
        if let Err(reason) = &groups {
            tracing::warn!("no control group, so that servers are measured by their process trees: {reason}");
        }
        let info = |(name, command): (&String, &CommandConfig)| CommandInfo {
            name: name.clone(),
            architectures: command.architectures.clone(),
            version: version(command),
        };
        let commands = config.commands.iter().map(info).collect();
        let (servers, recorder) = (Arc::default(), Recorder::default());
        Self { config, groups, began: Instant::now(), commands, servers, recorder }
    }

    fn servers(&self) -> MutexGuard<'_, Servers> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_allowed(&self, server: &Server, beside: &[u32]) -> Result<StartedServer, StartServerError> {
        let command = self.config.allowed(server)?;
        self.recorder.stop();
        let started = self.servers().start(command, server, self.groups.as_ref().ok(), beside)?;
        let StartedServer { number, listens_at: Address { host, port } } = &started;
        tracing::info!("started {} {} as server {number} at {host}:{port}", server.name, server.architecture);
        Ok(started)
    }

    /// Ends all servers, and the recording of their figures.
    pub(crate) fn end(&self) {
        self.recorder.stop();
        self.servers().end();
    }
}

/// The paper's interface (figure A.2).
impl PaperHarness for Harness {
    /// Starts a command of the configuration: `NAME [ARCHITECTURE] [--workers N] [--no-greeting]`. A command with a single
    /// architecture needs no other word, as in the paper.
    fn start(&self, cmd: &str) -> Result<bool, SystemException> {
        let started = match parse(cmd, &self.config) {
            Ok(server) => self.start_allowed(&server, &[]),
            Err(refused) => Err(refused.into()),
        };
        match started {
            Ok(_) => Ok(true),
            Err(StartServerError::System(exception)) => Err(exception),
            Err(error) => {
                tracing::warn!("cannot start `{cmd}`: {error}");
                Ok(false)
            }
        }
    }

    /// Whether the server was running and was not told so before: each signal that ends processes is sent once.
    fn signal(&self, signum: i16) -> Result<bool, SystemException> {
        Ok(self.servers().running(LAST).is_ok_and(|server| server.signal(signum)))
    }

    /// The times of the server's first process, and those of the machine since the server listened.
    fn getcurrent(&self) -> Result<(bool, Usage), SystemException> {
        let Ok(snapshot) = self.take_snapshot(LAST) else { return Ok((false, Usage::default())) };
        let time = |scope: Scope| {
            let cpu_usage = snapshot.cpu.iter().find(|usage| usage.counted == scope);
            cpu_usage.map(|usage| usage.time).unwrap_or_default()
        };
        let (process, machine) = (time(Scope::Process), time(Scope::Machine));
        let usage = Usage {
            user: process.user,
            system: process.system,
            total_user: machine.user,
            total_system: machine.system,
        };
        Ok((true, usage))
    }
}

impl HarnessServant for Harness {
    fn machine(&self) -> Result<Vec<Property>, SystemException> {
        let group = match &self.groups {
            Ok(groups) => groups.description().to_owned(),
            Err(reason) => format!("none: {reason}"),
        };
        let mut properties = machine();
        properties.push(property("control group", group));
        Ok(properties)
    }

    fn list_commands(&self) -> Result<Vec<CommandInfo>, SystemException> {
        Ok(self.commands.clone())
    }

    fn start_server(&self, program: &Server, beside: &[u32]) -> Result<StartedServer, StartServerError> {
        self.start_allowed(program, beside)
    }

    fn stop_server(&self, which: u32, grace: f64) -> Result<(), StopServerError> {
        let grace = limited_time("grace", grace, MAX_GRACE)?;
        self.recorder.stop();
        // Others can be called, and stopped, meanwhile.
        let server = self.servers().take(which)?;
        Ok(server.stop(grace)?)
    }

    fn server_address(&self, which: u32) -> Result<Address, ServerAddressError> {
        Ok(self.servers().running(which)?.address().clone())
    }

    fn take_snapshot(&self, which: u32) -> Result<Snapshot, TakeSnapshotError> {
        Ok(self.servers().running(which)?.snapshot(self.began.elapsed().as_secs_f64()))
    }

    fn record(&self, which: u32, interval: f64) -> Result<(), RecordError> {
        if interval == 0.0 {
            self.recorder.stop();
            return Ok(());
        }
        if !INTERVALS.contains(&interval) {
            return Err(Refused { reason: format!("an interval of {interval} s is not from 0.01 s to an hour") }.into());
        }
        self.servers().running(which)?;
        let (servers, began) = (Arc::clone(&self.servers), self.began);
        let take = move || {
            let mut servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
            let running = servers.running(which).ok()?;
            Some(running.snapshot(began.elapsed().as_secs_f64()))
        };
        self.recorder
            .start(Duration::from_secs_f64(interval), take)
            .map_err(|error| Refused { reason: format!("cannot record: {error}") }.into())
    }

    fn recorded(&self, first: u32) -> Result<Vec<Snapshot>, SystemException> {
        Ok(self.recorder.from(first))
    }
}

/// The server of a command line.
fn parse(text: &str, config: &AgentConfig) -> Result<Server, Refused> {
    let mut words = text.split_whitespace().peekable();
    let lacks = |expected: &str| Refused {
        reason: format!("`{text}` lacks {expected}: NAME [ARCHITECTURE] [--workers N] [--no-greeting]"),
    };
    let name = words.next().ok_or_else(|| lacks("a command"))?.to_owned();
    let architecture = match words.next_if(|word| !word.starts_with("--")) {
        Some(word) => word.to_owned(),
        None => match config.commands.get(&name).map(|command| &command.architectures[..]) {
            Some([only]) => only.clone(),
            _ => return Err(lacks("an architecture")),
        },
    };
    let mut server = Server { name, architecture, workers: 0, greeting: true };
    while let Some(word) = words.next() {
        match word {
            "--no-greeting" => server.greeting = false,
            "--workers" => match words.next().and_then(|number| number.parse().ok()) {
                Some(workers) => server.workers = workers,
                None => return Err(Refused { reason: "--workers lacks a number".to_owned() }),
            },
            _ => return Err(Refused { reason: format!("`{word}` is not an option of a server") }),
        }
    }
    Ok(server)
}

/// The first line that a program prints about its version; empty if it prints none.
fn version(config: &CommandConfig) -> String {
    let Some(arguments) = &config.version else { return String::new() };
    let mut command = Command::new(&config.program);
    command.args(arguments).envs(&config.environment);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else { return String::new() };
    let deadline = Instant::now() + VERSION_TIMEOUT;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    _ = child.kill();
    let Some(output) = child.wait_with_output().ok().filter(|output| output.status.success()) else {
        return String::new();
    };
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}
