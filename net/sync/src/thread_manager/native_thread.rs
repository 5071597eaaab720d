//! Threads by the kernel's numbers, and the demotion of one by another.

use std::io;

/// The kernel's number of a thread (`gettid(2)`), which is valid while that thread runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NativeThreadId(#[cfg_attr(not(target_os = "linux"), allow(dead_code))] i32);

impl NativeThreadId {
    /// The number of the calling thread; `None` on systems other than Linux.
    #[must_use]
    pub fn current() -> Option<Self> {
        imp::current().map(Self)
    }

    /// Makes a thread of this process less urgent: a real-time thread becomes an ordinary one (`SCHED_OTHER`) with the
    /// nice value that it has, and an ordinary one gets the nice value 19. No right is needed for that.
    ///
    /// The caller makes sure that the thread has not ended: its number may be that of another one afterwards.
    ///
    /// # Errors
    /// The operating system's: `ESRCH` if there is no such thread.
    pub fn demote(self) -> io::Result<()> {
        imp::demote(self.0)
    }
}

#[cfg(all(target_os = "linux", not(any(shuttle, test))))]
mod imp {
    use std::io;

    use rustix::process::{Pid, setpriority_process};

    use crate::backend::scheduler;

    #[allow(clippy::unnecessary_wraps, reason = "other systems have none")]
    pub(super) fn current() -> Option<i32> {
        Some(rustix::thread::gettid().as_raw_nonzero().get())
    }

    pub(super) fn demote(thread: i32) -> io::Result<()> {
        if scheduler::is_real_time(thread)? {
            return scheduler::make_ordinary(thread);
        }
        // Linux applies the value of "this process" to the thread of that number (setpriority(2)).
        Ok(setpriority_process(Pid::from_raw(thread), 19)?)
    }
}

/// The model checker's threads are no threads of the operating system.
#[cfg(not(all(target_os = "linux", not(any(shuttle, test)))))]
mod imp {
    use std::io;

    pub(super) fn current() -> Option<i32> {
        None
    }

    pub(super) fn demote(_: i32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
