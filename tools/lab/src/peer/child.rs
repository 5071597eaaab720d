//! Roles of child processes, and the parent's handle to one.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use super::EchoServer;
use super::{FromChild, Outcome, unexpected, write_line};
use crate::LabError;
use crate::mechanism::Job;

/// The role of a child. The parent's program converts it to its own command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildRole {
    /// The part of the child: it receives or transmits.
    pub kind: ChildKind,
    /// The core that it pins itself to.
    pub core: Option<usize>,
}

/// The kind of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildKind {
    /// Listens for control connections at this address.
    Receive(String),
    /// Carries out jobs against the receiver at this address.
    Transmit(String),
    /// Serves that many objects; prints a reference to their directory.
    ServantsServer {
        /// The number of objects.
        servants: u32,
        /// Whether through a dynamic skeleton.
        is_dynamic: bool,
    },
    /// Calls the objects of the directory with this reference, by commands on standard input.
    ServantsClient {
        /// The stringified reference of the directory.
        reference: String,
    },
    /// Serves a soak run; prints a reference to its object.
    SoakServer {
        /// Options of its ORB.
        options: Vec<String>,
    },
    /// Serves one object that counts its calls; prints its reference.
    #[cfg(target_os = "linux")]
    CallsServer {
        /// Options of its ORB.
        options: Vec<String>,
        /// Processor time of each upcall in microseconds.
        work_micros: u32,
        /// Whether its servant is asynchronous.
        is_asynchronous: bool,
    },
    /// Keeps calls in flight to the object with this reference, by commands on standard input.
    #[cfg(target_os = "linux")]
    InFlightClient {
        /// The stringified reference of the object.
        reference: String,
    },
    /// Serves one object with requests of several priorities; prints its reference.
    #[cfg(target_os = "linux")]
    PrioritiesServer {
        /// The name of a contender of our ORB.
        contender: String,
        /// The path of a UNIX-domain socket to listen at as well.
        path: Option<String>,
        /// The reference of the server that it calls, as an intermediary.
        next: Option<String>,
        /// Processor time of an upcall of high and of low priority in microseconds.
        work_micros: [u32; 2],
        /// Processor time of a servant that spins, in milliseconds.
        spin_millis: u64,
    },
    /// Echoes its input; prints its port and nothing else.
    #[cfg(target_os = "linux")]
    Echo(EchoServer),
}

/// The time limit for a child to exit once its input is closed, before it is killed. A profiler writes its results then.
const EXIT_LIMIT: Duration = Duration::from_secs(30);

/// A child process, ended when dropped.
pub struct ChildHandle {
    role: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
}

impl fmt::Debug for ChildHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildHandle")
            .field("role", &self.role)
            .field("process", &self.child.id())
            .finish_non_exhaustive()
    }
}

impl ChildHandle {
    /// Starts a child; `role` names it in errors.
    ///
    /// # Errors
    /// If the program cannot be executed.
    pub fn start(role: &'static str, mut command: Command) -> Result<Self, LabError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(LabError::io(format!("start the {role} ({program})")))?;
        let input = child.stdin.take();
        let output = child.stdout.take().expect("the output is piped");
        let (sender, lines) = mpsc::channel();
        let handle = Self { role, child, input, lines };
        // A separate thread reads, because waiting for a pipe with a time limit is not portable.
        let read = move || BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line));
        thread::Builder::new().name(role.to_owned()).spawn(read).map_err(LabError::io("start a thread"))?;
        Ok(handle)
    }

    /// The child's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the child, a receiver, listens; returns the address.
    ///
    /// # Errors
    /// If it fails, or does not within `limit`.
    pub fn listening(&mut self, limit: Duration) -> Result<String, LabError> {
        match self.read_message(limit)? {
            FromChild::Listening(addr) => Ok(addr),
            other => Err(self.failure(other)),
        }
    }

    /// Waits until the child, a transmitter, is connected.
    ///
    /// # Errors
    /// If it fails, or is not within `limit`.
    pub fn connected(&mut self, limit: Duration) -> Result<(), LabError> {
        match self.read_message(limit)? {
            FromChild::Connected => Ok(()),
            other => Err(self.failure(other)),
        }
    }

    /// Makes the child, a transmitter, carry out a job.
    ///
    /// # Errors
    /// If it fails, or takes longer than `limit`.
    pub fn run(&mut self, job: &Job, limit: Duration) -> Result<Outcome, LabError> {
        let role = self.role;
        let input = self.input.as_mut().expect("the input is open until the handle is dropped");
        write_line(input, job).map_err(LabError::io(format!("speak to the {role}")))?;
        match self.read_message(limit)? {
            FromChild::Done(outcome) => Ok(outcome),
            other => Err(self.failure(other)),
        }
    }

    /// Sends one line to the child.
    ///
    /// # Errors
    /// If it does not read any more.
    pub fn send_line(&mut self, line: &str) -> Result<(), LabError> {
        let input = self.input.as_mut().expect("the input is open until the handle is dropped");
        writeln!(input, "{line}").map_err(LabError::io(format!("speak to the {}", self.role)))
    }

    /// Waits for one line of the child's output.
    ///
    /// # Errors
    /// If none comes within `limit`, or the child has ended.
    pub fn line(&mut self, limit: Duration) -> Result<String, LabError> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => {
                Err(LabError::TimedOut { role: self.role.to_owned(), seconds: limit.as_secs_f64() })
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    fn read_message(&mut self, limit: Duration) -> Result<FromChild, LabError> {
        let line = self.line(limit)?;
        serde_json::from_str(&line).map_err(|_| LabError::Protocol { role: self.role.to_owned(), found: line })
    }

    fn failure(&self, message: FromChild) -> LabError {
        match message {
            FromChild::Failed(detail) => LabError::Peer { role: self.role.to_owned(), detail },
            other => unexpected(self.role, &other),
        }
    }

    fn ended(&mut self) -> LabError {
        let detail = match self.wait_for_exit(EXIT_LIMIT) {
            Some(status) => format!("its process ended ({status})"),
            None => "it closed its output".to_owned(),
        };
        LabError::Peer { role: self.role.to_owned(), detail }
    }

    /// Waits a bounded time for the process to exit by itself. A wait with a limit is not portable, hence the
    /// polling.
    fn wait_for_exit(&mut self, limit: Duration) -> Option<std::process::ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
                _ => return None,
            }
        }
    }
}

impl Drop for ChildHandle {
    fn drop(&mut self) {
        self.input = None; // the child exits at the end of its input
        if self.wait_for_exit(EXIT_LIMIT).is_none() {
            _ = self.child.kill();
            _ = self.child.wait();
        }
    }
}
