//! Locks, conditions, atomics, threads and processes.
//!
//! The crates of `net`, and those of the ORB from `transport` up, use these types instead of `std::sync`. So
//! a model checker can replace them all at once. Built with `RUSTFLAGS="--cfg shuttle"`, the same names stand
//! for the types of `shuttle`, which runs a test under many thread interleavings and replays the one that
//! fails. This crate's own unit tests are always built that way.
//!
//! Contents (paper 002, 2.6, the Concurrency class category):
//!
//! | for | types |
//! | --- | --- |
//! | locking strategy as a type parameter | [`Guarded<T, L>`](Guarded) with `L:` [`Lock`], [`SharedLock`] or [`Monitor`] |
//! | one thread alone | [`NullMutex`], [`NullCondition`] |
//! | one at a time | [`Mutex`]; [`AdaptiveMutex`] (spins before it sleeps); [`RecursiveMutex`]; [`Token`] (first come, first served); [`PriorityInheritanceMutex`] (lends its holder the priority of waiting threads) |
//! | many readers or one writer | [`RwLock`] |
//! | waiting | [`Condition`], [`Semaphore`], [`Barrier`] |
//! | checking that no lock is held | [`held`] |
//! | scheduling priorities | [`Priority`], [`current_priority`], [`set_current_priority`], [`PriorityGuard`] |
//! | groups of threads | [`ThreadManager`], [`ThreadGroup`], [`ThreadContext`] |
//! | child processes | [`ProcessManager`], [`Process`] |
//! | single threads, atomics, the clock | [`thread`], [`atomic`], [`time`] |
//!
//! A panic while a lock is held does not poison it: the next thread finds the value as the panic left it. So
//! code that can panic under a lock keeps the value consistent at every step.
//!
//! The system's locks have no time limits. A timed lock therefore polls, at intervals that grow to a
//! millisecond; [`RecursiveMutex`], [`Token`], [`Semaphore`] and [`Condition`] are woken at once. Locks share
//! no state with each other, so the child of a `fork` can use every lock that it creates itself.
//!
//! A facility that a platform lacks is absent from its interface: signals on Windows; processor affinity and
//! the CPU times of children everywhere but on Linux. Queues belong to `spandrel-message`, event
//! demultiplexing to `spandrel-reactor`.
//!
//! ```
//! use spandrel_sync::{Arc, Condition, Mutex, thread};
//!
//! let slot = Arc::new((Mutex::new(None), Condition::new()));
//! let giver = Arc::clone(&slot);
//! let thread = thread::spawn(move || {
//!     *giver.0.lock() = Some(42);
//!     giver.1.notify_one();
//! });
//! let mut value = slot.0.lock();
//! while value.is_none() {
//!     slot.1.wait(&mut value);
//! }
//! assert_eq!(*value, Some(42));
//! # drop(value);
//! # thread.join().unwrap();
//! ```

mod adaptive;
mod backend;
mod barrier;
mod condition;
mod deadline;
pub mod held;
#[cfg(shuttle)]
pub mod models;
mod mutex;
mod null;
mod priority_inheritance;
mod process_manager;
mod processor_shortage;
mod recursive;
mod rwlock;
mod semaphore;
mod strategy;
mod thread_manager;
mod token;

pub use adaptive::AdaptiveMutex;
pub use barrier::{Barrier, BarrierWaitResult};
pub use condition::{Condition, WaitResult};
pub use mutex::{Mutex, MutexGuard};
pub use null::{NullCondition, NullMutex, NullMutexGuard, NullMutexReadGuard, WouldDeadlock};
pub use priority_inheritance::{PriorityInheritanceCondition, PriorityInheritanceMutex, PriorityInheritanceMutexGuard};
#[cfg(target_os = "linux")]
pub use process_manager::CpuTimes;
#[cfg(unix)]
pub use process_manager::Signal;
pub use process_manager::{OnDrop, Process, ProcessError, ProcessManager};
pub use processor_shortage::ProcessorShortage;
pub use recursive::{RecursiveMutex, RecursiveMutexGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::{OwnedPermit, Permit, Semaphore, TooManyPermits};
pub use strategy::{Guarded, Lock, Monitor, SharedLock};
#[cfg(target_os = "linux")]
pub use thread_manager::allowed_cpus;
pub use thread_manager::{
    Cancelled, Joined, NativeThreadId, Priority, PriorityGuard, SpawnError, StillRunning, ThreadContext, ThreadGroup,
    ThreadManager, ThreadOptions, ThreadPanic, WorkingThread, current_priority, set_current_priority,
};
pub use token::{Token, TokenGuard};

pub use std::sync::{Arc, Weak}; // the model checker has none of its own

/// Atomic integers, booleans and pointers, with the meaning that [`std::sync::atomic`] gives them.
///
/// Under the model checker all orderings are sequentially consistent.
pub mod atomic {
    pub use crate::backend::atomic::{
        AtomicBool, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
        AtomicUsize, Ordering, fence,
    };
}

/// Threads, with the meaning that [`std::thread`] gives them.
pub mod thread {
    pub use crate::backend::thread::{
        Builder, JoinHandle, Scope, ScopedJoinHandle, Thread, ThreadId, current, park, park_timeout, scope, spawn,
        yield_now,
    };
}

/// Thread-local values, with the meaning that [`std::thread_local`] gives them.
///
/// The model checker's keys have only `with` and `try_with`.
pub use crate::backend::thread_local;

/// The clock, with the meaning that [`std::time`] gives it, and time limits.
pub mod time {
    pub use crate::backend::Instant;
    pub use crate::deadline::Deadline;
}

/// Not on Windows: models do not depend on the platform, and take long under Wine.
#[cfg(all(test, not(windows)))]
mod tests;
