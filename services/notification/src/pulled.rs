//! The persistent events of a consumer's last pull.

use spandrel::net::sync::{Arc, Mutex};
use spandrel_delivery::Event;

use crate::notification::Notification;

/// The persistent events that a consumer has pulled, until its next pull acknowledges them.
#[derive(Debug, Default)]
pub(crate) struct PulledEvents(Mutex<Vec<Arc<Event<Notification>>>>);

impl PulledEvents {
    /// Keeps the persistent ones of these events.
    pub(crate) fn keep(&self, events: &[Arc<Event<Notification>>]) {
        let persistent = events.iter().filter(|event| event.value.target.is_some());
        self.0.lock().extend(persistent.cloned());
    }

    /// Ends all events: the consumer has them.
    pub(crate) fn acknowledge(&self) {
        drop(std::mem::take(&mut *self.0.lock()));
    }
}
