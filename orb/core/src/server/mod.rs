//! The server side: listening, a thread per connection up to a limit and a reactor beyond, and the watcher that keeps a
//! slow servant from blocking others.
//!
//! A connection's thread reads a request, runs it, writes the reply and reads again: no hand-off between threads. When an
//! upcall outlives a millisecond the [watcher](self) gives the connection's reading to a new thread, so that further
//! requests, a CancelRequest or the end of the connection are seen (design decision 3).

mod answering;
mod asked;
mod call;
mod cancellation;
mod connection;
mod deferred;
mod link;
mod listener;
pub(crate) mod local;
mod lookup;
#[cfg(all(test, shuttle))]
mod models;
mod nesting;
mod origin;
mod place;
#[cfg(feature = "interceptors")]
mod points;
#[cfg(not(feature = "interceptors"))]
#[path = "no_points.rs"]
mod points;
mod pool;
mod prediction;
mod staff;
mod threads;
mod watcher;

pub(crate) use answering::panicked;
pub use call::ServerCall;
pub(crate) use connection::{ServerConnection, ServerSettings};
pub use deferred::DeferredCall;
pub(crate) use listener::Server;
pub(crate) use local::Locals;
pub(crate) use nesting::Nested;
pub(crate) use watcher::Watcher;
