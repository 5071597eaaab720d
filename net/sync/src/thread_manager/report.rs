//! The errors of spawning and the results of waiting.

use std::any::Any;
use std::{fmt, io};

use super::Priority;
use crate::Arc;

/// The reason why a thread was not spawned. Nothing of its body has run.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The manager has as many threads as its limit allows.
    #[error("the thread manager has reached its limit of {limit} threads")]
    LimitReached {
        /// The greatest number of threads permitted.
        limit: usize,
    },
    /// The group has been cancelled, or its manager was dropped.
    #[error("the group of threads is cancelled")]
    Cancelled,
    /// The name contains a NUL character.
    #[error("a thread's name cannot contain a NUL character")]
    Name,
    /// The operating system could not create a thread (`pthread_create(3)`: `EAGAIN`).
    #[error("cannot create thread `{name}`")]
    Create {
        /// The name of the thread that was not created.
        name: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The process may not set this priority.
    #[error(
        "priority `{priority}` is not permitted; on Linux it takes CAP_SYS_NICE, or a limit that allows it (RLIMIT_NICE, RLIMIT_RTPRIO)"
    )]
    NotPermitted {
        /// The priority that was requested.
        priority: Priority,
    },
    /// The priority could not be set for another reason.
    #[error("cannot set priority `{priority}`")]
    Priority {
        /// The priority that was requested.
        priority: Priority,
        /// The operating system's error.
        source: io::Error,
    },
    /// A processor number beyond the range of the operating system's interface.
    #[cfg(target_os = "linux")]
    #[error("no processor {cpu} can exist on this system")]
    NoSuchCpu {
        /// The number of the processor.
        cpu: usize,
    },
    /// The thread cannot be bound to these processors: none of them exists or is allowed
    /// (`sched_setaffinity(2)`: `EINVAL`).
    #[cfg(target_os = "linux")]
    #[error("cannot bind a thread to processors {cpus:?}")]
    Affinity {
        /// The numbers of the requested processors.
        cpus: Vec<usize>,
        /// The operating system's error.
        source: io::Error,
    },
}
spandrel_error::debug_as_report!(SpawnError);

/// The error of [`ThreadContext::checkpoint`](super::ThreadContext::checkpoint) in a thread that is to end.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the thread is cancelled")]
pub struct Cancelled;
spandrel_error::debug_as_report!(Cancelled);

/// A thread that ended by a panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadPanic {
    /// The name of the thread that panicked.
    pub thread: Arc<str>,
    /// The name of the group of that thread.
    pub group: Arc<str>,
    /// The panic's message, or a remark that it was not text.
    pub message: String,
}

impl ThreadPanic {
    pub(super) fn new(thread: Arc<str>, group: Arc<str>, payload: &(dyn Any + Send)) -> Self {
        let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(text), _) => (*text).to_owned(),
            (None, Some(text)) => text.clone(),
            (None, None) => "a panic whose payload is not text".to_owned(),
        };
        Self { thread, group, message }
    }
}

impl fmt::Display for ThreadPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread `{}` of group `{}` panicked: {}", self.thread, self.group, self.message)
    }
}

/// The result of waiting for threads. Each panic is reported once, by the first wait that covers the thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "it names the threads that panicked"]
pub struct Joined {
    /// The threads that ended by a panic, in the order in which they were spawned.
    pub panics: Vec<ThreadPanic>,
    /// The number of further panics, in any of the manager's groups, that were dropped unreported: a manager
    /// keeps the latest 64.
    pub forgotten_panics: usize,
}

impl Joined {
    /// Whether no thread panicked.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.panics.is_empty() && self.forgotten_panics == 0
    }
}

/// A wait for threads timed out before all had ended. Those that have ended can still be joined.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("still running: {}", threads.join(", "))]
pub struct StillRunning {
    /// The names of the threads that still run.
    pub threads: Vec<Arc<str>>,
}
spandrel_error::debug_as_report!(StillRunning);
