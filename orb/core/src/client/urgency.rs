//! The urgency of the requests that a thread sends: the most urgent one that has not begun is written first on a
//! connection that several callers share.
//!
//! Binding policies give each call its [`Urgency`] ([`BoundCall`](crate::BoundCall)). Other calls have zero, and pass
//! nothing on: only a thread that finds another one writing looks here.
//!
//! Not ordered by urgency are the requests of threads that wait for the write lock without a writer role: one-ways, and
//! requests that are fragmented or too long to be appended. A thread sends its one-ways one after another, so that those of
//! one urgency keep their order.

use std::cell::Cell;

pub(crate) use spandrel_connection::Urgency;
use spandrel_sync::thread_local;

thread_local! {
    static URGENCY: Cell<Urgency> = const { Cell::new(0) };
}

/// The time in which a thread sends the request of a call with an urgency.
#[derive(Debug)]
pub(crate) struct UrgencyScope {
    before: Urgency,
}

impl UrgencyScope {
    pub(crate) fn enter(urgency: Urgency) -> Self {
        let before = current();
        URGENCY.with(|of_thread| of_thread.set(urgency));
        Self { before }
    }
}

impl Drop for UrgencyScope {
    fn drop(&mut self) {
        // The thread may be ending.
        let _ = URGENCY.try_with(|of_thread| of_thread.set(self.before));
    }
}

/// The urgency of the request that this thread sends now.
pub(crate) fn current() -> Urgency {
    URGENCY.with(Cell::get)
}
