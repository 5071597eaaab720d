//! An HTTP/1.1 server with limits, TLS and authentication, around a router of `axum`.
//!
//! Every octet and connection of a client is bounded ([`HttpLimits`]), and so is every wait for one.

mod authentication;
mod origin;
mod server;

pub use authentication::{Authentication, Caller, TokenError, Tokens};
pub use origin::AllowedHosts;
pub use server::{HttpLimits, HttpServer, Peer, TlsFiles};
