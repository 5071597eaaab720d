//! The backend of every ordinary build: `parking_lot` for locks, the standard library for the rest.

use std::sync::LazyLock;

pub(crate) use parking_lot::{
    Condvar, Mutex, MutexGuard, ReentrantMutex as RecursiveMutex, ReentrantMutexGuard as RecursiveMutexGuard, RwLock,
    RwLockReadGuard, RwLockWriteGuard,
};
pub(crate) use std::hint::spin_loop as turn;
pub(crate) use std::{sync::atomic, thread};
pub use std::{thread_local, time::Instant};

/// How often a thread looks at a taken lock at most; the C library's adaptive mutex has the same bound.
pub(crate) fn most_turns() -> u32 {
    static MOST: LazyLock<u32> = LazyLock::new(|| {
        thread::available_parallelism().map_or(0, |processors| if processors.get() > 1 { 100 } else { 0 })
    });
    *MOST
}
