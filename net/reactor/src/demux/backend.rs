//! The mechanisms to choose from, and when they tell that a handle is ready.

use std::fmt;
use std::io;

/// What waits for the handles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// What is best here: epoll on Linux, elsewhere `polling`.
    #[default]
    Auto,
    /// `epoll(7)`: what is ready is found without looking at what is not.
    #[cfg(target_os = "linux")]
    Epoll,
    /// `io_uring(7)`: poll requests in a ring that is shared with the system. Where it is forbidden or too old, the reactor uses
    /// epoll, and says so as a warning.
    #[cfg(target_os = "linux")]
    IoUring,
    /// `poll(2)`: all handles are looked at by each wait.
    #[cfg(unix)]
    Poll,
    /// `select(2)`: as `poll(2)`, and for handles below `FD_SETSIZE` only; others are refused when they are registered.
    #[cfg(unix)]
    Select,
    /// What the `polling` crate uses here: on Windows I/O completion ports.
    Polling,
}

impl Backend {
    /// Those that work here and now, the best first; [`Auto`](Self::Auto), which is the first of them, is left out.
    #[must_use]
    pub fn available() -> Vec<Self> {
        Self::KNOWN.iter().copied().filter(|backend| super::probe(*backend)).collect()
    }

    /// All that this platform has, whether or not the system lets us use them.
    pub const KNOWN: &'static [Self] = &[
        #[cfg(target_os = "linux")]
        Self::Epoll,
        #[cfg(target_os = "linux")]
        Self::IoUring,
        Self::Polling,
        #[cfg(unix)]
        Self::Poll,
        #[cfg(unix)]
        Self::Select,
    ];

    /// Whether it can tell [edges](Trigger::Edge).
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
            #[cfg(unix)]
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
                let text = format!("no back end is called `{name}`: there are `auto`, `{}`", names.join("`, `"));
                io::Error::new(io::ErrorKind::InvalidInput, text)
            })
    }
}

/// When a handle that is ready is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trigger {
    /// As long as it is ready: what a handler leaves is told again.
    #[default]
    Level,
    /// When it becomes ready, or more comes: a handler takes all there is, until [`io::ErrorKind::WouldBlock`].
    ///
    /// Not every back end can tell that; registration fails with [`io::ErrorKind::Unsupported`] on those that cannot.
    #[cfg(unix)]
    Edge,
    /// Once; the handler is suspended then, until [`resume`](crate::Registry::resume) or
    /// [`set_interest`](crate::Registry::set_interest).
    OneShot,
}
