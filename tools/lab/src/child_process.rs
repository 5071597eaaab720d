//! Child processes that read and write lines.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::LabError;

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

    /// Its name in errors.
    pub(crate) fn role(&self) -> &'static str {
        self.role
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
