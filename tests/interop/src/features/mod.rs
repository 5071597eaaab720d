//! Object adapters and the kinds of invocation: server and client of `idl/features.idl`, with the cases of
//! `peers/omniorb/features.cc` and `peers/jacorb`.

pub mod client;
mod contexts;
mod dynamically;
mod managers;
pub mod server;
mod target;

use anyhow::Result;
use spandrel::{Orb, OrbBuilder};

/// An ORB with an interceptor on each side.
///
/// # Errors
/// None: there is one interceptor of each kind.
pub fn build(builder: OrbBuilder) -> Result<Orb> {
    Ok(builder.client_request_interceptor(contexts::Sender)?.server_request_interceptor(contexts::Receiver)?.build()?)
}
