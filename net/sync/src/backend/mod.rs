//! What the public types of this crate are made of: one module per backend, with the same names.
//!
//! The model checker takes over in this crate's own unit tests, so that an ordinary `cargo test` checks models, and
//! everywhere when the compiler is given `--cfg shuttle`.

#[cfg(any(shuttle, test))]
#[path = "model.rs"]
mod kind;
#[cfg(not(any(shuttle, test)))]
#[path = "native.rs"]
mod kind;
mod recursive;

pub(crate) use kind::*;
pub use kind::{Instant, thread_local};
pub(crate) use recursive::{RecursiveMutex, RecursiveMutexGuard};
