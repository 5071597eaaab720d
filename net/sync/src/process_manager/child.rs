//! One child: whether it has ended, how, and what can be done to it before.
//!
//! Everything that names the child by its number happens under its lock and before it is reaped: as long as it has not
//! been, the number cannot be another process's.

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::time::Duration;
use std::{fmt, io};

#[cfg(target_os = "linux")]
use super::CpuTimes;
use super::waiting;
use crate::deadline::Deadline;
use crate::{Condition, Mutex};

pub(super) struct Record {
    pub(super) id: u32,
    /// It leads a process group of its own.
    #[cfg(unix)]
    leads_group: bool,
    /// Readable when the child has ended; none where the kernel has none to give.
    #[cfg(target_os = "linux")]
    pub(super) pidfd: Option<OwnedFd>,
    state: Mutex<State>,
    ended: Condition,
}

struct State {
    child: Child,
    end: End,
    /// What is left of its group when it ends is killed.
    #[cfg(unix)]
    sweeps_group: bool,
    #[cfg(target_os = "linux")]
    cpu: Option<CpuTimes>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    NotYet,
    Known(ExitStatus),
    /// Somebody else has reaped it.
    #[cfg(unix)]
    Lost,
}

impl End {
    fn result(self) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::NotYet => Ok(None),
            Self::Known(status) => Ok(Some(status)),
            #[cfg(unix)]
            Self::Lost => Err(io::Error::other("somebody else has reaped the child, so nobody knows how it ended")),
        }
    }
}

impl Record {
    pub(super) fn new(child: Child, leads_group: bool) -> Self {
        #[cfg(not(unix))]
        let _ = leads_group; // no such thing
        Self {
            id: child.id(),
            #[cfg(unix)]
            leads_group,
            #[cfg(target_os = "linux")]
            pidfd: waiting::open(child.id()),
            state: Mutex::new(State {
                child,
                end: End::NotYet,
                #[cfg(unix)]
                sweeps_group: false,
                #[cfg(target_os = "linux")]
                cpu: None,
            }),
            ended: Condition::new(),
        }
    }

    /// Works on what is left of the standard library's handle.
    pub(super) fn with_child<T>(&self, work: impl FnOnce(&mut Child) -> T) -> T {
        work(&mut self.state.lock().child)
    }

    /// How the child ended, if it has; reaps it then.
    pub(super) fn status(&self) -> io::Result<Option<ExitStatus>> {
        let mut state = self.state.lock();
        if !matches!(state.end, End::NotYet) || !self.has_ended(&mut state)? {
            return state.end.result();
        }
        self.reap(&mut state)?;
        self.ended.notify_all();
        state.end.result()
    }

    /// Whether nothing is left to wait for, for those who do not ask how it ended.
    pub(super) fn is_over(&self) -> bool {
        !matches!(self.status(), Ok(None))
    }

    /// Waits until the child has ended; none if that takes longer than `timeout`.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> io::Result<Option<ExitStatus>> {
        let deadline = timeout.map(Deadline::after);
        let mut turns = 0;
        loop {
            let status = self.status()?;
            let remaining = deadline.map_or(Duration::MAX, Deadline::remaining);
            if status.is_some() || remaining.is_zero() {
                return Ok(status);
            }
            self.sleep(remaining, &mut turns)?;
        }
    }

    /// What it is waited for by.
    pub(super) fn watch(&self) -> waiting::Watch<'_> {
        #[cfg(target_os = "linux")]
        return self.pidfd.as_ref().map(std::os::fd::AsFd::as_fd);
        #[cfg(not(target_os = "linux"))]
        return std::marker::PhantomData;
    }

    /// Sleeps until the child may have ended.
    fn sleep(&self, remaining: Duration, turns: &mut u32) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if self.pidfd.is_some() {
            return waiting::until_one_may_have_ended(std::iter::once(self.watch()), remaining, turns);
        }
        let mut state = self.state.lock();
        if matches!(state.end, End::NotYet) {
            self.ended.wait_for(&mut state, remaining.min(waiting::turn(turns)));
        }
        Ok(())
    }

    /// Kills the child, and what else is in its group if it has one of its own. Nothing, if it has ended.
    pub(super) fn kill(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if !matches!(state.end, End::NotYet) {
            return Ok(());
        }
        #[cfg(unix)]
        if self.leads_group {
            state.sweeps_group = true; // and what a member is just starting
            return self.kill_group();
        }
        state.child.kill()
    }

    #[cfg(not(unix))]
    fn has_ended(&self, state: &mut State) -> io::Result<bool> {
        Ok(state.child.try_wait()?.is_some())
    }

    #[cfg(not(unix))]
    fn reap(&self, state: &mut State) -> io::Result<()> {
        state.end = state.child.try_wait()?.map_or(End::NotYet, End::Known);
        Ok(())
    }
}

#[cfg(unix)]
mod unix {
    use super::{End, Record, State, io};
    use rustix::io::Errno;
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

    impl Record {
        fn pid(&self) -> Pid {
            Pid::from_raw(self.id.cast_signed()).expect("a child's number is not zero")
        }

        /// Whether it has, leaving it to be reaped: its number stays its own for the moment.
        pub(super) fn has_ended(&self, state: &mut State) -> io::Result<bool> {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            loop {
                match waitid(WaitId::Pid(self.pid()), options) {
                    Ok(ended) => return Ok(ended.is_some()),
                    Err(Errno::INTR) => {}
                    // Reaped by a stranger's wait(-1), or by the kernel because SIGCHLD is ignored.
                    Err(Errno::CHILD) => {
                        state.end = End::Lost;
                        return Ok(false);
                    }
                    Err(e) => return Err(e.into()),
                }
            }
        }

        /// Takes leave of a child that has ended: after this its number may be another's.
        pub(super) fn reap(&self, state: &mut State) -> io::Result<()> {
            if state.sweeps_group {
                let _ = self.kill_group(); // whoever is left; perhaps nobody
            }
            #[cfg(target_os = "linux")]
            {
                state.cpu = super::CpuTimes::of(self.id).ok();
            }
            state.end = state.child.try_wait()?.map_or(End::NotYet, End::Known);
            Ok(())
        }

        /// The caller has made sure that the child has not been reaped.
        pub(super) fn kill_group(&self) -> io::Result<()> {
            Ok(kill_process_group(self.pid(), Signal::KILL)?)
        }

        /// Sends a signal to the child, or to its group.
        pub(in super::super) fn signal(&self, signal: Signal, to_group: bool) -> io::Result<()> {
            let state = self.state.lock();
            if !matches!(state.end, End::NotYet) || to_group && !self.leads_group {
                return Err(Errno::SRCH.into());
            }
            let pid = self.pid();
            Ok(if to_group { kill_process_group(pid, signal) } else { kill_process(pid, signal) }?)
        }

        /// Asks the child, or its group, to end; what is left of a group when its leader has ended is killed.
        pub(in super::super) fn ask_to_end(&self) -> io::Result<()> {
            if self.leads_group {
                self.state.lock().sweeps_group = true;
            }
            match self.signal(Signal::TERM, self.leads_group) {
                Err(e) if e.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(()), // it has ended
                result => result,
            }
        }
    }
}

#[cfg(target_os = "linux")]
impl Record {
    pub(super) fn cpu_times(&self) -> io::Result<CpuTimes> {
        let state = self.state.lock();
        match state.end {
            End::NotYet => CpuTimes::of(self.id),
            _ => {
                state.cpu.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "not known when the child was reaped"))
            }
        }
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Process");
        f.field("id", &self.id);
        match self.state.try_lock().map(|state| state.end) {
            Some(End::Known(status)) => f.field("ended", &status).finish(),
            _ => f.finish_non_exhaustive(),
        }
    }
}
