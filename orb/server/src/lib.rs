//! The server side of an ORB: listening, the strategies by which connections are served, and the monitor that
//! keeps a slow servant from blocking others.
//!
//! By default connections have a thread each, up to a limit, and a reactor serves those beyond it (see
//! [`Concurrency`](spandrel_orb::Concurrency)). A connection's thread reads a request, runs it, writes the reply and reads again, without
//! a hand-off between threads. When an upcall lasts and there is input, the `UpcallMonitor` gives the connection's
//! reading to a new thread, so that further requests, a CancelRequest or the end of the connection are seen
//! (design decision 3).
//!
//! [`install_adapter`] installs this side in an ORB. The core calls it through `ServerSide`.
#![forbid(unsafe_code)]

/// Logs events that clients can cause: ten lines of each cause in a minute. `$limited` has the [`LogLimit`](spandrel_reactor::LogLimit).
macro_rules! log_limited {
    ($level:ident, $limited:expr, $cause:literal, $($fields:tt)*) => {
        if let Some(spandrel_reactor::Unlogged(unlogged)) = $limited.log_limit().admit($cause) {
            tracing::$level!(unlogged, $($fields)*);
        }
    };
}

mod admission;
mod announced_addresses;
mod callbacks;
mod collocated;
mod collocation;
mod connection;
mod current;
mod datagrams;
mod frame;
#[doc(hidden)]
pub mod generated;
#[doc(hidden)]
pub mod interpreted;
mod listener;
#[cfg(all(test, shuttle))]
mod models;
mod monitor;
mod nesting;
mod pool;
mod queue;
mod request_server;
mod threads;
mod upcall;
mod worker;
mod worker_counts;

pub(crate) use collocated::CollocatedCalls;
pub(crate) use connection::ServerConnection;
pub use current::with_current_stream;
pub(crate) use listener::Server;
pub(crate) use monitor::UpcallMonitor;
pub(crate) use request_server::ServingOrb;
pub use request_server::install_adapter;
pub use upcall::adapter::{AdapterWait, Entry, LastTarget, ObjectAdapter, Reservation, Resolution, ServantUse, Upcall};
pub use upcall::call::ServerCall;
pub use upcall::deferred::DeferredCall;
pub use upcall::servant::{Replied, Servant};
