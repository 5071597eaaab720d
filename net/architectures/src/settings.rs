//! The limits of a server, and the choices that some architectures leave.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use spandrel_reactor::Backend;

/// Limits and choices of a server. Every architecture uses those that it has a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The number of threads or processes of a pool: 5 by default, as in the paper.
    pub workers: usize,
    /// The greatest number of connections that are served at once: 1,024 by default. Event-driven architectures close
    /// further ones; the others leave them in the backlog.
    pub max_connections: usize,
    /// The number of accepted connections that wait for a worker of [`queue_pool`](crate::queue_pool); 64 by default.
    pub queue: usize,
    /// The time after which a connection without any transfer is closed: 30 s by default. Connections are compared in
    /// intervals, so that some have up to a quarter more.
    pub idle: Duration,
    /// The time from the first octet of a request to its last: 10 s by default.
    pub request: Duration,
    /// The mechanism that waits in event-driven architectures.
    pub backend: Backend,
    /// The lock around `accept` in [`accept_pool`](crate::accept_pool).
    pub lock: AcceptLock,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: 5,
            max_connections: 1_024,
            queue: 64,
            idle: Duration::from_secs(30),
            request: Duration::from_secs(10),
            backend: Backend::Auto,
            lock: AcceptLock::None,
        }
    }
}

impl Settings {
    /// The most threads or processes of a pool. Processes of more would start for longer than the 10 s that a service
    /// configurator waits, and the service before could not have its port again.
    pub const MOST_WORKERS: usize = 1_000;
    /// The most connections that are served at once.
    pub const MOST_CONNECTIONS: usize = 1_000_000;

    /// Refuses limits of zero, and those beyond the constants.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a limit of zero or above those here, or a time below a millisecond.
    pub fn check(&self) -> io::Result<()> {
        let Self { workers, max_connections, queue, idle, request, .. } = *self;
        let refuse = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        for (name, number, most) in [
            ("workers", workers, Self::MOST_WORKERS),
            ("connections", max_connections, Self::MOST_CONNECTIONS),
            ("places in the queue", queue, usize::MAX),
        ] {
            if number == 0 {
                return refuse(&format!("the number of {name} must be at least 1"));
            } else if number > most {
                return refuse(&format!("the number of {name} is {number}: expected at most {most}"));
            }
        }
        if idle < Duration::from_millis(1) || request < Duration::from_millis(1) {
            return refuse("the time limits must be at least 1 ms");
        }
        Ok(())
    }
}

/// The lock that a worker holds while it waits in `accept` (paper 004, section 4.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptLock {
    /// None: the kernel chooses one of the waiting workers.
    #[default]
    None,
    /// [`spandrel_sync::Mutex`], which sleeps in the kernel.
    Mutex,
    /// [`spandrel_sync::AdaptiveMutex`], which spins before it sleeps.
    Adaptive,
    /// [`spandrel_sync::Semaphore`] with one permit.
    Semaphore,
}

impl AcceptLock {
    /// All kinds of locks, `None` first.
    pub const ALL: [Self; 4] = [Self::None, Self::Mutex, Self::Adaptive, Self::Semaphore];

    /// Its name on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Mutex => "mutex",
            Self::Adaptive => "adaptive-mutex",
            Self::Semaphore => "semaphore",
        }
    }
}

impl fmt::Display for AcceptLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for AcceptLock {
    type Err = io::Error;

    fn from_str(name: &str) -> io::Result<Self> {
        Self::ALL.into_iter().find(|lock| lock.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join("`, `");
            io::Error::new(io::ErrorKind::InvalidInput, format!("unknown lock `{name}`: expected `{names}`"))
        })
    }
}
