//! What became of threads: the errors of spawning, the results of waiting.

use std::any::Any;
use std::{fmt, io};

use super::Priority;
use crate::Arc;

/// Why a thread was not spawned. Nothing of its body has run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The manager has as many threads as it may.
    #[error("the thread manager has its limit of {limit} threads")]
    LimitReached {
        /// That many.
        limit: usize,
    },
    /// The group has been cancelled, or its manager is gone.
    #[error("the group of threads is cancelled")]
    Cancelled,
    /// The name contains a NUL character.
    #[error("a thread's name cannot contain a NUL character")]
    Name,
    /// The operating system has no thread to give (`pthread_create(3)`: `EAGAIN`).
    #[error("cannot create thread `{name}`")]
    Create {
        /// The thread's name.
        name: String,
        /// Why not.
        source: io::Error,
    },
    /// The priority is beyond what this process may give.
    #[error(
        "priority `{priority}` is not permitted; on Linux it takes CAP_SYS_NICE, or a limit that allows it (RLIMIT_NICE, RLIMIT_RTPRIO)"
    )]
    NotPermitted {
        /// The priority asked for.
        priority: Priority,
    },
    /// The priority could not be set for another reason.
    #[error("cannot set priority `{priority}`")]
    Priority {
        /// The priority asked for.
        priority: Priority,
        /// Why not.
        source: io::Error,
    },
    /// A processor's number is beyond all that the operating system's interface can name.
    #[cfg(target_os = "linux")]
    #[error("there can be no processor {cpu}")]
    NoSuchCpu {
        /// The number.
        cpu: usize,
    },
    /// The thread cannot be kept to these processors: none of them exists or is allowed (`sched_setaffinity(2)`:
    /// `EINVAL`).
    #[cfg(target_os = "linux")]
    #[error("cannot keep a thread to processors {cpus:?}")]
    Affinity {
        /// The processors asked for.
        cpus: Vec<usize>,
        /// Why not.
        source: io::Error,
    },
}

/// What [`ThreadContext::checkpoint`](super::ThreadContext::checkpoint) tells a thread that is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the thread was asked to end")]
pub struct Cancelled;

/// A thread that ended by a panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadPanic {
    /// Its name.
    pub thread: Arc<str>,
    /// Its group's name.
    pub group: Arc<str>,
    /// What it said: the panic's message, or a remark that it was not text.
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

/// How the threads ended that were waited for. Each panic is told once, to the first who waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "it says which threads panicked"]
pub struct Joined {
    /// The threads that ended by a panic, in the order in which they were spawned.
    pub panics: Vec<ThreadPanic>,
    /// How many more did, in any of the manager's groups, for which nobody asked in time: a manager keeps the latest 64.
    pub forgotten_panics: usize,
}

impl Joined {
    /// Whether no thread panicked.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.panics.is_empty() && self.forgotten_panics == 0
    }
}

/// The time to wait ran out before all threads had ended. What has ended is still there to be joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("still running: {}", threads.join(", "))]
pub struct StillRunning {
    /// The names of those that run.
    pub threads: Vec<Arc<str>>,
}
