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
}

#[cfg(all(target_os = "linux", not(any(shuttle, test))))]
mod imp {
    use std::io;

    use super::{Priority, SpawnError};
    use rustix::thread::{CpuSet, sched_setaffinity};
    use thread_priority::{
        NormalThreadSchedulePolicy::Other, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue,
        ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id, thread_schedule_policy,
    };

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
        let done = match priority {
            Priority::Lowest => set_nice(19),
            Priority::Low => set_nice(10),
            Priority::Normal => set_nice(0),
            Priority::High => set_nice(-10),
            Priority::Highest => set_nice(-20),
            Priority::Nice(value) => set_nice(value),
            Priority::Fifo(value) => set_real_time(value, RealtimeThreadSchedulePolicy::Fifo),
            Priority::RoundRobin(value) => set_real_time(value, RealtimeThreadSchedulePolicy::RoundRobin),
        };
        done.map_err(|source| super::refused(priority, source))
    }

    fn set_nice(value: i8) -> io::Result<()> {
        if !(-20..=19).contains(&value) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a nice value must be between -20 and 19"));
        }
        // A real-time thread's children are real-time threads. The nice value that this call sets is replaced
        // below.
        if matches!(thread_schedule_policy(), Ok(ThreadSchedulePolicy::Realtime(_))) {
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
