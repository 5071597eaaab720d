//! Input that comes while an upcall lasts: a second request, a CancelRequest, the end of file.
//!
//! The handle of a connection is registered with a reactor of the monitor's own, because the server's reactor may have it registered
//! already, and a handle can be registered once only. A registration ends with its first event.
//!
//! Only handles that tell everything are registered. Of shared memory only one party at a time may wait on the handle, and what TLS has
//! decrypted its handle does not show. Over those, and where there is no reactor, input is assumed to be there.

use std::{io, sync::OnceLock, time::Duration};

use spandrel_ipc::{Interest, Pollable};
use spandrel_reactor::{CloseReason, Context, EventHandler, HandlerId, Options, Reactor};
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
    thread,
};

use super::pace::LONGEST;
use crate::ServerConnection;

/// More than a server has connections.
const MAX_HANDLES: usize = 1 << 24;

/// Connections that wait for input, and what wakes the thread that waits for it.
#[derive(Debug, Default)]
pub(super) struct InputEvents {
    /// Made when the monitor's thread starts, so that a server's descriptors do not become more with the first upcall that lasts.
    reactor: OnceLock<Reactor>,
    arrived: Arc<Arrived>,
}

/// The events since the monitor's last look.
#[derive(Debug, Default)]
struct Arrived {
    /// The monitor is to look at its state.
    is_called: AtomicBool,
    /// By where the connections lie, with the registrations that have ended.
    readable: Mutex<Vec<(usize, HandlerId)>>,
}

impl InputEvents {
    /// Makes the reactor. Models have none: their connections have no handles.
    pub(super) fn open(&self) {
        if cfg!(shuttle) {
            return;
        }
        match Reactor::with(&Options::new().max_handlers(MAX_HANDLES)) {
            Ok(reactor) => drop(self.reactor.set(reactor)),
            Err(error) => tracing::warn!(%error, "upcalls that last are given further threads before there is input"),
        }
    }

    /// Waits for input on the handle of this connection.
    ///
    /// # Errors
    /// There is no reactor; those of the system.
    pub(super) fn register(&self, connection: &Arc<ServerConnection>) -> io::Result<HandlerId> {
        let reactor = self.reactor.get().ok_or(io::ErrorKind::Unsupported)?;
        let handler = InputHandler { connection: Arc::clone(connection), arrived: Arc::clone(&self.arrived) };
        reactor.registry().register(handler, Interest::INPUT)
    }

    /// Waits no longer for this one.
    pub(super) fn remove(&self, registration: HandlerId) {
        if let Some(reactor) = self.reactor.get() {
            reactor.registry().remove(registration);
        }
    }

    /// Whether there is a reactor: only then [`wait`](Self::wait) waits.
    pub(super) fn is_open(&self) -> bool {
        self.reactor.get().is_some()
    }

    /// Waits for input, until it is [called](Self::call), or for so long.
    pub(super) fn wait(&self, timeout: Option<Duration>) {
        let Some(reactor) = self.reactor.get() else { return };
        let is_called = || self.arrived.is_called.swap(false, Ordering::SeqCst);
        if let Err(error) = reactor.run_until(timeout, is_called) {
            tracing::error!(%error, "the monitor of upcalls cannot wait for input any more");
            thread::park_timeout(timeout.unwrap_or(LONGEST).min(LONGEST));
        }
    }

    /// Ends the wait that is under way, or else the next one.
    pub(super) fn call(&self) {
        self.arrived.is_called.store(true, Ordering::SeqCst);
        if let Some(reactor) = self.reactor.get() {
            reactor.registry().wake();
        }
    }

    /// Whether registrations have ended that were not [taken](Self::take) yet.
    pub(super) fn has_arrived(&self) -> bool {
        !self.arrived.readable.lock().is_empty()
    }

    /// The connections whose registrations have ended because there is input.
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

/// Waits for the next input of one connection.
struct InputHandler {
    connection: Arc<ServerConnection>,
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
        // A handle that can be waited on no longer: reading will tell why.
        if let CloseReason::Failed(_) | CloseReason::Panicked(_) = reason {
            self.arrived.note(&self.connection, context.id());
        }
    }
}

impl Arrived {
    fn note(&self, connection: &Arc<ServerConnection>, registration: HandlerId) {
        self.readable.lock().push((Arc::as_ptr(connection).addr(), registration));
        self.is_called.store(true, Ordering::SeqCst);
    }
}
