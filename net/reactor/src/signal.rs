//! Signals as events: what a signal handler must not do, an event handler may.
//!
//! Each signal that somebody asked for has a socket pair, into which the process's signal handler writes an octet (the self-pipe of
//! D. J. Bernstein). The receiving end is a handler of the reactor like any other, which passes the signal on.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use signal_hook::SigId;
use signal_hook::consts;
use signal_hook::low_level;
use spandrel_ipc::{Handle, Interest, Pollable};
use spandrel_sync::Mutex;

use crate::key::Key;
use crate::queue::Mail;
use crate::{CloseReason, Context, EventHandler, HandlerId, Registry};

/// A signal, by its number on this system.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(i32);

impl Signal {
    /// The terminal is gone; for servers by custom: read the configuration again.
    pub const HUP: Self = Self(consts::SIGHUP);
    /// Interrupt from the keyboard.
    pub const INT: Self = Self(consts::SIGINT);
    /// Quit from the keyboard.
    pub const QUIT: Self = Self(consts::SIGQUIT);
    /// Termination.
    pub const TERM: Self = Self(consts::SIGTERM);
    /// For programs to use as they like.
    pub const USR1: Self = Self(consts::SIGUSR1);
    /// For programs to use as they like.
    pub const USR2: Self = Self(consts::SIGUSR2);
    /// A child process has ended or stopped.
    pub const CHLD: Self = Self(consts::SIGCHLD);
    /// Go on after a stop.
    pub const CONT: Self = Self(consts::SIGCONT);
    /// The window's size has changed.
    pub const WINCH: Self = Self(consts::SIGWINCH);

    /// The signal with this number.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for signals that cannot be events: those that cannot be caught, and those that report a
    /// fault of the program, after which it could not go on.
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

/// Who of a reactor's handlers asked for which signal.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    wanted: Mutex<BTreeMap<Signal, Vec<Key>>>,
    /// Held by who subscribes, so that there is one source for each signal.
    subscribing: Mutex<()>,
}

impl Signals {
    /// How many handlers of the reactor are ours.
    pub(crate) fn len(&self) -> usize {
        self.wanted.lock().len()
    }
}

/// Has `key` told of `signal`.
pub(crate) fn subscribe(registry: &Registry, key: Key, signal: Signal) -> io::Result<()> {
    let Signals { wanted, subscribing } = &registry.core().signals;
    let _subscribing = subscribing.lock();
    if let Some(keys) = wanted.lock().get_mut(&signal) {
        keys.retain(|known| *known != key && registry.contains(HandlerId(*known)));
        keys.push(key);
        return Ok(());
    }
    let source = Source::open(signal)?;
    wanted.lock().insert(signal, vec![key]);
    // Not under the lock, which a source takes when it is closed.
    let result = registry.register(source, Interest::INPUT);
    if result.is_err() {
        wanted.lock().remove(&signal);
    }
    result.map(drop)
}

/// The receiving end for one signal.
struct Source {
    signal: Signal,
    receiver: UnixStream,
    registration: SigId,
}

impl Source {
    fn open(signal: Signal) -> io::Result<Self> {
        let (receiver, sender) = UnixStream::pair()?;
        receiver.set_nonblocking(true)?;
        let registration = low_level::pipe::register(signal.0, sender)?;
        Ok(Self { signal, receiver, registration })
    }
}

impl Pollable for Source {
    fn handle(&self) -> Handle<'_> {
        self.receiver.as_fd()
    }
}

impl EventHandler for Source {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(self)
    }

    fn handle_input(&mut self, cx: &Context<'_>) -> io::Result<()> {
        // First the octets, then the signal: one that comes in between is told twice rather than not at all.
        while (&self.receiver).read(&mut [0; 64])? == 64 {}
        let core = cx.core();
        if let Some(keys) = core.signals.wanted.lock().get_mut(&self.signal) {
            keys.retain(|key| core.send(*key, Mail::Signal(self.signal)));
        }
        Ok(())
    }

    fn handle_close(&mut self, cx: &Context<'_>, _why: CloseReason) {
        cx.core().signals.wanted.lock().remove(&self.signal);
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        low_level::unregister(self.registration);
    }
}
