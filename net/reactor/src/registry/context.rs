//! The context of a call of a handler.

use std::fmt;
use std::io;
use std::ops::Deref;
use std::time::Duration;

use spandrel_ipc::Interest;

use super::Registry;
use crate::key::HandlerId;
use crate::lead::DispatchId;
use crate::timer::TimerId;

/// The registry of the reactor that calls a handler, and the handler's identifier.
pub struct Context<'a> {
    registry: &'a Registry,
    id: HandlerId,
    dispatch_id: DispatchId,
}

impl<'a> Context<'a> {
    #[inline]
    pub(crate) fn new(registry: &'a Registry, id: HandlerId, dispatch_id: DispatchId) -> Self {
        Self { registry, id, dispatch_id }
    }

    /// The handler that is being called.
    #[must_use]
    pub fn id(&self) -> HandlerId {
        self.id
    }

    /// Closes this handler when the present call has returned.
    pub fn close(&self) {
        self.registry.remove(self.id);
    }

    /// Sets the events that this handler wants from now on; as [`Registry::set_interest`], taking effect when
    /// the present call has returned.
    pub fn set_interest(&self, interest: Interest) {
        // It fails only for a handler that is being closed, where it has no effect.
        let _ = self.registry.set_interest(self.id, interest);
    }

    /// Schedules a timer for this handler, as [`Registry::schedule`].
    ///
    /// # Errors
    /// As [`Registry::schedule`].
    pub fn schedule(&self, delay: Duration, interval: Option<Duration>, argument: u64) -> io::Result<TimerId> {
        self.registry.schedule(self.id, delay, interval, argument)
    }

    /// Lets another waiting thread lead from now on: to be called before long work, so that other handlers do
    /// not wait until the reactor notices by itself.
    pub fn promote(&self) {
        self.registry.core().lead.promote(self.dispatch_id);
    }
}

impl Deref for Context<'_> {
    type Target = Registry;
    fn deref(&self) -> &Registry {
        self.registry
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("id", &self.id).finish_non_exhaustive()
    }
}
