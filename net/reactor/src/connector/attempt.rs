//! One attempt to connect, from its start to its result.

use std::io;
use std::time::Duration;

use spandrel_ipc::{Connecting, Family, Pollable};
use spandrel_sync::{Arc, Mutex};

use crate::{CloseReason, Context, EventHandler, HandlerId, Registry};

/// The result of an attempt.
pub(super) type Outcome<F> = Arc<Mutex<Option<io::Result<<F as Family>::Stream>>>>;

/// Waits until a connection is established, and notifies the handler that started it.
pub(super) struct Attempt<F: Family> {
    connecting: F::Connecting,
    outcome: Outcome<F>,
    target: HandlerId,
    notice: u64,
}

impl<F: Family> Attempt<F> {
    pub(super) fn new(connecting: F::Connecting, outcome: Outcome<F>, target: HandlerId, notice: u64) -> Self {
        Self { connecting, outcome, target, notice }
    }

    fn end(&self, context: &Context<'_>, outcome: io::Result<F::Stream>) {
        *self.outcome.lock() = Some(outcome);
        context.close();
    }
}

impl<F: Family> EventHandler for Attempt<F> {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(&self.connecting)
    }

    fn handle_output(&mut self, context: &Context<'_>) -> io::Result<()> {
        match self.connecting.try_complete() {
            Ok(None) => {}
            Ok(Some(stream)) => self.end(context, Ok(stream)),
            Err(error) => self.end(context, Err(error)),
        }
        Ok(())
    }

    /// Some systems report a failure only this way.
    fn handle_exception(&mut self, context: &Context<'_>) -> io::Result<()> {
        self.handle_output(context)
    }

    /// Notifies only now: the stream has the handle of the attempt, which must be deregistered before the
    /// stream is registered.
    fn handle_close(&mut self, context: &Context<'_>, reason: CloseReason) {
        match reason {
            CloseReason::Failed(error) => *self.outcome.lock() = Some(Err(error)),
            CloseReason::Panicked(message) => *self.outcome.lock() = Some(Err(io::Error::other(message))),
            _ => {}
        }
        notify(context, self.target, self.notice);
    }
}

/// Notifies a handler that something has ended: by a notice, or, if the reactor has no room for one, by a
/// timer with the notice as its argument.
pub(super) fn notify(registry: &Registry, target: HandlerId, notice: u64) {
    let result = match registry.notify(target, notice) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            registry.schedule(target, Duration::ZERO, None, notice).map(drop)
        }
        result => result,
    };
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::error!(%error, "a connector cannot be notified")
        }
        _ => {} // a removed handler needs no notice
    }
}
