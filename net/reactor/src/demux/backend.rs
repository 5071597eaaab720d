//! The available mechanisms, and the triggers of readiness.

use std::fmt;
use std::io;

/// The mechanism that waits for the handles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// The best one on this system: epoll on Linux; on Windows `select` for a reactor of one thread
    /// ([`Reactive`](crate::ThreadStrategy::Reactive)); elsewhere `polling`.
    #[default]
    Auto,
    /// `epoll(7)`: finds ready handles without scanning the others.
    #[cfg(target_os = "linux")]
    Epoll,
    /// `io_uring(7)`: poll requests in a ring shared with the kernel. Where it is forbidden or too old, the
    /// reactor uses epoll, and logs a warning.
    #[cfg(target_os = "linux")]
    IoUring,
    /// `poll(2)`: each wait scans all handles.
    #[cfg(unix)]
    Poll,
    /// `select(2)`: each wait scans all handles. On UNIX only for handles below `FD_SETSIZE`; registration of others
    /// fails. On Windows only for 63 handles: with more, the reactor uses `polling` from then on.
    Select,
    /// The mechanism of the `polling` crate: on Windows I/O completion ports.
    Polling,
}

impl Backend {
    /// All back ends of this platform, whether or not the system permits them.
    pub const KNOWN: &'static [Self] = &[
        #[cfg(target_os = "linux")]
        Self::Epoll,
        #[cfg(target_os = "linux")]
        Self::IoUring,
        Self::Polling,
        #[cfg(unix)]
        Self::Poll,
        Self::Select,
    ];

    /// Whether it supports [edges](Trigger::Edge).
    #[cfg(unix)]
    #[must_use]
    pub const fn has_edges(self) -> bool {
        !matches!(self, Self::Poll | Self::Select)
    }

    /// Its name in configurations and on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            #[cfg(target_os = "linux")]
            Self::Epoll => "epoll",
            #[cfg(target_os = "linux")]
            Self::IoUring => "io_uring",
            #[cfg(unix)]
            Self::Poll => "poll",
            Self::Select => "select",
            Self::Polling => "polling",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Backend {
    type Err = io::Error;
    fn from_str(name: &str) -> io::Result<Self> {
        std::iter::once(Self::Auto)
            .chain(Self::KNOWN.iter().copied())
            .find(|backend| backend.name() == name)
            .ok_or_else(|| {
                let names: Vec<_> = Self::KNOWN.iter().map(|backend| backend.name()).collect();
                let text = format!("unknown back end `{name}`: expected `auto`, `{}`", names.join("`, `"));
                io::Error::new(io::ErrorKind::InvalidInput, text)
            })
    }
}

/// The condition under which a ready handle is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trigger {
    /// As long as it is ready: input that a handler leaves is reported again.
    #[default]
    Level,
    /// When it becomes ready, or more input arrives: a handler takes all of it, until
    /// [`io::ErrorKind::WouldBlock`].
    ///
    /// Not every back end supports it; registration fails with [`io::ErrorKind::Unsupported`] on the others.
    #[cfg(unix)]
    Edge,
    /// Once; the handler is suspended then, until [`resume`](crate::Registry::resume) or
    /// [`set_interest`](crate::Registry::set_interest).
    OneShot,
}

/// The error of a registration for edges.
#[cfg(unix)]
pub(super) fn no_edges(backend: Backend) -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        format!("the back end `{backend}` does not support edge-triggered events"),
    )
}
