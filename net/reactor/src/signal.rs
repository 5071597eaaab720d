//! Signals, and their subscriptions by handlers of a reactor.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use signal_hook::consts;
use signal_hook::low_level;
use spandrel_sync::Mutex;

use crate::key::Key;

/// A signal, by its number on this system.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(i32);

impl Signal {
    /// The terminal has hung up; by convention, servers reread their configuration.
    pub const HUP: Self = Self(consts::SIGHUP);
    /// Interrupt from the keyboard.
    pub const INT: Self = Self(consts::SIGINT);
    /// Quit from the keyboard.
    pub const QUIT: Self = Self(consts::SIGQUIT);
    /// SIGTERM, the request to end the process.
    pub const TERM: Self = Self(consts::SIGTERM);
    /// SIGUSR1, for the application's use.
    pub const USR1: Self = Self(consts::SIGUSR1);
    /// SIGUSR2, for the application's use.
    pub const USR2: Self = Self(consts::SIGUSR2);
    /// A child process has ended or stopped.
    pub const CHLD: Self = Self(consts::SIGCHLD);
    /// Continue after a stop.
    pub const CONT: Self = Self(consts::SIGCONT);
    /// An endpoint has input (`signal_driven` of `spandrel-ipc`).
    pub const IO: Self = Self(consts::SIGIO);
    /// Urgent data has arrived.
    pub const URG: Self = Self(consts::SIGURG);
    /// The window's size has changed.
    pub const WINCH: Self = Self(consts::SIGWINCH);

    /// The signal with this number.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for signals that cannot be events: those that cannot be caught, and
    /// those that report a fatal fault of the program.
    pub fn new(number: i32) -> io::Result<Self> {
        if number <= 0 || consts::FORBIDDEN.contains(&number) {
            let text = format!("signal {number} cannot be delivered as an event");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Self(number))
    }

    /// Its number on this system.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match low_level::signal_name(self.0) {
            Some(name) => f.pad(name),
            None => write!(f, "signal {}", self.0),
        }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The handlers of a reactor by subscribed signal.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    pub(crate) wanted: Mutex<BTreeMap<Signal, Vec<Key>>>,
    /// Held while subscribing, so that there is one source for each signal.
    pub(crate) subscribing: Mutex<()>,
}

impl Signals {
    /// The number of the reactor's own handlers.
    pub(crate) fn len(&self) -> usize {
        self.wanted.lock().len()
    }
}
