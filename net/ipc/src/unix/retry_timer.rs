//! A retry timer with a handle, for conditions that signal no event.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::Handle;

/// A timer whose handle becomes readable after each of its pauses, which grow.
#[derive(Debug)]
pub(crate) struct RetryTimer {
    timer: OwnedFd,
    pause: Duration,
}

impl RetryTimer {
    pub(crate) fn start() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let mut retry_timer = Self { timer: timerfd_create(TimerfdClockId::Monotonic, flags)?, pause: SHORTEST };
        retry_timer.restart()?;
        Ok(retry_timer)
    }

    /// Resets the handle; it becomes readable after the next pause.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let after = Timespec::try_from(self.pause).expect("it is short");
        let once = Itimerspec { it_interval: zero, it_value: after };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        self.pause = (self.pause * 2).min(LONGEST);
        Ok(())
    }

    pub(crate) fn handle(&self) -> Handle<'_> {
        self.timer.as_fd()
    }
}

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(50);
