//! Flags of a thread that affect its calls: one load tells whether there are any.

use std::cell::Cell;

use spandrel_sync::thread_local;

/// The flags.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum ThreadPolicy {
    /// The thread has policies.
    Policies = 1,
    /// The request that the thread serves has a deadline.
    Deadline = 2,
}

thread_local! {
    static FLAGS: Cell<u8> = const { Cell::new(0) };
}

/// Whether any flag is set.
#[inline]
pub(crate) fn any_set() -> bool {
    FLAGS.with(Cell::get) != 0
}

/// Sets or clears a flag.
pub(crate) fn set(flag: ThreadPolicy, is_set: bool) {
    FLAGS.with(|flags| flags.set(if is_set { flags.get() | flag as u8 } else { flags.get() & !(flag as u8) }));
}
