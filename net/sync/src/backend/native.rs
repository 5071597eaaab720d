//! The backend of every ordinary build: `parking_lot` for locks, the standard library for the rest.

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub(crate) use std::{sync::atomic, thread};
pub use std::{thread_local, time::Instant};
