//! The state of a connection whose requests come in a pipeline. [`held_replies`](super::held_replies) describes what is
//! done with it.

use spandrel_sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
    time::Instant,
};

use crate::request_of_thread::Frame;

/// Set in the number of a request whose reply may be held; 0 stands for none.
const MAY_HOLD: u64 = 1 << 32;

/// The state of a connection whose requests come in a pipeline. Only the thread that reads changes it.
#[derive(Debug, Default)]
pub(super) struct Pipeline {
    /// Whether a further whole request was in memory after the last one, or replies are held.
    pub(super) is_active: AtomicBool,
    /// Whether a further whole request is in memory.
    pub(super) has_further: AtomicBool,
    /// The id of the request whose reply may be held, and [`MAY_HOLD`].
    holds_for: AtomicU64,
    pub(super) times: Mutex<Times>,
}

#[derive(Debug, Default)]
pub(super) struct Times {
    /// The operation that runs, by the hash of its name, and the time of its begin.
    pub(super) running: Option<(u32, Instant)>,
    /// The time at which the first of the held replies was held.
    pub(super) held_since: Option<Instant>,
}

impl Pipeline {
    /// Records whether a further whole request is in memory, after a message was taken.
    #[inline]
    pub(super) fn record_read(&self, has_further: bool) {
        if has_further || self.is_active() {
            self.is_active.store(true, Ordering::Relaxed);
            self.has_further.store(has_further, Ordering::Relaxed);
        }
    }

    /// Whether the requests come in a pipeline.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Whether the reply that this thread sends may be held: it answers the request that the reading thread runs.
    /// `connection`: the address of the connection in memory.
    #[inline(always)]
    pub(super) fn may_hold(&self, connection: usize) -> bool {
        let holds_for = self.holds_for.load(Ordering::Relaxed);
        holds_for != 0 && Self::is_of_this_thread(holds_for, connection)
    }

    #[cold]
    #[inline(never)]
    fn is_of_this_thread(holds_for: u64, connection: usize) -> bool {
        Frame::current().is_some_and(|frame| {
            frame.connection == connection && u64::from(frame.request_id) | MAY_HOLD == holds_for && !frame.is_one_way
        })
    }

    /// Lets the reply of this request be held.
    pub(super) fn hold_for(&self, request_id: u32) {
        self.holds_for.store(u64::from(request_id) | MAY_HOLD, Ordering::Relaxed);
    }

    /// Lets no reply be held.
    pub(super) fn hold_none(&self) {
        self.holds_for.store(0, Ordering::Relaxed);
    }
}
