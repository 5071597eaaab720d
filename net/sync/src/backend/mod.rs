//! What the public types of this crate are made of: one module per backend, all with the methods of `parking_lot`.
//!
//! The model checker takes over in this crate's own unit tests, so that an ordinary `cargo test` checks models, and
//! everywhere when the compiler is given `--cfg shuttle`.

#[cfg(not(any(shuttle, test)))]
mod native;
#[cfg(not(any(shuttle, test)))]
pub(crate) use native::*;
#[cfg(not(any(shuttle, test)))]
pub use native::{Instant, thread_local};

#[cfg(any(shuttle, test))]
mod model;
#[cfg(any(shuttle, test))]
pub(crate) use model::*;
#[cfg(any(shuttle, test))]
pub use model::{Instant, thread_local};
#[cfg(any(shuttle, test))]
mod recursive;
#[cfg(any(shuttle, test))]
pub(crate) use recursive::{RecursiveMutex, RecursiveMutexGuard};
