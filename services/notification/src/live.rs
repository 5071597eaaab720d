//! The count of the events that a channel holds.

use std::sync::atomic::{AtomicUsize, Ordering};

use spandrel::net::sync::Arc;

/// A place among the counted events of a channel, until it is dropped.
#[derive(Debug)]
pub(crate) struct LiveEvent(Arc<AtomicUsize>);

impl LiveEvent {
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for LiveEvent {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
