//! Locks, conditions, atomics, threads and processes: the one place where Spandrel takes them from.
//!
//! Every other crate names the types of this one, never those of `std::sync`. So a model checker can replace
//! them all at once: built with `RUSTFLAGS="--cfg shuttle"`, the same names stand for the types of `shuttle`, which
//! runs a test under many thread interleavings and replays the one that fails. This crate's own unit tests are always
//! built that way.
//!
//! What is here (paper 002, 2.6, the Concurrency class category):
//!
//! | for | types |
//! | --- | --- |
//! | a choice of locks by type parameter | [`Guarded<T, L>`](Guarded) with `L:` [`Lock`], [`SharedLock`] or [`Monitor`] |
//! | one thread alone | [`NullMutex`], [`NullCondition`] |
//! | one at a time | [`Mutex`]; [`AdaptiveMutex`], which spins before it sleeps; [`RecursiveMutex`]; [`Token`], in the order of asking |
//! | many readers or one writer | [`RwLock`] |
//! | waiting | [`Condition`], [`Semaphore`], [`Barrier`] |
//! | showing that no lock is held | [`held`] |
//! | groups of threads | [`ThreadManager`], [`ThreadGroup`], [`ThreadContext`] |
//! | child processes | [`ProcessManager`], [`Process`] |
//! | single threads, atomics, the clock | [`thread`], [`atomic`], [`time`] |
//!
//! A panic while a lock is held does not poison it: the next thread finds the value as the panic left it, so code
//! that can panic under a lock keeps the value sound at every step.
//!
//! A wait for a lock with a time limit asks again after pauses that grow to a millisecond, since the system's locks have no such
//! limits; [`RecursiveMutex`], [`Token`], [`Semaphore`] and [`Condition`] are told at once. No lock shares anything with another,
//! so a copy of the process (`fork`) can use all that it makes itself.
//!
//! What a platform has no form of is absent from its interface: signals on Windows, processor affinity and the use of
//! processors by children everywhere but on Linux. Queues belong to `spandrel-message`, waiting for events to
//! `spandrel-reactor`.
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

#![forbid(unsafe_code)]

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
mod process_manager;
mod recursive;
mod rwlock;
mod semaphore;
mod strategy;
mod thread_manager;
mod token;

pub use adaptive::AdaptiveMutex;
pub use barrier::{Barrier, Passage};
pub use condition::{Condition, WaitResult};
pub use mutex::{Mutex, MutexGuard};
pub use null::{Alone, NullCondition, NullMutex, NullMutexGuard, NullMutexReadGuard};
#[cfg(target_os = "linux")]
pub use process_manager::CpuTimes;
#[cfg(unix)]
pub use process_manager::Signal;
pub use process_manager::{OnDrop, Process, ProcessError, ProcessManager};
pub use recursive::{RecursiveMutex, RecursiveMutexGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::{OwnedPermit, Permit, Semaphore, TooManyPermits};
pub use strategy::{Guarded, Lock, Monitor, SharedLock};
#[cfg(target_os = "linux")]
pub use thread_manager::allowed_cpus;
pub use thread_manager::{
    Cancelled, Joined, Priority, SpawnError, StillRunning, ThreadContext, ThreadGroup, ThreadManager, ThreadOptions,
    ThreadPanic,
};
pub use token::{Token, TokenGuard};

pub use std::sync::{Arc, Weak}; // the model checker has none of its own

/// Atomic integers, booleans and pointers, with the meaning that [`std::sync::atomic`] gives them.
///
/// Under the model checker all orderings are taken as sequentially consistent.
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

/// Values of which each thread has its own, with the meaning that [`std::thread_local`] gives them.
///
/// The model checker's keys have only `with` and `try_with`.
pub use crate::backend::thread_local;

/// The clock, with the meaning that [`std::time`] gives it.
pub mod time {
    pub use crate::backend::Instant;
}

/// Models say nothing of a platform, and take long where Windows programs are run by Wine.
#[cfg(all(test, not(windows)))]
mod tests;
