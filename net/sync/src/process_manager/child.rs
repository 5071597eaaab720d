//! One child process: its exit status, waiting, signals.
//!
//! Every use of the child's process ID happens under its lock and before it is reaped. Until then the ID
//! cannot belong to another process.

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::time::Duration;
use std::{fmt, io};

#[cfg(target_os = "linux")]
use super::CpuTimes;
use super::waiting;
use crate::time::Deadline;
use crate::{Condition, Mutex};

pub(super) struct Record {
    pub(super) id: u32,
    /// Whether the child leads a process group of its own.
    #[cfg(unix)]
    leads_group: bool,
    /// Readable when the child has ended; none where the kernel provides none.
    #[cfg(target_os = "linux")]
    pub(super) pidfd: Option<OwnedFd>,
    state: Mutex<State>,
    ended: Condition,
}

struct State {
    child: Child,
    end: End,
    /// Whether the rest of its group is killed when the child ends.
    #[cfg(unix)]
    kills_group: bool,
    #[cfg(target_os = "linux")]
    cpu: Option<CpuTimes>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Running,
    Ended(ExitStatus),
    /// Another part of the program has reaped it.
    #[cfg(unix)]
    ReapedElsewhere,
}

impl End {
    fn result(self) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::Running => Ok(None),
            Self::Ended(status) => Ok(Some(status)),
            #[cfg(unix)]
            Self::ReapedElsewhere => Err(io::Error::other(
                "the child was reaped outside of the process manager, so its exit status is unknown",
            )),
        }
    }
}

impl Record {
    pub(super) fn new(child: Child, leads_group: bool) -> Self {
        #[cfg(not(unix))]
        let _ = leads_group; // process groups exist on Unix only
        Self {
            id: child.id(),
            #[cfg(unix)]
            leads_group,
            #[cfg(target_os = "linux")]
            pidfd: waiting::open(child.id()),
            state: Mutex::new(State {
                child,
                end: End::Running,
                #[cfg(unix)]
                kills_group: false,
                #[cfg(target_os = "linux")]
                cpu: None,
            }),
            ended: Condition::new(),
        }
    }

    /// Gives access to the standard library's handle.
    pub(super) fn with_child<T>(&self, work: impl FnOnce(&mut Child) -> T) -> T {
        work(&mut self.state.lock().child)
    }

    /// The exit status if the child has ended; reaps it then.
    pub(super) fn status(&self) -> io::Result<Option<ExitStatus>> {
        let mut state = self.state.lock();
        if !matches!(state.end, End::Running) || !self.has_ended(&mut state)? {
            return state.end.result();
        }
        self.reap(&mut state)?;
        self.ended.notify_all();
        state.end.result()
    }

    /// Whether a wait would end at once, with a status or an error.
    pub(super) fn is_finished(&self) -> bool {
        !matches!(self.status(), Ok(None))
    }

    /// Waits until the child has ended; none after `timeout`.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> io::Result<Option<ExitStatus>> {
        let deadline = Deadline::after(timeout);
        let mut polls = 0;
        loop {
            let status = self.status()?;
            let remaining = deadline.remaining().unwrap_or(Duration::MAX);
            if status.is_some() || remaining.is_zero() {
                return Ok(status);
            }
            self.sleep(remaining, &mut polls)?;
        }
    }

    /// The handle that becomes readable when the child has ended, if any.
    pub(super) fn wait_handle(&self) -> waiting::WaitHandle<'_> {
        #[cfg(target_os = "linux")]
        return self.pidfd.as_ref().map(std::os::fd::AsFd::as_fd);
        #[cfg(not(target_os = "linux"))]
        return std::marker::PhantomData;
    }

    /// Sleeps until the child may have ended.
    fn sleep(&self, remaining: Duration, polls: &mut u32) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if self.pidfd.is_some() {
            return waiting::sleep_until_any_end(std::iter::once(self.wait_handle()), remaining, polls);
        }
        let mut state = self.state.lock();
        if matches!(state.end, End::Running) {
            self.ended.wait_for(&mut state, remaining.min(waiting::next_poll_interval(polls)));
        }
        Ok(())
    }

    /// Kills the child, and the rest of its group if it leads one. Does nothing if it has ended.
    pub(super) fn kill(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if !matches!(state.end, End::Running) {
            return Ok(());
        }
        #[cfg(unix)]
        if self.leads_group {
            state.kills_group = true; // also the processes that a member is just starting
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
        state.end = state.child.try_wait()?.map_or(End::Running, End::Ended);
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
            Pid::from_raw(self.id.cast_signed()).expect("a process ID is not zero")
        }

        /// Whether the child has ended, without reaping it: its process ID stays valid for the moment.
        pub(super) fn has_ended(&self, state: &mut State) -> io::Result<bool> {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            loop {
                match waitid(WaitId::Pid(self.pid()), options) {
                    Ok(ended) => return Ok(ended.is_some()),
                    Err(Errno::INTR) => {}
                    // Reaped by a wait(-1) elsewhere, or by the kernel because SIGCHLD is ignored.
                    Err(Errno::CHILD) => {
                        state.end = End::ReapedElsewhere;
                        return Ok(false);
                    }
                    Err(e) => return Err(e.into()),
                }
            }
        }

        /// Reaps a child that has ended: after this its process ID may be reused.
        pub(super) fn reap(&self, state: &mut State) -> io::Result<()> {
            if state.kills_group {
                let _ = self.kill_group(); // the rest of the group, perhaps empty
            }
            #[cfg(target_os = "linux")]
            {
                state.cpu = super::CpuTimes::for_process(self.id).ok();
            }
            state.end = state.child.try_wait()?.map_or(End::Running, End::Ended);
            Ok(())
        }

        /// The rest of the group is killed when the child, its leader, has ended.
        pub(in super::super) fn kill_group_at_end(&self) {
            self.state.lock().kills_group = self.leads_group;
        }

        /// The caller has made sure that the child has not been reaped.
        pub(super) fn kill_group(&self) -> io::Result<()> {
            Ok(kill_process_group(self.pid(), Signal::KILL)?)
        }

        /// Sends a signal to the child, or to its group.
        pub(in super::super) fn signal(&self, signal: Signal, to_group: bool) -> io::Result<()> {
            let state = self.state.lock();
            if !matches!(state.end, End::Running) || to_group && !self.leads_group {
                return Err(Errno::SRCH.into());
            }
            let pid = self.pid();
            Ok(if to_group { kill_process_group(pid, signal) } else { kill_process(pid, signal) }?)
        }

        /// Sends `SIGTERM` to the child, or to its group; when a group leader has ended, the rest of its
        /// group is killed.
        pub(in super::super) fn send_term(&self) -> io::Result<()> {
            self.kill_group_at_end();
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
            End::Running => CpuTimes::for_process(self.id),
            _ => state.cpu.ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::NotFound,
                    "the processor times could not be read when the child was reaped",
                )
            }),
        }
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Process");
        f.field("id", &self.id);
        match self.state.try_lock().map(|state| state.end) {
            Some(End::Ended(status)) => f.field("ended", &status).finish(),
            _ => f.finish_non_exhaustive(),
        }
    }
}
