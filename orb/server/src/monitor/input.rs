//! Input that comes during a long upcall: a second request, a CancelRequest, the end of file.
//!
//! A connection's handle is registered with a reactor of the monitor's own. The server's reactor may hold a
//! registration of the same handle, and a handle can be registered with a reactor only once. A registration
//! ends with its first event.
//!
//! Only handles that show all input are registered. With shared memory only one party at a time may wait on
//! the handle, and a handle does not show data that TLS has already decrypted. On those connections, and
//! without a reactor, input is assumed to be there.

use std::{io, sync::OnceLock, time::Duration};

use spandrel_ipc::{Interest, Pollable};
use spandrel_reactor::{CloseReason, Context, EventHandler, HandlerId, Options, Reactor};
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
    thread,
};

use super::monitored::MonitoredConnection;

/// The longest wait once the reactor has failed.
const FALLBACK_WAIT: Duration = Duration::from_millis(32);
/// The limit of registrations, above the number of a server's connections.
const MAX_HANDLES: usize = 1 << 24;

/// The connections that wait for input, and the reactor in which the monitor's thread waits for it.
#[derive(Debug, Default)]
pub(super) struct InputEvents {
    /// Created when the monitor's thread starts, so that the first long upcall does not add to a server's
    /// descriptors.
    reactor: OnceLock<Reactor>,
    arrived: Arc<Arrived>,
}

/// The events since the monitor's last look.
#[derive(Debug, Default)]
struct Arrived {
    /// Whether the monitor has to look at its state.
    is_called: AtomicBool,
    /// The connections, by their addresses in memory, with the registrations that have ended.
    readable: Mutex<Vec<(usize, HandlerId)>>,
}

impl InputEvents {
    /// Creates the reactor, which connections without handles do without.
    pub(super) fn open(&self) {
        match Reactor::with(&Options::new().max_handlers(MAX_HANDLES)) {
            Ok(reactor) => drop(self.reactor.set(reactor)),
            Err(error) => {
                tracing::warn!(%error, "cannot create the upcall monitor's reactor; long upcalls get threads without input")
            }
        }
    }

    /// Registers the handle of this connection for input.
    ///
    /// # Errors
    /// `Unsupported` if there is no reactor; errors of the system.
    pub(super) fn register(&self, connection: &Arc<dyn MonitoredConnection>) -> io::Result<HandlerId> {
        let reactor = self.reactor.get().ok_or(io::ErrorKind::Unsupported)?;
        let handler = InputHandler { connection: Arc::clone(connection), arrived: Arc::clone(&self.arrived) };
        reactor.registry().register(handler, Interest::INPUT)
    }

    /// Ends a registration.
    pub(super) fn remove(&self, registration: HandlerId) {
        if let Some(reactor) = self.reactor.get() {
            reactor.registry().remove(registration);
        }
    }

    /// Whether there is a reactor. [`wait`](Self::wait) waits only with one.
    pub(super) fn is_open(&self) -> bool {
        self.reactor.get().is_some()
    }

    /// Waits for input, for a [call](Self::call), or until the time-out has passed.
    pub(super) fn wait(&self, timeout: Option<Duration>) {
        let Some(reactor) = self.reactor.get() else { return };
        let is_called = || self.arrived.is_called.swap(false, Ordering::SeqCst);
        if let Err(error) = reactor.run_until(timeout, is_called) {
            tracing::error!(%error, "the upcall monitor can no longer wait for input");
            thread::park_timeout(timeout.unwrap_or(FALLBACK_WAIT).min(FALLBACK_WAIT));
        }
    }

    /// Ends the wait that is under way, or the next one.
    pub(super) fn call(&self) {
        self.arrived.is_called.store(true, Ordering::SeqCst);
        if let Some(reactor) = self.reactor.get() {
            reactor.registry().wake();
        }
    }

    /// Whether ended registrations have not been [taken](Self::take) yet.
    pub(super) fn has_arrived(&self) -> bool {
        !self.arrived.readable.lock().is_empty()
    }

    /// Takes the connections whose registrations have ended because of input.
    pub(super) fn take(&self) -> Vec<(usize, HandlerId)> {
        std::mem::take(&mut *self.arrived.readable.lock())
    }

    /// Ends all registrations.
    pub(super) fn close(&self) {
        if let Some(reactor) = self.reactor.get() {
            reactor.close();
        }
    }
}

/// The handler that waits for the next input of one connection.
struct InputHandler {
    connection: Arc<dyn MonitoredConnection>,
    arrived: Arc<Arrived>,
}

impl EventHandler for InputHandler {
    fn pollable(&self) -> Option<&dyn Pollable> {
        self.connection.pollable()
    }

    fn handle_input(&mut self, context: &Context<'_>) -> io::Result<()> {
        self.arrived.note(&self.connection, context.id());
        context.close();
        Ok(())
    }

    fn handle_close(&mut self, context: &Context<'_>, reason: CloseReason) {
        // The handle can no longer be waited on. Reading will show the reason.
        if let CloseReason::Failed(_) | CloseReason::Panicked(_) = reason {
            self.arrived.note(&self.connection, context.id());
        }
    }
}

impl Arrived {
    fn note(&self, connection: &Arc<dyn MonitoredConnection>, registration: HandlerId) {
        self.readable.lock().push((Arc::as_ptr(connection).addr(), registration));
        self.is_called.store(true, Ordering::SeqCst);
    }
}
