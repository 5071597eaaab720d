//! Forked processes, one for each connection, without a reactor in the process that forks.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, WaitOptions, kill_process, pidfd_getfd, pidfd_open, waitpid,
};
use spandrel_ipc::{Handle, Pollable};

use crate::sys::fork::{self, ChildSignal};

/// The processes that this process forks, one for each connection (paper 004, section 4.3).
///
/// For a process with one thread that does nothing but accept and fork, so that a connection costs little more than
/// `fork` itself. It reaps every child of the process, so that the process starts no children by other means. A server
/// with threads uses [`ProcessPerConnection`](crate::strategy::ProcessPerConnection). SIGCHLD is blocked in the meantime.
///
/// It is [ready](Pollable) for input when children may have ended; [`reap`](Self::reap) is called then.
#[derive(Debug)]
pub struct ForkedProcesses {
    running: Vec<ForkedProcess>,
    ended: ChildSignal,
    /// The signal mask is that of a thread.
    _not_send: PhantomData<*const ()>,
}

#[derive(Debug)]
struct ForkedProcess {
    pid: Pid,
    /// The number of the connection's handle in the child.
    handle: RawFd,
}

impl ForkedProcesses {
    /// Creates the record of children that this process will fork.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    pub fn new() -> io::Result<Self> {
        Ok(Self { running: Vec::new(), ended: ChildSignal::new()?, _not_send: PhantomData })
    }

    /// Forks: the child closes all handles but the standard ones, that of `stream` and those of `keep`. Then it runs
    /// `serve`, and ends. `serve` must use no other handles. In this process the stream is closed.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] while this process has several threads; [`io::ErrorKind::WouldBlock`] beyond the
    /// limits of the system, also after the processes that have ended are reaped; others of the system.
    pub fn spawn<S: Pollable>(&mut self, stream: S, keep: &[Handle<'_>], serve: impl FnOnce(&S)) -> io::Result<()> {
        match fork_with(fork::fork, || self.reap())? {
            // Never returns: the child owns nothing but its connection.
            None => fork::end_copy(stream.handle(), keep, || serve(&stream)),
            Some(pid) => {
                self.running.push(ForkedProcess { pid, handle: stream.handle().as_raw_fd() });
                Ok(())
            }
        }
    }

    /// The number of processes that have not been reaped.
    #[must_use]
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether all processes have been reaped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Reaps the processes that have ended. Does not wait.
    pub fn reap(&mut self) {
        // First the signal, then the processes: one that ends in between is reported again.
        self.ended.clear();
        while !self.running.is_empty() {
            match waitpid(None, WaitOptions::NOHANG) {
                Ok(Some((pid, _))) => self.running.retain(|process| process.pid != pid),
                Ok(None) => return,
                Err(rustix::io::Errno::INTR) => {}
                // No children: they were reaped elsewhere.
                Err(_) => self.running.clear(),
            }
        }
    }

    /// Sends a signal to all processes. They have the handlers that this process had when it forked them.
    pub fn signal(&self, signal: crate::Signal) {
        let Some(signal) = Signal::from_named_raw(signal.number()) else { return };
        for process in &self.running {
            // The process is not reaped, so that its ID is its own.
            if let Err(error) = kill_process(process.pid, signal) {
                tracing::debug!(%error, "a process that serves a connection cannot be signalled");
            }
        }
    }

    /// Ends the input of all connections, so that each process serves the octets that have arrived, and then the end.
    pub fn begin_drain(&self) {
        for process in &self.running {
            if let Err(error) = end_input(process) {
                tracing::debug!(%error, "a process that serves a connection cannot be drained");
            }
        }
    }

    /// Kills all processes, and waits for their ends; returns their number.
    pub fn kill(&mut self) -> usize {
        self.reap();
        let killed = std::mem::take(&mut self.running);
        for process in &killed {
            let _ = kill_process(process.pid, Signal::KILL);
            let _ = rustix::io::retry_on_intr(|| waitpid(Some(process.pid), WaitOptions::empty()));
        }
        killed.len()
    }
}

/// Forks; beyond a limit of the system, forks again after the processes that have ended, which count for the limit, are
/// reaped.
fn fork_with<T>(fork: impl Fn() -> io::Result<T>, reap: impl FnOnce()) -> io::Result<T> {
    match fork() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            reap();
            fork()
        }
        forked => forked,
    }
}

/// Makes a child find the end of its input, by shutting down its socket for reading.
///
/// # Errors
/// Errors of the system, which may not let this process duplicate the child's handle. The child then goes on until its
/// peer has finished.
fn end_input(process: &ForkedProcess) -> rustix::io::Result<()> {
    // The process is not reaped, so that its ID is its own.
    let pidfd = pidfd_open(process.pid, PidfdFlags::empty())?;
    let stream = pidfd_getfd(&pidfd, process.handle, PidfdGetfdFlags::empty())?;
    rustix::net::shutdown(stream, rustix::net::Shutdown::Read)
}

impl Pollable for ForkedProcesses {
    fn handle(&self) -> Handle<'_> {
        self.ended.as_fd()
    }
}

impl Drop for ForkedProcesses {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn processes_that_have_ended_are_reaped_before_a_fork_fails() {
        let unreaped = Cell::new(3);
        let beyond = |limit: usize| {
            let unreaped = &unreaped;
            move || if unreaped.get() < limit { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        };
        fork_with(beyond(4), || panic!("there is room")).unwrap();
        fork_with(beyond(3), || unreaped.set(0)).unwrap();
        let error = fork_with(beyond(0), || {}).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "the others run");
    }

    #[test]
    fn other_failures_are_not_tried_again() {
        let failed = || Err::<(), _>(io::ErrorKind::Unsupported.into());
        let error = fork_with(failed, || panic!("it does not help")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }
}
