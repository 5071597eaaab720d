//! One attempt to connect.

use std::io;

use spandrel_ipc::{Connecting, Family, Pollable};
use spandrel_sync::{Arc, Mutex};

use crate::{CloseReason, Context, EventHandler, HandlerId};

/// Where an attempt leaves what came of it.
pub(super) type Outcome<F> = Arc<Mutex<Option<io::Result<<F as Family>::Stream>>>>;

/// Waits until a connection is made, and tells the handler that started it.
pub(super) struct Attempt<F: Family> {
    connecting: F::Connecting,
    outcome: Outcome<F>,
    told: HandlerId,
    notice: u64,
}

impl<F: Family> Attempt<F> {
    pub(super) fn new(connecting: F::Connecting, outcome: Outcome<F>, told: HandlerId, notice: u64) -> Self {
        Self { connecting, outcome, told, notice }
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

    /// Some systems tell of a failure only this way.
    fn handle_exception(&mut self, context: &Context<'_>) -> io::Result<()> {
        self.handle_output(context)
    }

    /// Tells only now: the stream has the handle of the attempt, which must no longer be waited on when the stream is.
    fn handle_close(&mut self, context: &Context<'_>, reason: CloseReason) {
        if let CloseReason::Failed(error) = reason {
            *self.outcome.lock() = Some(Err(error));
        }
        if let Err(error) = context.notify(self.told, self.notice) {
            tracing::debug!(%error, "nobody waits for an attempt to connect any more");
        }
    }
}
