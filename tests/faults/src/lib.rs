//! Injected faults: connections and servers that fail during calls. The result at the caller is compared with
//! the execution.
//!
//! A [`Server`] is a process that records each execution in a [`journal`], which outlives it. A [`Proxy`]
//! between it and the client cuts the connection, or kills the server, at any octet of either direction;
//! faults within an upcall happen while the servant waits at a [`Gate`]. A [`Scenario`] is a call with one
//! fault; a [`TestBed`] runs it and [`judge`] checks the result. Scenarios are generated from a seed, and a
//! failing one is minimized ([`random_scenarios`]).
#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations, reason = "test support")]

pub mod call;
pub mod gate;
mod generated;
pub mod journal;
pub mod judge;
pub mod namespace;
pub mod proxy;
pub mod random_kills;
pub mod random_scenarios;
pub mod scenario;
pub mod secure;
pub mod servants;
pub mod server;
pub mod test_bed;

pub use gate::Gate;
pub use generated::ledger;
pub use proxy::Proxy;
pub use scenario::Scenario;
pub use server::Server;
pub use test_bed::TestBed;

use std::time::Duration;

/// A timeout that only a hanging operation exceeds.
pub const TIMEOUT: Duration = Duration::from_secs(30);
