//! `idl/callbacks.idl`: servers that call clients' objects over the clients' connections (bidirectional GIOP).
//!
//! The client does not listen, so the server cannot connect to it; the server reports the number of
//! connections it opened.

pub mod client;
pub mod server;

/// The ORB builder of both sides.
#[must_use]
pub fn builder() -> spandrel::OrbBuilder {
    crate::builder().bidirectional(true)
}
