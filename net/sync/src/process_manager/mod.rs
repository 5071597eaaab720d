//! Child processes that are managed together (paper 002, 2.6; `ACE_Process_Manager`).
//!
//! A [`ProcessManager`] spawns what a [`std::process::Command`] describes, within a bound; waits for its children with or
//! without a limit; reaps them, so that no zombies gather; and ends them when it is dropped, unless told otherwise. It
//! asks for its own children only, by their number: it installs no signal handler and never waits for "any child", so
//! other parts of a program can have children of their own. What is said to the children belongs to `spandrel-ipc`.
//!
//! Under the model checker, too, these are real processes.

mod child;
#[cfg(target_os = "linux")]
mod cpu;
mod waiting;

use std::ffi::OsString;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::time::Duration;
use std::{fmt, io};

use crate::deadline::Deadline;
use crate::thread::Builder;
use crate::{Arc, Mutex};
use child::Record;

#[cfg(target_os = "linux")]
pub use cpu::CpuTimes;
/// A signal's number, by the name that POSIX gives it without `SIG`: `Signal::TERM`.
#[cfg(unix)]
pub use rustix::process::Signal;

/// The stack of the thread that waits for detached children; it does nothing else.
const REAPER_STACK_OCTETS: usize = 64 * 1024;

/// What becomes of the children that run when their manager is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDrop {
    /// They are killed and reaped. That takes as long as the operating system takes to end them.
    #[default]
    Kill,
    /// They are waited for.
    Wait,
    /// They go on. A thread of the manager's reaps each when it ends, for as long as this process lasts.
    Detach,
}

/// Why a child was not spawned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The manager has as many children as it may.
    #[error("the process manager has its limit of {limit} children")]
    LimitReached {
        /// That many.
        limit: usize,
    },
    /// The operating system did not run the program.
    #[error("cannot run `{}`", program.display())]
    Spawn {
        /// The program as the command names it.
        program: OsString,
        /// Why not.
        source: io::Error,
    },
}

/// Spawns child processes and keeps account of them.
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
    /// All that have been spawned and not been handed out by `reap`.
    children: Mutex<Vec<Process>>,
}

/// A child of a [`ProcessManager`]. Its clones are the same child, and outlive the manager: how it ended stays known.
#[derive(Clone)]
pub struct Process(Arc<Record>);

impl ProcessManager {
    /// How many children a manager has at most if not told otherwise.
    pub const DEFAULT_LIMIT: usize = 256;

    /// A manager of at most [`DEFAULT_LIMIT`](Self::DEFAULT_LIMIT) children at a time, which kills them when dropped.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }

    /// A manager of at most so many children at a time, which kills them when dropped.
    #[must_use]
    pub fn with_limit(children: usize) -> Self {
        Self { limit: children, on_drop: OnDrop::Kill, children: Mutex::default() }
    }

    /// Says what becomes of the children that run when the manager is dropped.
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

    /// Runs a program as a child that leads a process group of its own (`setpgid(2)`), to which its descendants belong
    /// unless they leave it: they can be signalled together, and are killed together.
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
            // Room is made by those that have ended, though nobody asked how. Their handles know.
            children.retain(|child| !child.0.is_over());
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

    /// Takes the children that have ended out of the manager, in the order in which they were spawned. Does not wait.
    ///
    /// A program that runs children for long calls this from time to time, or when a child's
    /// [handle](Process::handle) says so; what has ended stays a zombie until then.
    pub fn reap(&self) -> Vec<Process> {
        self.children.lock().extract_if(.., |child| child.0.is_over()).collect()
    }

    /// Waits until some child has ended and takes it out of the manager; none if that takes longer than `timeout`, or at
    /// once if there are no children.
    ///
    /// # Errors
    /// The operating system's.
    pub fn wait_any(&self, timeout: Duration) -> io::Result<Option<Process>> {
        let deadline = Deadline::after(timeout);
        let mut turns = 0;
        loop {
            let children = {
                let mut children = self.children.lock();
                if let Some(ended) = children.iter().position(|child| child.0.is_over()) {
                    return Ok(Some(children.remove(ended)));
                }
                children.clone()
            };
            let remaining = deadline.remaining();
            if children.is_empty() || remaining.is_zero() {
                return Ok(None);
            }
            waiting::until_one_may_have_ended(children.iter().map(|child| child.0.watch()), remaining, &mut turns)?;
        }
    }

    /// Waits until all children have ended.
    ///
    /// # Errors
    /// The operating system's.
    pub fn wait(&self) -> io::Result<()> {
        wait_for_all(&self.list(), None).map(drop)
    }

    /// Waits until all children have ended; false if that takes longer than `timeout`.
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
                false // it would be waited for in vain
            }
        });
        wait_for_all(&children, None)?;
        refusal
    }

    /// Asks all children to end (`SIGTERM`), gives them that long, then kills those that have not, and waits until all
    /// have. Children that lead a group take their group with them.
    ///
    /// # Errors
    /// The operating system's.
    #[cfg(unix)]
    pub fn terminate_all(&self, grace: Duration) -> io::Result<()> {
        let children = self.list();
        for child in &children {
            let _ = child.0.ask_to_end(); // who may not be asked may not be killed either, and that is told below
        }
        if wait_for_all(&children, Some(grace))? {
            return Ok(());
        }
        self.kill_all()
    }

    /// How many children have not ended.
    #[must_use]
    pub fn running(&self) -> usize {
        self.children.lock().iter().filter(|child| !child.0.is_over()).count()
    }

    fn list(&self) -> Vec<Process> {
        self.children.lock().clone()
    }
}

/// Waits for one after the other, which takes as long as the longest of them.
fn wait_for_all(children: &[Process], timeout: Option<Duration>) -> io::Result<bool> {
    let deadline = timeout.map(Deadline::after);
    for child in children {
        match child.0.wait(deadline.map(Deadline::remaining)) {
            Ok(None) => return Ok(false),
            Ok(Some(_)) => {}
            Err(_) if child.0.is_over() => {} // somebody else has reaped it
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

/// Leaves the children that run to a thread that reaps them.
fn detach(mut children: Vec<Process>) {
    children.retain(|child| !child.0.is_over());
    if !children.is_empty() {
        let reaper = Builder::new().name("process reaper".into()).stack_size(REAPER_STACK_OCTETS);
        // Without a thread, they are zombies from their end until that of this process; nothing else is lost.
        drop(reaper.spawn(move || reap_all(children)));
    }
}

/// Reaps each child as it ends.
fn reap_all(mut children: Vec<Process>) {
    let mut turns = 0;
    while !children.is_empty() {
        let watched = children.iter().map(|child| child.0.watch());
        if waiting::until_one_may_have_ended(watched, Duration::MAX, &mut turns).is_err() {
            return;
        }
        children.retain(|child| !child.0.is_over());
    }
}

impl Process {
    /// The process's number. It may be another's once this one has ended and been reaped.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id
    }

    /// How the process ended; none while it runs.
    ///
    /// # Errors
    /// The operating system's; or somebody else has reaped the process, so that nobody knows how it ended.
    pub fn status(&self) -> io::Result<Option<ExitStatus>> {
        self.0.status()
    }

    /// Waits until the process has ended, and says how. A pipe to its standard input is not closed for that: see
    /// [`take_stdin`](Self::take_stdin).
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

    /// Waits until the process has ended; none if that takes longer than `timeout`.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn wait_for(&self, timeout: Duration) -> io::Result<Option<ExitStatus>> {
        self.0.wait(Some(timeout))
    }

    /// Kills the process (`SIGKILL`, `TerminateProcess`), and its group if it leads one. Nothing, if it has ended. Does
    /// not wait.
    ///
    /// # Errors
    /// The operating system's: the process may have gained privileges that its parent lacks.
    pub fn kill(&self) -> io::Result<()> {
        self.0.kill()
    }

    /// Sends a signal to the process.
    ///
    /// # Errors
    /// `ESRCH` if it has ended and been reaped: never is the signal sent to another process of the same number.
    #[cfg(unix)]
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        self.0.signal(signal, false)
    }

    /// Sends a signal to the process group that the process leads.
    ///
    /// # Errors
    /// `ESRCH` if it leads none, or has ended and been reaped: then the group's number is not safe to use.
    #[cfg(unix)]
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        self.0.signal(signal, true)
    }

    /// Asks the process to end (`SIGTERM`), gives it that long, then kills it; waits until it has ended. If it leads a
    /// group, the group is asked too, and what is left of it when the process has ended is killed.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    #[cfg(unix)]
    pub fn terminate(&self, grace: Duration) -> io::Result<ExitStatus> {
        self.0.ask_to_end()?;
        match self.wait_for(grace)? {
            Some(status) => Ok(status),
            None => self.kill().and_then(|()| self.wait()),
        }
    }

    /// What the process has used of the processors so far, with all its threads; after its end, all that it used.
    ///
    /// # Errors
    /// Of reading `/proc`.
    #[cfg(target_os = "linux")]
    pub fn cpu_times(&self) -> io::Result<CpuTimes> {
        self.0.cpu_times()
    }

    /// A handle that becomes readable when the process has ended (`pidfd_open(2)`), for a reactor to wait on; none where
    /// the kernel had none to give.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn handle(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.0.pidfd.as_ref().map(std::os::fd::AsFd::as_fd)
    }

    /// The pipe to its standard input, if the command asked for one and nobody has taken it. Dropped, it is closed.
    pub fn take_stdin(&self) -> Option<ChildStdin> {
        self.0.with_child(|child| child.stdin.take())
    }

    /// The pipe from its standard output, if the command asked for one and nobody has taken it.
    pub fn take_stdout(&self) -> Option<ChildStdout> {
        self.0.with_child(|child| child.stdout.take())
    }

    /// The pipe from its standard error, if the command asked for one and nobody has taken it.
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
