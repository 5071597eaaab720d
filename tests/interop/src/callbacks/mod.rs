//! `idl/callbacks.idl`: clients whose objects are called over the connections that they have opened (bidirectional GIOP).
//!
//! Our client listens nowhere, so that there is no other way to it; our server says how many connections it has opened.

pub mod client;
pub mod server;

/// What both sides have in common.
#[must_use]
pub fn builder() -> spandrel::OrbBuilder {
    crate::builder().bidirectional(true)
}
