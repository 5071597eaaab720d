//! The urgency of the replies that a thread sends: the most urgent one that has not begun is written first on a connection
//! whose client does not read.
//!
//! The reply to a request of an executor has the level of the request, in whichever thread it is sent: a servant that
//! [defers](crate::ServerCall::defer) it, or [spawns](crate::ServerCall::spawn) a future, keeps the level. Other replies
//! have zero.

use std::cell::Cell;

use spandrel_connection::Urgency;
use spandrel_sync::thread_local;

thread_local! {
    static URGENCY: Cell<u32> = const { Cell::new(0) };
}

/// The time in which a thread answers a request of this level.
pub(crate) struct ReplyUrgencyScope {
    before: u32,
}

impl ReplyUrgencyScope {
    pub(crate) fn enter(urgency: u32) -> Self {
        Self { before: URGENCY.with(|of_thread| of_thread.replace(urgency)) }
    }
}

impl Drop for ReplyUrgencyScope {
    fn drop(&mut self) {
        URGENCY.with(|of_thread| of_thread.set(self.before));
    }
}

/// The urgency of the replies that this thread sends now, and of those that it defers.
pub(crate) fn current() -> u32 {
    URGENCY.with(Cell::get)
}

/// The same on a connection over which this side sends requests as well.
pub(crate) fn on_shared_connection() -> Urgency {
    current().try_into().unwrap_or(Urgency::MAX)
}
