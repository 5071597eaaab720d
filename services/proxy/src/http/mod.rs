//! An HTTP/1.1 server with limits, TLS and authentication, around a router of `axum`.
//!
//! Connections and the headers of requests are bounded in number, size and time ([`HttpLimits`]). Routers bound bodies.

mod authentication;
mod lent_body;
mod origin;
mod server;

pub use authentication::{Authentication, Caller, TokenError, Tokens};
pub use origin::AllowedHosts;
pub use server::{HttpLimits, HttpServer, Peer, TlsFiles};
