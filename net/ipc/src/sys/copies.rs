//! How often this process was copied on its way here.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering}; // touched by a handler that runs outside of every model

static COPIES: AtomicU32 = AtomicU32::new(0);

/// The number of copies between the process that first asked and this one.
///
/// Copies are counted that `fork(3)` makes. After `vfork`, or a bare system call, the number is that of the original.
pub(crate) fn copies() -> u32 {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // SAFETY: `count` has the signature that POSIX wants. It stores to an atomic and calls nothing, which is all that a handler
        // may do in the copy of a process with several threads, and neither it nor the atomic ever goes away. That it fails for want
        // of memory leaves copies uncounted, and nothing else.
        unsafe { libc::pthread_atfork(None, None, Some(count)) };
    });
    counted()
}

/// The same, for those who know that somebody has asked before.
#[inline]
pub(crate) fn counted() -> u32 {
    COPIES.load(Ordering::Relaxed)
}

/// Runs in the copy, in its only thread, before `fork` returns there.
extern "C" fn count() {
    COPIES.fetch_add(1, Ordering::Relaxed);
}
