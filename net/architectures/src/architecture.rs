//! The choice of an architecture by name.

use std::fmt;
use std::io;
use std::str::FromStr;

use crate::{
    Port, Server, Service, Settings, accept_pool, iterative, leader_followers, queue_pool, reactive,
    thread_per_connection,
};
#[cfg(target_os = "linux")]
use crate::{pre_forked, process_per_connection};

/// The way in which a server maps connections to threads or processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Architecture {
    /// [`iterative`]: one connection at a time.
    Iterative,
    /// [`reactive`]: all connections on one thread.
    Reactive,
    /// `process_per_connection`, on Linux: a child for each connection.
    ProcessPerConnection,
    /// `pre_forked`, on Linux: children that accept.
    PreForked,
    /// [`thread_per_connection`]: a thread for each connection.
    ThreadPerConnection,
    /// [`queue_pool`]: one acceptor, workers at a queue.
    QueuePool,
    /// [`accept_pool`]: workers that accept.
    AcceptPool,
    /// [`leader_followers`]: workers that take turns to wait for events.
    LeaderFollowers,
    /// `asynchronous`, where the target has an `io_uring` or completion ports
    Asynchronous,
}

impl Architecture {
    /// All architectures, whether or not the platform has them.
    pub const ALL: &'static [Self] = &[
        Self::Iterative,
        Self::Reactive,
        Self::ProcessPerConnection,
        Self::PreForked,
        Self::ThreadPerConnection,
        Self::QueuePool,
        Self::AcceptPool,
        Self::LeaderFollowers,
        Self::Asynchronous,
    ];

    /// Its name in configurations and on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iterative => "iterative",
            Self::Reactive => "reactive",
            Self::ProcessPerConnection => "process-per-connection",
            Self::PreForked => "pre-forked",
            Self::ThreadPerConnection => "thread-per-connection",
            Self::QueuePool => "queue-pool",
            Self::AcceptPool => "accept-pool",
            Self::LeaderFollowers => "leader-followers",
            Self::Asynchronous => "asynchronous",
        }
    }

    /// Whether this platform has it.
    #[must_use]
    pub const fn is_available(self) -> bool {
        match self {
            Self::ProcessPerConnection | Self::PreForked => cfg!(target_os = "linux"),
            Self::Asynchronous => cfg!(proactor),
            _ => true,
        }
    }

    /// Starts a service in this architecture.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where the platform lacks it; otherwise any error of the operating system.
    pub fn start(self, port: &Port, service: &Service, settings: &Settings) -> io::Result<Box<dyn Server>> {
        let protocol = service.clone();
        Ok(match self {
            Self::Iterative => Box::new(iterative::start(port, protocol, settings)?),
            Self::Reactive => Box::new(reactive::start(port, protocol, settings)?),
            Self::ThreadPerConnection => Box::new(thread_per_connection::start(port, protocol, settings)?),
            Self::QueuePool => Box::new(queue_pool::start(port, protocol, settings)?),
            Self::AcceptPool => Box::new(accept_pool::start(port, protocol, settings)?),
            Self::LeaderFollowers => Box::new(leader_followers::start(port, protocol, settings)?),
            #[cfg(proactor)]
            Self::Asynchronous => Box::new(crate::asynchronous::start(port, protocol, settings)?),
            #[cfg(not(proactor))]
            Self::Asynchronous => {
                let text = format!("this system has no proactor, which the architecture `{self}` needs");
                return Err(io::Error::new(io::ErrorKind::Unsupported, text));
            }
            #[cfg(target_os = "linux")]
            Self::ProcessPerConnection => Box::new(process_per_connection::start(port, service, settings)?),
            #[cfg(target_os = "linux")]
            Self::PreForked => Box::new(pre_forked::start(port, service, settings)?),
            #[cfg(not(target_os = "linux"))]
            Self::ProcessPerConnection | Self::PreForked => {
                let text = format!("this system has no `fork`, which the architecture `{self}` needs");
                return Err(io::Error::new(io::ErrorKind::Unsupported, text));
            }
        })
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Architecture {
    type Err = io::Error;

    fn from_str(name: &str) -> io::Result<Self> {
        Self::ALL.iter().copied().find(|architecture| architecture.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|architecture| architecture.name()).collect();
            let text = format!("unknown architecture `{name}`: expected `{}`", names.join("`, `"));
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })
    }
}
