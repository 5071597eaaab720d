//! Scheduling priorities of threads.

use std::fmt;

/// Scheduling priority of a thread.
///
/// The five levels exist on every platform. On Linux they stand for nice values (19, 10, 0, -10, -20;
/// `setpriority(2)`, which Linux applies to single threads), on Windows for `THREAD_PRIORITY_LOWEST` to
/// `_HIGHEST`. On Linux a priority above that of the spawning thread needs a privilege: `CAP_SYS_NICE`, or a
/// limit that allows it (`RLIMIT_NICE`, `RLIMIT_RTPRIO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Priority {
    /// Runs when the processor is otherwise nearly idle.
    Lowest,
    /// Yields to ordinary threads.
    Low,
    /// The priority of ordinary threads.
    Normal,
    /// Preferred to ordinary threads.
    High,
    /// Preferred to nearly all others.
    Highest,
    /// An ordinary thread (`SCHED_OTHER`) with this nice value, from -20 (favoured) to 19.
    #[cfg(target_os = "linux")]
    Nice(i8),
    /// Real-time, from 1 to 99: runs until it blocks or a thread of a higher priority is ready (`SCHED_FIFO`,
    /// `sched(7)`).
    #[cfg(target_os = "linux")]
    Fifo(u8),
    /// Real-time, from 1 to 99: takes turns with threads of the same priority (`SCHED_RR`, `sched(7)`).
    #[cfg(target_os = "linux")]
    RoundRobin(u8),
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lowest => f.write_str("lowest"),
            Self::Low => f.write_str("low"),
            Self::Normal => f.write_str("normal"),
            Self::High => f.write_str("high"),
            Self::Highest => f.write_str("highest"),
            #[cfg(target_os = "linux")]
            Self::Nice(value) => write!(f, "nice {value}"),
            #[cfg(target_os = "linux")]
            Self::Fifo(priority) => write!(f, "first-in first-out {priority}"),
            #[cfg(target_os = "linux")]
            Self::RoundRobin(priority) => write!(f, "round-robin {priority}"),
        }
    }
}
