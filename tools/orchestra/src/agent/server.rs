//! A server under test: its process, its control group, and the address at which it listens.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use spandrel::net::sync::time::Deadline;

use super::config::{CommandConfig, End};
use super::group::{ENTER, Group, Groups};
use super::usage::{self, machine_time, tree_usage};
use crate::idl::orchestra::{Address, CpuTime, Scope, ScopeUsage, Server, ServerFailed, Snapshot};

/// The line by which a server tells its address.
const LISTENING: &str = "listening ";
/// The most lines of output that are kept, and the most octets of one.
const MAX_LINES: usize = 50;
const MAX_LINE: u64 = 4096;
/// The time for the output of a server that has ended.
const OUTPUT_END: Duration = Duration::from_secs(1);
/// The variables of the agent's environment that servers get.
const VARIABLES: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];
/// The pause between two looks at a process that is to end.
const PAUSE: Duration = Duration::from_millis(5);

/// The last lines of a server's output.
#[derive(Clone, Debug, Default)]
struct Output(Arc<Lines>);

#[derive(Debug, Default)]
struct Lines {
    lines: Mutex<VecDeque<String>>,
    /// The number of streams that have not ended, locked for a wait.
    open: Mutex<usize>,
    end: Condvar,
}

/// One stream that is being read.
struct OpenStream(Arc<Lines>);

impl OpenStream {
    fn new(lines: &Arc<Lines>) -> Self {
        *lines.open.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self(Arc::clone(lines))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        *self.0.open.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.end.notify_all();
    }
}

impl Output {
    fn add(&self, line: String) {
        let mut lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Waits until all streams have ended. Other processes may keep them open: it waits no longer than [`OUTPUT_END`].
    fn wait_end(&self) {
        let open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.end.wait_timeout_while(open, OUTPUT_END, |open| *open > 0));
    }

    fn text(&self) -> String {
        let lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Reads lines to the end of the stream in a thread of its own, and calls a function with each.
    fn read(&self, stream: impl Read + Send + 'static, mut each: impl FnMut(&str) + Send + 'static) {
        let output = self.clone();
        let open = OpenStream::new(&self.0);
        let read = move || {
            let _open = open;
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                each(&text);
                output.add(text);
                line.clear();
            }
        };
        if let Err(error) = thread::Builder::new().name("server-output".to_owned()).spawn(read) {
            tracing::warn!(%error, "the output of the server is not read");
        }
    }
}

/// A server that listens. It ends, with all its processes, when dropped.
#[derive(Debug)]
pub(crate) struct RunningServer {
    child: Child,
    group: Option<Group>,
    end: End,
    address: Address,
    output: Output,
    /// The time of the machine when the server began to listen.
    machine_before: CpuTime,
    /// The signals to end that were sent to it.
    ending: Vec<i16>,
}

impl RunningServer {
    /// Starts a server, and waits until it listens.
    ///
    /// # Errors
    /// A program that cannot be started, that ends, or that does not listen in time.
    pub(crate) fn start(
        config: &CommandConfig,
        server: &Server,
        groups: Option<&Groups>,
    ) -> Result<Self, ServerFailed> {
        let failed = |reason: String| ServerFailed { reason, output: String::new() };
        let group = groups.map(Groups::make).transpose().map_err(failed)?;
        let mut command = command(config, server, group.as_ref());
        let mut child =
            command.spawn().map_err(|error| failed(format!("cannot start {}: {error}", config.program.display())))?;
        let (sender, listening) = mpsc::channel();
        let output = Output::default();
        if let Some(stdout) = child.stdout.take() {
            output.read(stdout, move |line| {
                if let Some(address) = line.strip_prefix(LISTENING) {
                    _ = sender.send(address.to_owned());
                }
            });
        }
        if let Some(stderr) = child.stderr.take() {
            output.read(stderr, |_| {});
        }
        let address = Address { host: String::new(), port: 0 };
        let machine_before = CpuTime::default();
        let mut running = Self { child, group, end: config.end, address, output, machine_before, ending: Vec::new() };
        let address = match listening.recv_timeout(config.start_timeout) {
            Ok(address) => address,
            Err(RecvTimeoutError::Timeout) => {
                let seconds = config.start_timeout.as_secs_f64();
                return Err(running.failure(format!("no line `listening HOST:PORT` within {seconds} s")));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = running.ended_within(Deadline::after(Duration::from_secs(1)));
                running.output.wait_end();
                let status = status.map_or_else(|| "it closed its output".to_owned(), |status| status.to_string());
                return Err(running.failure(format!("the server ended before it listened: {status}")));
            }
        };
        let Some(parsed) = parse(&address) else {
            return Err(running.failure(format!("the server listens at `{address}`: expected HOST:PORT")));
        };
        running.address = parsed;
        running.machine_before = machine_time().unwrap_or_default();
        Ok(running)
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The exit status of its first process, once that has ended.
    pub(crate) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    fn failure(&self, reason: String) -> ServerFailed {
        ServerFailed { reason, output: self.output.text() }
    }

    fn ended_within(&mut self, deadline: Deadline) -> Option<ExitStatus> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                _ if deadline.is_over() => return None,
                _ => thread::sleep(PAUSE),
            }
        }
    }

    /// Sends a signal to its first process; whether that was possible. A signal that ends processes is sent once: the process
    /// may still be there, and has ended for its caller.
    pub(crate) fn signal(&mut self, number: i16) -> bool {
        if self.ending.contains(&number) || self.exit_status().is_some() {
            return false;
        }
        let is_sent = send_signal(self.child.id(), i32::from(number));
        if is_sent && ENDING.contains(&number) {
            self.ending.push(number);
        }
        is_sent
    }

    /// Ends it.
    ///
    /// # Errors
    /// It had ended before, or still ran after this time, and was killed.
    pub(crate) fn stop(mut self, grace: Duration) -> Result<(), ServerFailed> {
        if let Some(status) = self.exit_status() {
            self.output.wait_end();
            return Err(self.failure(format!("the server had ended before: {status}")));
        }
        self.request_end();
        match self.ended_within(Deadline::after(grace)) {
            Some(_) => Ok(()),
            None => {
                let seconds = grace.as_secs_f64();
                Err(self.failure(format!("the server did not end within {seconds} s, and was killed")))
            }
        }
    }

    /// Ends servers, all in the same time, and leaves out how.
    pub(crate) fn stop_all(mut servers: Vec<Self>, grace: Duration) {
        servers.iter_mut().for_each(Self::request_end);
        let deadline = Deadline::after(grace);
        for mut server in servers {
            _ = server.ended_within(deadline);
        }
    }

    fn request_end(&mut self) {
        match self.end {
            End::Signal => _ = self.signal(TERM),
            End::CloseStdin => drop(self.child.stdin.take()),
        }
    }

    /// Its use of resources since it began, and that of the machine since the server listened.
    pub(crate) fn snapshot(&self, at: f64) -> Snapshot {
        // The group is read first: reading the rest takes time, too, but none of the server's.
        let machine = machine_time().map(|now| usage::difference(now, self.machine_before));
        let group = self.group.as_ref().and_then(|group| group.time().ok());
        let processes = self.group.as_ref().map(Group::processes);
        let tree = tree_usage(self.child.id(), processes.as_deref());
        let mut cpu = Vec::new();
        let mut add = |counted: Scope, time: CpuTime| cpu.push(ScopeUsage { counted, time });
        if tree.processes > 0 {
            add(Scope::Process, tree.process);
            add(Scope::Children, tree.children);
            add(Scope::Tree, tree.tree);
        }
        group.into_iter().for_each(|time| add(Scope::Group, time));
        machine.into_iter().for_each(|time| add(Scope::Machine, time));
        Snapshot {
            at,
            process: self.child.id(),
            cpu,
            threads: tree.threads,
            processes: tree.processes,
            resident: tree.resident,
            peak_resident: tree.peak_resident,
            voluntary_switches: tree.voluntary_switches,
            involuntary_switches: tree.involuntary_switches,
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        kill_process_group(&mut self.child);
        _ = self.child.wait();
    }
}

/// The command of a server. In a group, a shell enters that before the program replaces it.
fn command(config: &CommandConfig, server: &Server, group: Option<&Group>) -> Command {
    let mut command = match group {
        Some(group) => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(ENTER).arg(group.path()).arg(&config.program);
            command
        }
        None => Command::new(&config.program),
    };
    command.args(config.words(server)).env_clear();
    command.envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(config.variables(server));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if config.end == End::CloseStdin { Stdio::piped() } else { Stdio::null() });
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

/// An address as `HOST:PORT` or `[HOST]:PORT`.
fn parse(text: &str) -> Option<Address> {
    let (host, port) = text.trim().rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some(Address { host: host.to_owned(), port: port.parse().ok().filter(|port| *port != 0)? })
}

const TERM: i16 = 15;
/// The signals whose purpose is the end of a process: SIGINT, SIGQUIT, SIGABRT, SIGKILL, SIGTERM.
const ENDING: [i16; 5] = [2, 3, 6, 9, TERM];

#[cfg(unix)]
fn send_signal(process: u32, number: i32) -> bool {
    use rustix::process::{Pid, Signal, kill_process};

    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    let signal = Signal::from_named_raw(number);
    process.zip(signal).is_some_and(|(process, signal)| kill_process(process, signal).is_ok())
}

#[cfg(not(unix))]
fn send_signal(_process: u32, _number: i32) -> bool {
    false
}

/// Kills the processes that have not left the server's process group.
fn kill_process_group(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(None) = child.try_wait()
        && let Some(process) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw)
    {
        _ = rustix::process::kill_process_group(process, rustix::process::Signal::KILL);
    }
    _ = child.kill();
}
