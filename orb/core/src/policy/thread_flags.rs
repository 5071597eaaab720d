//! Flags of a thread that affect its calls: one load tells whether there are any.

use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, Ordering},
};

use spandrel_sync::thread_local;

/// Reasons for a call to look at the state of its thread; each is a bit.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum ThreadFlag {
    /// The thread has policies.
    Policies = 1,
    /// The request that the thread serves has a deadline.
    Deadline = 2,
    /// The thread holds replies that have to leave before it makes a call.
    HeldReplies = 4,
    /// The thread polls a request in an executor of the application.
    Polled = 8,
}

thread_local! {
    static FLAGS: Cell<u8> = const { Cell::new(0) };
}

/// Whether a policy or a deadline was set in this process. A program that sets none does not contain the code
/// that only calls with policies need. It selects nothing: each call then looks at the policies of its own reference,
/// thread and ORB.
static ARE_IN_USE: AtomicBool = AtomicBool::new(false);

/// Records that a policy or a deadline is about to be set, for an object, a thread or an ORB.
#[inline]
pub(crate) fn record_use() {
    if !ARE_IN_USE.load(Ordering::Relaxed) {
        ARE_IN_USE.store(true, Ordering::Relaxed);
    }
}

/// Whether a policy or a deadline was set in this process.
#[inline]
pub(crate) fn are_in_use() -> bool {
    ARE_IN_USE.load(Ordering::Relaxed)
}

/// Whether any flag is set.
#[inline]
pub(crate) fn any_set() -> bool {
    FLAGS.with(Cell::get) != 0
}

/// Whether this flag is set.
pub(crate) fn is_set(flag: ThreadFlag) -> bool {
    FLAGS.with(Cell::get) & flag as u8 != 0
}

/// Sets or clears a flag.
pub(crate) fn set(flag: ThreadFlag, is_set: bool) {
    if is_set {
        record_use();
    }
    FLAGS.with(|flags| flags.set(if is_set { flags.get() | flag as u8 } else { flags.get() & !(flag as u8) }));
}
