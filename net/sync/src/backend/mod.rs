//! The implementations behind the public types of this crate: one module per backend, with the same names.
//!
//! This crate's own unit tests always use the model checker, so an ordinary `cargo test` checks the models.
//! All other builds use it under `--cfg shuttle`.

#[cfg(any(shuttle, test))]
#[path = "model.rs"]
mod kind;
#[cfg(not(any(shuttle, test)))]
#[path = "native.rs"]
mod kind;
mod recursive;

#[cfg(all(target_os = "linux", not(any(shuttle, test))))]
pub(crate) mod scheduler;

#[cfg(all(target_os = "linux", not(any(shuttle, test))))]
mod inheriting;
/// Elsewhere, and under the model checker, threads inherit no priorities.
#[cfg(not(all(target_os = "linux", not(any(shuttle, test)))))]
mod inheriting {
    pub(crate) use super::kind::{
        Condvar as InheritingCondvar, Mutex as InheritingMutex, MutexGuard as InheritingMutexGuard,
    };
}

pub(crate) use inheriting::{InheritingCondvar, InheritingMutex, InheritingMutexGuard};
pub(crate) use kind::*;
pub use kind::{Instant, thread_local};
pub(crate) use recursive::{RecursiveMutex, RecursiveMutexGuard};
