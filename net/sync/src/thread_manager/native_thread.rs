//! Threads by the kernel's numbers: the demotion of one by another, and how one looks at the progress of another.

use std::{io, time::Duration};

use crate::atomic::{AtomicI32, Ordering};

/// The kernel's number of a thread (`gettid(2)`), which is valid while that thread runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NativeThreadId(#[cfg_attr(not(target_os = "linux"), allow(dead_code))] i32);

impl NativeThreadId {
    /// The number of the calling thread; `None` on systems other than Linux.
    #[must_use]
    pub fn current() -> Option<Self> {
        imp::current().map(Self)
    }

    /// Whether the thread runs or waits for a processor; `false` if it waits for an event, `None` if the system does not
    /// say so of a thread of this process.
    pub(crate) fn is_runnable(self) -> Option<bool> {
        imp::is_runnable(self.0)
    }

    /// The processor time that the thread has used; `None` if the system does not say so.
    pub(crate) fn processor_time(self) -> Option<Duration> {
        imp::processor_time(self.0)
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

/// The thread that does some work, for other threads that look at its progress.
///
/// It names no thread on systems other than Linux.
#[derive(Debug)]
pub struct WorkingThread(AtomicI32);

/// In place of a thread's number.
const NO_THREAD: i32 = 0;

impl WorkingThread {
    /// A value that names no thread yet.
    #[must_use]
    pub fn none() -> Self {
        Self(AtomicI32::new(NO_THREAD))
    }

    /// Names the calling thread. The kernel is asked for its number at the first call of each thread.
    #[inline]
    pub fn record_current(&self) {
        match imp::remembered() {
            NO_THREAD => {}
            thread => self.0.store(thread, Ordering::Relaxed),
        }
    }

    /// The thread that was named last. It may have ended, or be one of the parent process after a `fork`. The kernel
    /// then knows no such thread of this process, unless a later thread has the number.
    pub(crate) fn get(&self) -> Option<NativeThreadId> {
        match self.0.load(Ordering::Relaxed) {
            NO_THREAD => None,
            thread => Some(NativeThreadId(thread)),
        }
    }
}

impl Default for WorkingThread {
    fn default() -> Self {
        Self::none()
    }
}

#[cfg(all(target_os = "linux", not(any(shuttle, test))))]
mod imp {
    use std::{cell::Cell, fs, io, time::Duration};

    use rustix::process::{Pid, setpriority_process};

    use super::NO_THREAD;
    use crate::backend::scheduler;

    thread_local! {
        /// The number of the thread, once it was asked for.
        static CURRENT: Cell<i32> = const { Cell::new(NO_THREAD) };
    }

    #[allow(clippy::unnecessary_wraps, reason = "other systems have none")]
    pub(super) fn current() -> Option<i32> {
        Some(rustix::thread::gettid().as_raw_nonzero().get())
    }

    #[inline]
    pub(super) fn remembered() -> i32 {
        match CURRENT.get() {
            NO_THREAD => ask_and_remember(),
            thread => thread,
        }
    }

    #[cold]
    fn ask_and_remember() -> i32 {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        CURRENT.set(thread);
        thread
    }

    /// By the state in `/proc/self/task/TID/stat` (`proc(5)`), which follows the name in brackets.
    pub(super) fn is_runnable(thread: i32) -> Option<bool> {
        let line = fs::read(format!("/proc/self/task/{thread}/stat")).ok()?;
        let end_of_name = line.iter().rposition(|octet| *octet == b')')?;
        Some(*line.get(end_of_name + 2)? == b'R')
    }

    pub(super) fn processor_time(thread: i32) -> Option<Duration> {
        scheduler::processor_time(thread)
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
    use std::{io, time::Duration};

    pub(super) fn current() -> Option<i32> {
        None
    }

    #[inline]
    pub(super) fn remembered() -> i32 {
        super::NO_THREAD
    }

    pub(super) fn is_runnable(_: i32) -> Option<bool> {
        None
    }

    pub(super) fn processor_time(_: i32) -> Option<Duration> {
        None
    }

    pub(super) fn demote(_: i32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
