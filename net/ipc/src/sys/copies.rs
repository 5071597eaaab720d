//! The number of forks between this process and the first.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering}; // touched by a handler that runs outside of every model

static COPIES: AtomicU32 = AtomicU32::new(0);

/// The number of forks between the process that called this first and this one.
///
/// Forks by `fork(3)` count. After `vfork`, or a bare system call, the number is that of the parent.
pub(crate) fn copies() -> u32 {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // SAFETY: `count` has the signature that POSIX requires. It stores to an atomic and calls nothing, as
        // required of a handler in the child of a process with several threads. Neither it nor the atomic is
        // ever deallocated. A failure for lack of memory leaves forks uncounted, and nothing else.
        unsafe { libc::pthread_atfork(None, None, Some(count)) };
    });
    counted()
}

/// The same number, for callers after the first call of `copies`.
#[inline]
pub(crate) fn counted() -> u32 {
    COPIES.load(Ordering::Relaxed)
}

/// Runs in the child, in its only thread, before `fork` returns there.
extern "C" fn count() {
    COPIES.fetch_add(1, Ordering::Relaxed);
}
