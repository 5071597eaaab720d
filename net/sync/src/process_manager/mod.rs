//! Child processes that are managed together (paper 002, 2.6; `ACE_Process_Manager`).
//!
//! A [`ProcessManager`] spawns the program of a [`std::process::Command`], up to a limit; waits for its
//! children with or without a timeout; reaps them, so that no zombies remain; and by default kills them when
//! it is dropped. It waits for its own children only, by process ID: it installs no signal handler and never
//! waits for any child (`wait(-1)`), so other parts of a program can have children of their own.
//! Communication with the children belongs to `spandrel-ipc`.
//!
//! Also under the model checker these are real processes.

mod child;
#[cfg(target_os = "linux")]
mod cpu;
mod waiting;

use std::ffi::OsString;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::time::Duration;
use std::{fmt, io};

use crate::thread::Builder;
use crate::time::Deadline;
use crate::{Arc, Mutex};
use child::Record;

#[cfg(target_os = "linux")]
pub use cpu::CpuTimes;
/// A signal number, by its POSIX name without `SIG`: `Signal::TERM`.
#[cfg(unix)]
pub use rustix::process::Signal;

/// The stack of the thread that reaps detached children.
const REAPER_STACK_OCTETS: usize = 64 * 1024;

/// The treatment of running children when their manager is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDrop {
    /// They are killed and reaped. That takes as long as the operating system takes to end them.
    #[default]
    Kill,
    /// They are waited for.
    Wait,
    /// They go on. A thread of the manager reaps each when it ends, for as long as this process lasts.
    Detach,
}

/// The reason why a child was not spawned.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The manager has as many children as its limit allows.
    #[error("the process manager has reached its limit of {limit} children")]
    LimitReached {
        /// The greatest number of children permitted.
        limit: usize,
    },
    /// The operating system did not run the program.
    #[error("cannot run `{}`", program.display())]
    Spawn {
        /// The program as the command names it.
        program: OsString,
        /// The operating system's error.
        source: io::Error,
    },
}
spandrel_error::debug_as_report!(ProcessError);

/// Spawns child processes and keeps track of them.
///
/// ```
/// # #[cfg(unix)] {
/// use std::process::Command;
/// use std::time::Duration;
/// use spandrel_sync::ProcessManager;
///
/// let manager = ProcessManager::new();
/// let quick = manager.spawn(&mut Command::new("true")).unwrap();
/// let slow = manager.spawn(Command::new("sleep").arg("1000")).unwrap();
/// assert!(quick.wait().unwrap().success());
/// assert!(slow.wait_for(Duration::from_millis(1)).unwrap().is_none());
/// slow.kill().unwrap();
/// assert!(!slow.wait().unwrap().success());
/// # }
/// ```
pub struct ProcessManager {
    limit: usize,
    on_drop: OnDrop,
    /// All children that have been spawned and not been returned by `reap`.
    children: Mutex<Vec<Process>>,
}

/// A child of a [`ProcessManager`]. Clones refer to the same child and outlive the manager; the exit status
/// stays available.
#[derive(Clone)]
pub struct Process(Arc<Record>);

impl ProcessManager {
    /// The children at a time of a manager without a limit of its own.
    pub const DEFAULT_LIMIT: usize = 256;

    /// A manager of at most [`DEFAULT_LIMIT`](Self::DEFAULT_LIMIT) children at a time, which kills them when
    /// dropped.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }

    /// A manager of at most `children` children at a time, which kills them when dropped.
    #[must_use]
    pub fn with_limit(children: usize) -> Self {
        Self { limit: children, on_drop: OnDrop::Kill, children: Mutex::default() }
    }

    /// Sets the treatment of running children when the manager is dropped.
    #[must_use]
    pub fn on_drop(mut self, what: OnDrop) -> Self {
        self.on_drop = what;
        self
    }

    /// Runs a program as a child.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn spawn(&self, command: &mut Command) -> Result<Process, ProcessError> {
        self.start(command, false)
    }

    /// Runs a program as a child that leads a process group of its own (`setpgid(2)`). Its descendants belong
    /// to the group unless they leave it, can be signalled together, and are killed together.
    ///
    /// # Errors
    /// [`ProcessError`].
    #[cfg(unix)]
    pub fn spawn_group(&self, command: &mut Command) -> Result<Process, ProcessError> {
        std::os::unix::process::CommandExt::process_group(command, 0);
        self.start(command, true)
    }

    fn start(&self, command: &mut Command, leads_group: bool) -> Result<Process, ProcessError> {
        let mut children = self.children.lock();
        if children.len() >= self.limit {
            // Children that have ended make room, though their status was not queried. Their handles have it.
            children.retain(|child| !child.0.is_finished());
        }
        if children.len() >= self.limit {
            return Err(ProcessError::LimitReached { limit: self.limit });
        }
        let child = command
            .spawn()
            .map_err(|source| ProcessError::Spawn { program: command.get_program().to_owned(), source })?;
        let process = Process(Arc::new(Record::new(child, leads_group)));
        children.push(process.clone());
        Ok(process)
    }

    /// Removes the children that have ended from the manager and returns them in the order in which they were
    /// spawned. Does not wait.
    ///
    /// A long-running program calls this from time to time, or when a child's [handle](Process::handle)
    /// becomes readable. A child that has ended stays a zombie until then.
    pub fn reap(&self) -> Vec<Process> {
        self.children.lock().extract_if(.., |child| child.0.is_finished()).collect()
    }

    /// Waits until some child has ended, removes it from the manager and returns it. None after `timeout`, or
    /// at once if there are no children.
    ///
    /// # Errors
    /// The operating system's.
    pub fn wait_any(&self, timeout: Duration) -> io::Result<Option<Process>> {
        let deadline = Deadline::after(timeout);
        let mut polls = 0;
        loop {
            let children = {
                let mut children = self.children.lock();
                if let Some(ended) = children.iter().position(|child| child.0.is_finished()) {
                    return Ok(Some(children.remove(ended)));
                }
                children.clone()
            };
            let remaining = deadline.remaining().unwrap_or(Duration::MAX);
            if children.is_empty() || remaining.is_zero() {
                return Ok(None);
            }
            waiting::sleep_until_any_end(children.iter().map(|child| child.0.wait_handle()), remaining, &mut polls)?;
        }
    }

    /// Waits until all children have ended.
    ///
    /// # Errors
    /// The operating system's.
    pub fn wait(&self) -> io::Result<()> {
        wait_for_all(&self.list(), None).map(drop)
    }

    /// Waits until all children have ended; false after `timeout`.
    ///
    /// # Errors
    /// The operating system's.
    pub fn wait_for(&self, timeout: Duration) -> io::Result<bool> {
        wait_for_all(&self.list(), Some(timeout))
    }

    /// Kills all children and waits until they have ended.
    ///
    /// # Errors
    /// The operating system's, for the first child that cannot be killed; the others are.
    pub fn kill_all(&self) -> io::Result<()> {
        let mut children = self.list();
        let mut refusal = Ok(());
        children.retain(|child| match child.kill() {
            Ok(()) => true,
            Err(e) => {
                refusal = std::mem::replace(&mut refusal, Ok(())).and(Err(e));
                false // a wait for it would not end
            }
        });
        wait_for_all(&children, None)?;
        refusal
    }

    /// Sends `SIGTERM` to all children, kills those that have not ended after `grace`, and waits until all
    /// have ended. Process groups of children are treated as a whole.
    ///
    /// # Errors
    /// The operating system's.
    #[cfg(unix)]
    pub fn terminate_all(&self, grace: Duration) -> io::Result<()> {
        let children = self.list();
        for child in &children {
            let _ = child.0.send_term(); // without permission to signal it, the kill below fails too and reports it
        }
        if wait_for_all(&children, Some(grace))? {
            return Ok(());
        }
        self.kill_all()
    }

    /// The number of children that have not ended.
    #[must_use]
    pub fn running(&self) -> usize {
        self.children.lock().iter().filter(|child| !child.0.is_finished()).count()
    }

    fn list(&self) -> Vec<Process> {
        self.children.lock().clone()
    }
}

/// Waits for one after the other, which takes as long as the longest of them.
fn wait_for_all(children: &[Process], timeout: Option<Duration>) -> io::Result<bool> {
    let deadline = Deadline::after(timeout);
    for child in children {
        match child.0.wait(deadline.remaining()) {
            Ok(None) => return Ok(false),
            Ok(Some(_)) => {}
            Err(_) if child.0.is_finished() => {} // reaped elsewhere
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

impl Default for ProcessManager {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ProcessManager {
    fn drop(&mut self) {
        match self.on_drop {
            OnDrop::Kill => drop(self.kill_all()),
            OnDrop::Wait => drop(self.wait()),
            OnDrop::Detach => detach(std::mem::take(self.children.get_mut())),
        }
    }
}

/// Hands the running children to a thread that reaps them.
fn detach(mut children: Vec<Process>) {
    children.retain(|child| !child.0.is_finished());
    if !children.is_empty() {
        let reaper = Builder::new().name("process reaper".into()).stack_size(REAPER_STACK_OCTETS);
        // Without a thread, they are zombies from their end until the end of this process; nothing else is
        // lost.
        drop(reaper.spawn(move || reap_all(children)));
    }
}

/// Reaps each child as it ends.
fn reap_all(mut children: Vec<Process>) {
    let mut polls = 0;
    while !children.is_empty() {
        let handles = children.iter().map(|child| child.0.wait_handle());
        if waiting::sleep_until_any_end(handles, Duration::MAX, &mut polls).is_err() {
            return;
        }
        children.retain(|child| !child.0.is_finished());
    }
}

impl Process {
    /// The process ID. It may be reused once the process has ended and been reaped.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id
    }

    /// The exit status; none while the process runs.
    ///
    /// # Errors
    /// The operating system's; or the process was reaped elsewhere, so that its exit status is unknown.
    pub fn status(&self) -> io::Result<Option<ExitStatus>> {
        self.0.status()
    }

    /// Waits until the process has ended and returns its exit status. A pipe to its standard input is not
    /// closed for that: see [`take_stdin`](Self::take_stdin).
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn wait(&self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.0.wait(None)? {
                return Ok(status);
            }
        }
    }

    /// Waits until the process has ended; none after `timeout`.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn wait_for(&self, timeout: Duration) -> io::Result<Option<ExitStatus>> {
        self.0.wait(Some(timeout))
    }

    /// Kills the process (`SIGKILL`, `TerminateProcess`), and its group if it leads one. Does nothing if it
    /// has ended. Does not wait.
    ///
    /// # Errors
    /// The operating system's: the process may have gained privileges that its parent lacks.
    pub fn kill(&self) -> io::Result<()> {
        self.0.kill()
    }

    /// Kills the rest of the group, if the process leads one, as soon as a wait or a query notices that the
    /// process has ended, for whatever reason. Without this, processes of the group outlive a leader that
    /// ends by itself.
    #[cfg(unix)]
    pub fn kill_group_at_end(&self) {
        self.0.kill_group_at_end();
    }

    /// Sends a signal to the process.
    ///
    /// # Errors
    /// `ESRCH` if it has ended and been reaped: the signal is never sent to another process with the same ID.
    #[cfg(unix)]
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        self.0.signal(signal, false)
    }

    /// Sends a signal to the process group that the process leads.
    ///
    /// # Errors
    /// `ESRCH` if it leads none, or has ended and been reaped: then the group's ID is not safe to use.
    #[cfg(unix)]
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        self.0.signal(signal, true)
    }

    /// Sends `SIGTERM`, kills the process if it has not ended after `grace`, and waits until it has ended. If
    /// it leads a group, the signal goes to the group, and the rest of the group is killed when the process
    /// has ended.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    #[cfg(unix)]
    pub fn terminate(&self, grace: Duration) -> io::Result<ExitStatus> {
        self.0.send_term()?;
        match self.wait_for(grace)? {
            Some(status) => Ok(status),
            None => self.kill().and_then(|()| self.wait()),
        }
    }

    /// The processor time that the process has used so far, over all its threads; after its end, in total.
    ///
    /// # Errors
    /// The errors of reading `/proc`.
    #[cfg(target_os = "linux")]
    pub fn cpu_times(&self) -> io::Result<CpuTimes> {
        self.0.cpu_times()
    }

    /// A handle that becomes readable when the process has ended (`pidfd_open(2)`), for a reactor; none where
    /// the kernel provided none.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn handle(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.0.pidfd.as_ref().map(std::os::fd::AsFd::as_fd)
    }

    /// The pipe to its standard input, if the command requested one and it was not taken before. Dropping it
    /// closes it.
    pub fn take_stdin(&self) -> Option<ChildStdin> {
        self.0.with_child(|child| child.stdin.take())
    }

    /// The pipe from its standard output, if the command requested one and it was not taken before.
    pub fn take_stdout(&self) -> Option<ChildStdout> {
        self.0.with_child(|child| child.stdout.take())
    }

    /// The pipe from its standard error, if the command requested one and it was not taken before.
    pub fn take_stderr(&self) -> Option<ChildStderr> {
        self.0.with_child(|child| child.stderr.take())
    }
}

impl fmt::Debug for ProcessManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessManager").field("children", &self.children.lock().len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
