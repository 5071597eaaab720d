//! What a caller is told when a server, or the way to it, is lost, compared with what was executed.
//!
//! A [`Server`] is a process of its own, which writes each execution down in a [`journal`] that outlives it. Between it and the client is a
//! [`Relay`] that cuts the connection, or kills the server, at any octet of either direction; what is to happen inside of an upcall happens
//! while the servant waits at a [`Gate`]. A [`Script`] is one such misfortune; [`Stage`] plays it and [`judge`] compares. Scripts are drawn by a
//! seed, and made smaller if one fails ([`rounds`]).
#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations, reason = "test support")]

pub mod call;
pub mod gate;
mod generated;
pub mod journal;
pub mod judge;
pub mod namespace;
pub mod relay;
pub mod rounds;
pub mod script;
pub mod secure;
pub mod servants;
pub mod server;
pub mod stage;
pub mod storm;

pub use gate::Gate;
pub use generated::ledger;
pub use relay::Relay;
pub use script::Script;
pub use server::Server;
pub use stage::Stage;

use std::time::Duration;

/// Longer than anything takes that is not stuck.
pub const LONG: Duration = Duration::from_secs(30);
