//! Affinity and priority of the calling thread.

use super::{Priority, SpawnError};

/// The processors on which the calling thread may run, by number, in rising order (`sched_getaffinity(2)`).
///
/// # Errors
/// The operating system's, for example if it has more processors than the interface can represent.
#[cfg(target_os = "linux")]
pub fn allowed_cpus() -> std::io::Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// The scheduling priority of the calling thread. On Linux: [`Fifo`](Priority::Fifo),
/// [`RoundRobin`](Priority::RoundRobin) or, for an ordinary thread, [`Nice`](Priority::Nice).
///
/// # Errors
/// The operating system's; `Unsupported` on other systems, and `InvalidData` for a thread of another scheduling policy
/// (`SCHED_DEADLINE`).
pub fn current_priority() -> std::io::Result<Priority> {
    imp::priority()
}

/// Changes the scheduling priority of the calling thread.
///
/// # Errors
/// [`SpawnError::NotPermitted`] without the right to do so, else [`SpawnError::Priority`].
pub fn set_current_priority(priority: Priority) -> Result<(), SpawnError> {
    imp::set_priority(priority)
}

/// Gives the calling thread another scheduling priority, until the guard is dropped in the same thread.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use spandrel_sync::{Priority, PriorityGuard, current_priority};
///
/// let before = current_priority()?;
/// let guard = PriorityGuard::set(Priority::Nice(19))?;
/// assert_eq!(guard.restores(), before);
/// assert_eq!(current_priority()?, Priority::Nice(19));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Without the right to raise a priority, the thread keeps the lower one. [`restore`](Self::restore) reports that.
#[derive(Debug)]
#[must_use = "the priority is restored when the guard is dropped"]
pub struct PriorityGuard {
    /// `None` once it is restored.
    before: Option<Priority>,
    /// The priority is that of the thread that made the guard.
    not_send: std::marker::PhantomData<*const ()>,
}

impl PriorityGuard {
    /// Changes the calling thread's priority.
    ///
    /// # Errors
    /// As [`set_current_priority`]; then the priority is unchanged. [`SpawnError::Priority`] if the present priority
    /// is unknown.
    pub fn set(priority: Priority) -> Result<Self, SpawnError> {
        let before = current_priority().map_err(|source| SpawnError::Priority { priority, source })?;
        if before != priority {
            set_current_priority(priority)?;
        }
        Ok(Self { before: Some(before), not_send: std::marker::PhantomData })
    }

    /// The priority that the thread had before.
    #[must_use]
    pub fn restores(&self) -> Priority {
        self.before.unwrap_or(Priority::Normal)
    }

    /// Restores the priority now, and reports a failure, which dropping would hide.
    ///
    /// # Errors
    /// As [`set_current_priority`].
    pub fn restore(mut self) -> Result<(), SpawnError> {
        self.before.take().map_or(Ok(()), set_current_priority)
    }
}

impl Drop for PriorityGuard {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            // `restore` is for callers that have to know.
            let _ = set_current_priority(before);
        }
    }
}

/// The model checker's threads are no threads of the operating system.
#[cfg(any(shuttle, test))]
mod imp {
    use super::{Priority, SpawnError};

    #[cfg(target_os = "linux")]
    pub(crate) fn set_affinity(_: &[usize]) -> Result<(), SpawnError> {
        Ok(())
    }

    pub(crate) fn set_priority(_: Priority) -> Result<(), SpawnError> {
        Ok(())
    }

    pub(super) fn priority() -> std::io::Result<Priority> {
        Ok(Priority::Normal)
    }
}

#[cfg(all(target_os = "linux", not(any(shuttle, test))))]
mod imp {
    use std::io;

    use super::{Priority, SpawnError};
    use rustix::thread::{CpuSet, sched_setaffinity};
    use thread_priority::{
        NormalThreadSchedulePolicy::Other, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue,
        ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
    };

    use crate::backend::scheduler;

    pub(crate) fn set_affinity(cpus: &[usize]) -> Result<(), SpawnError> {
        let mut set = CpuSet::new();
        for &cpu in cpus {
            if cpu >= CpuSet::MAX_CPU {
                return Err(SpawnError::NoSuchCpu { cpu });
            }
            set.set(cpu);
        }
        sched_setaffinity(None, &set).map_err(|e| SpawnError::Affinity { cpus: cpus.to_vec(), source: e.into() })
    }

    pub(crate) fn set_priority(priority: Priority) -> Result<(), SpawnError> {
        let outcome = match priority {
            Priority::Lowest => set_nice(19),
            Priority::Low => set_nice(10),
            Priority::Normal => set_nice(0),
            Priority::High => set_nice(-10),
            Priority::Highest => set_nice(-20),
            Priority::Nice(value) => set_nice(value),
            Priority::Fifo(value) => set_real_time(value, RealtimeThreadSchedulePolicy::Fifo),
            Priority::RoundRobin(value) => set_real_time(value, RealtimeThreadSchedulePolicy::RoundRobin),
        };
        outcome.map_err(|source| super::refused(priority, source))
    }

    pub(super) fn priority() -> io::Result<Priority> {
        let (policy, real_time) = scheduler::policy_and_priority(0)?;
        let real_time = u8::try_from(real_time).unwrap_or(0);
        match policy {
            libc::SCHED_FIFO => Ok(Priority::Fifo(real_time)),
            libc::SCHED_RR => Ok(Priority::RoundRobin(real_time)),
            libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE => {
                let nice = rustix::process::getpriority_process(None)?;
                Ok(Priority::Nice(i8::try_from(nice).unwrap_or_default()))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the thread has another scheduling policy")),
        }
    }

    fn set_nice(value: i8) -> io::Result<()> {
        if !(-20..=19).contains(&value) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a nice value must be between -20 and 19"));
        }
        // A real-time thread's children are real-time threads. The nice value that this call sets is replaced
        // below.
        if scheduler::is_real_time(0)? {
            set_thread_priority_and_policy(
                thread_native_id(),
                ThreadPriority::Min,
                ThreadSchedulePolicy::Normal(Other),
            )
            .map_err(super::from_library)?;
        }
        // Linux applies "this process" to the calling thread (setpriority(2), "C library/kernel
        // differences").
        Ok(rustix::process::setpriority_process(None, i32::from(value))?)
    }

    fn set_real_time(value: u8, policy: RealtimeThreadSchedulePolicy) -> io::Result<()> {
        let value = ThreadPriorityValue::try_from(value).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, "a real-time priority must be between 1 and 99")
        })?;
        let (priority, policy) = (ThreadPriority::Crossplatform(value), ThreadSchedulePolicy::Realtime(policy));
        set_thread_priority_and_policy(thread_native_id(), priority, policy).map_err(super::from_library)
    }
}

#[cfg(all(windows, not(any(shuttle, test))))]
mod imp {
    use super::{Priority, SpawnError};
    use thread_priority::{WinAPIThreadPriority, set_winapi_thread_priority, thread_native_id};

    pub(crate) fn set_priority(priority: Priority) -> Result<(), SpawnError> {
        let level = match priority {
            Priority::Lowest => WinAPIThreadPriority::Lowest,
            Priority::Low => WinAPIThreadPriority::BelowNormal,
            Priority::Normal => WinAPIThreadPriority::Normal,
            Priority::High => WinAPIThreadPriority::AboveNormal,
            Priority::Highest => WinAPIThreadPriority::Highest,
        };
        set_winapi_thread_priority(thread_native_id(), level)
            .map_err(|e| super::refused(priority, super::from_library(e)))
    }

    pub(super) fn priority() -> std::io::Result<Priority> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(not(any(target_os = "linux", windows)), not(any(shuttle, test))))]
mod imp {
    use super::{Priority, SpawnError};

    /// Accepts only the default priority.
    pub(crate) fn set_priority(priority: Priority) -> Result<(), SpawnError> {
        match priority {
            Priority::Normal => Ok(()),
            _ => Err(super::refused(priority, std::io::ErrorKind::Unsupported.into())),
        }
    }

    pub(super) fn priority() -> std::io::Result<Priority> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

#[cfg(target_os = "linux")]
pub(super) use imp::set_affinity;
pub(super) use imp::set_priority;

#[cfg(not(any(shuttle, test)))]
fn refused(priority: Priority, source: std::io::Error) -> SpawnError {
    match source.kind() {
        std::io::ErrorKind::PermissionDenied => SpawnError::NotPermitted { priority },
        _ => SpawnError::Priority { priority, source },
    }
}

#[cfg(all(any(target_os = "linux", windows), not(any(shuttle, test))))]
fn from_library(error: thread_priority::Error) -> std::io::Error {
    use std::io;
    match error {
        thread_priority::Error::OS(code) => io::Error::from_raw_os_error(code),
        other => io::Error::new(io::ErrorKind::InvalidInput, other),
    }
}
