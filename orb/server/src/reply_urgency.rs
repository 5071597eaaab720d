//! The urgency of the replies that a thread sends: the most urgent one that has not begun is written first on a connection
//! whose client does not read.
//!
//! A thread of an executor has the level of the request that it runs. Other replies have zero.

use std::cell::Cell;

use spandrel_sync::thread_local;

thread_local! {
    static URGENCY: Cell<u32> = const { Cell::new(0) };
}

/// The time in which a thread runs or refuses a request of an executor.
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

/// The urgency of the reply that this thread sends now.
pub(crate) fn current() -> u32 {
    URGENCY.with(Cell::get)
}
