//! Models of the cooperation of the ORB's threads, run by a model checker under many interleavings.
//!
//! They are built and run by `cargo xtask models`: with `--cfg shuttle` all locks, conditions, atomics and
//! threads are the checker's. A model that blocks for ever is reported as a deadlock. Each failure has a
//! schedule, which `shuttle::replay` runs again. The models are beside their code (`client/models.rs`,
//! `models.rs` of the server's crate). This module has the common parts: a connection without a network, and
//! messages.
//!
//! The checker treats all atomic operations as sequentially consistent, so that too weak an ordering is not
//! found.

#![allow(missing_docs, missing_debug_implementations, reason = "models of this crate and of those above it use them")]

pub mod fake_transport;
pub mod messages;
pub mod pipe;

pub use crate::call::invocation::nesting::appear_as_pool_thread;
pub use spandrel_sync::models::{below, check, one_in};
