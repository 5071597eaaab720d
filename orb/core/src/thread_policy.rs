//! Whether this thread's calls go by more than their references and their ORB say: one look for all that may be.

use std::cell::Cell;

use spandrel_sync::thread_local;

/// What there may be.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum ThreadPolicy {
    /// Policies of the thread.
    Policies = 1,
    /// The deadline of the request that it serves.
    #[cfg(feature = "server")]
    Deadline = 2,
}

thread_local! {
    static TERMS: Cell<u8> = const { Cell::new(0) };
}

/// Whether there is any of it.
#[inline]
pub(crate) fn are_there() -> bool {
    TERMS.with(Cell::get) != 0
}

/// Whether there is this now.
pub(crate) fn set(term: ThreadPolicy, is_there: bool) {
    TERMS.with(|call_policies| {
        call_policies.set(if is_there { call_policies.get() | term as u8 } else { call_policies.get() & !(term as u8) })
    });
}
