//! Signals as events, free of the restrictions of signal handlers.
//!
//! Each subscribed signal has a socket pair, into which the process's signal handler writes an octet (the
//! self-pipe of D. J. Bernstein). The receiving end is a handler of the reactor like any other, which passes
//! the signal on.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use signal_hook::SigId;
use signal_hook::low_level;
use spandrel_ipc::{Handle, Interest, Pollable};

use crate::key::{HandlerId, Key};
use crate::queue::Mail;
use crate::registry::{CloseReason, Context, EventHandler, Registry};
use crate::signal::{Signal, Signals};

impl Registry {
    /// Calls [`handle_signal`](EventHandler::handle_signal) of each subscribed handler when the signal
    /// arrives. Earlier signal handlers of the process are still called; the system's default action is
    /// disabled from now on and for good.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the handler was removed; those of the system.
    pub fn on_signal(&self, id: HandlerId, signal: Signal) -> io::Result<()> {
        self.live(id)?;
        subscribe(self, id.0, signal)
    }
}

/// Subscribes `key` to `signal`.
fn subscribe(registry: &Registry, key: Key, signal: Signal) -> io::Result<()> {
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
        let registration = low_level::pipe::register(signal.number(), sender)?;
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
        // First the octets, then the signal: a signal in between is reported twice rather than not at all.
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
