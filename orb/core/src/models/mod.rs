//! Models of how the ORB's threads work together, run by a model checker under many interleavings.
//!
//! Built and run by `cargo xtask models`: with `--cfg shuttle` all locks, conditions, atomics and threads are the
//! checker's. A model that blocks for ever is reported as a deadlock; whatever fails comes with the schedule that
//! `shuttle::replay` runs again. The models stand beside what they check (`client/models.rs`, `server/models.rs`); here is
//! what they share: a connection without a network, and messages to send over it.
//!
//! The checker takes all atomic operations as sequentially consistent, so that too weak an ordering is not found here.

pub(crate) mod fake_transport;
pub(crate) mod messages;
pub(crate) mod pipe;

pub(crate) use spandrel_sync::models::{below, check, one_in};
