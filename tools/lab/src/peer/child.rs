//! What runs inside a child process, and the handle that its parent holds.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::receiver::ControlServer;
use super::transmitter::Session;
use super::{FromChild, Outcome, read_line, unexpected, write_line};
use crate::LabError;
#[cfg(target_os = "linux")]
use crate::bench::reactor::EchoServer;
use crate::mechanism::Job;
use crate::placement;
use crate::scalability::ours;
use crate::soak;

/// What a child is to be. The parent's program turns this into a command line for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildRole {
    /// Receives or transmits.
    pub kind: ChildKind,
    /// The core that it pins itself to.
    pub core: Option<usize>,
}

/// Which side of an experiment a child takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildKind {
    /// Listens for control connections at this address.
    Receive(String),
    /// Carries out jobs against the receiver at this address.
    Transmit(String),
    /// Serves so many objects; prints a reference to their directory.
    ServantsServer {
        /// How many.
        servants: u32,
        /// Whether by a dynamic skeleton.
        is_dynamic: bool,
    },
    /// Calls the objects of the directory with this reference, as it is told line by line.
    ServantsClient {
        /// The reference.
        reference: String,
    },
    /// Serves a soak run; prints a reference to the object to be called.
    SoakServer {
        /// Options of its ORB.
        options: Vec<String>,
    },
    /// Echoes what comes; prints its port and speaks no further.
    #[cfg(target_os = "linux")]
    Echo(EchoServer),
}

/// Lives a child's life until the parent closes the standard input, which ends the process.
///
/// # Errors
/// If it could not begin; the parent has then been told already.
pub fn run(role: &ChildRole) -> Result<(), LabError> {
    let outcome = begin(role);
    if let Err(error) = &outcome {
        say(&FromChild::Failed(error.chain()))?;
    }
    outcome
}

fn begin(role: &ChildRole) -> Result<(), LabError> {
    if let Some(core) = role.core {
        placement::pin(core)?; // before any thread is started: threads inherit it
    }
    match &role.kind {
        ChildKind::Receive(addr) => {
            let server = ControlServer::open(addr)?;
            say(&FromChild::Listening(server.local_addr().to_string()))?;
            watch_parent(|_| {})?;
            server.run(|_| {}) // the transmitter is told of failures and passes them on
        }
        ChildKind::Transmit(addr) => {
            let mut session = Session::connect(addr)?;
            say(&FromChild::Connected)?;
            let (sender, jobs) = mpsc::channel();
            watch_parent(move |job| _ = sender.send(job))?;
            for job in jobs {
                say(&match session.run(&job) {
                    Ok(outcome) => FromChild::Done(outcome),
                    Err(error) => FromChild::Failed(error.chain()),
                })?;
            }
            Ok(())
        }
        ChildKind::ServantsServer { servants, is_dynamic } => ours::serve(*servants, *is_dynamic),
        ChildKind::ServantsClient { reference } => ours::call(reference),
        ChildKind::SoakServer { options } => soak::serve(options),
        #[cfg(target_os = "linux")]
        ChildKind::Echo(server) => {
            watch_parent(|_| {})?;
            server.serve()
        }
    }
}

fn say(message: &FromChild) -> Result<(), LabError> {
    write_line(&mut io::stdout().lock(), message).map_err(LabError::io("speak to the parent"))
}

/// Hands on the parent's jobs, and ends the process as soon as there is no parent.
fn watch_parent(mut each: impl FnMut(Job) + Send + 'static) -> Result<(), LabError> {
    let watch = move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(job)) = read_line::<Job>(&mut input) {
            each(job);
        }
        std::process::exit(0);
    };
    thread::Builder::new().name("parent".to_owned()).spawn(watch).map_err(LabError::io("start a thread"))?;
    Ok(())
}

/// How long a child may take to leave once its input is closed, before it is killed.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);

/// A running child.
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
        // A thread of its own reads, because a pipe cannot be waited for with a time limit by portable means.
        let read = move || BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line));
        thread::Builder::new().name(role.to_owned()).spawn(read).map_err(LabError::io("start a thread"))?;
        Ok(handle)
    }

    /// The child's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the child, a receiver, listens; answers the address.
    ///
    /// # Errors
    /// If it fails, or does not within `limit`.
    pub fn listening(&mut self, limit: Duration) -> Result<String, LabError> {
        match self.hear(limit)? {
            FromChild::Listening(addr) => Ok(addr),
            other => Err(self.failure(other)),
        }
    }

    /// Waits until the child, a transmitter, is connected.
    ///
    /// # Errors
    /// If it fails, or is not within `limit`.
    pub fn connected(&mut self, limit: Duration) -> Result<(), LabError> {
        match self.hear(limit)? {
            FromChild::Connected => Ok(()),
            other => Err(self.failure(other)),
        }
    }

    /// Has the child, a transmitter, carry out a job.
    ///
    /// # Errors
    /// If it fails, or takes longer than `limit`.
    pub fn run(&mut self, job: &Job, limit: Duration) -> Result<Outcome, LabError> {
        let role = self.role;
        let input = self.input.as_mut().expect("the input is open until the handle is dropped");
        write_line(input, job).map_err(LabError::io(format!("speak to the {role}")))?;
        match self.hear(limit)? {
            FromChild::Done(outcome) => Ok(outcome),
            other => Err(self.failure(other)),
        }
    }

    /// Tells the child one line.
    ///
    /// # Errors
    /// If it does not listen any more.
    pub fn tell(&mut self, line: &str) -> Result<(), LabError> {
        let input = self.input.as_mut().expect("the input is open until the handle is dropped");
        writeln!(input, "{line}").map_err(LabError::io(format!("speak to the {}", self.role)))
    }

    /// Waits for one line that the child prints, whatever it says.
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

    fn hear(&mut self, limit: Duration) -> Result<FromChild, LabError> {
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
        let detail = match self.leave(LEAVE_LIMIT) {
            Some(status) => format!("its process ended ({status})"),
            None => "it closed its output".to_owned(),
        };
        LabError::Peer { role: self.role.to_owned(), detail }
    }

    /// Waits a bounded time for the process to end by itself. There is no portable wait with a limit, hence the polling.
    fn leave(&mut self, limit: Duration) -> Option<std::process::ExitStatus> {
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
        self.input = None; // the child sees the end of its input and leaves
        if self.leave(LEAVE_LIMIT).is_none() {
            _ = self.child.kill();
            _ = self.child.wait();
        }
    }
}
