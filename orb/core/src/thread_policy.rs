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
    #[cfg(feature = "server")]
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
pub(crate) fn set(term: ThreadPolicy, is_there: bool) {
    FLAGS.with(|call_policies| {
        call_policies.set(if is_there { call_policies.get() | term as u8 } else { call_policies.get() & !(term as u8) })
    });
}
