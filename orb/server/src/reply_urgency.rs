//! The urgency of the replies of a thread: that of the request which it runs. A connection sends the most urgent reply of
//! those that wait first.

use std::cell::Cell;

use spandrel_sync::thread_local;

thread_local! {
    /// The urgency of the reply that the thread sends next.
    static URGENCY: Cell<u32> = const { Cell::new(0) };
}

/// The urgency of the reply that this thread sends next.
pub(crate) fn of_this_thread() -> u32 {
    URGENCY.with(Cell::get)
}

/// The time in which the replies of a thread have the urgency of the request that it runs. Other replies have zero.
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
