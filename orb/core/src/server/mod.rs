//! The server side: listening, the strategies by which connections are served, and the monitor that keeps a slow servant from blocking
//! others.
//!
//! By default connections have a thread each, up to a limit, and a reactor serves those beyond; what else there is says [`Concurrency`]. A connection's thread reads a request, runs it, writes the reply and reads again: no hand-off between threads. When an
//! upcall lasts and there is something to read, the [monitor](self) gives the connection's reading to a new thread, so that further
//! requests, a CancelRequest or the end of the connection are seen (design decision 3).

/// Logs what clients can bring about: ten lines of each cause in a minute.
macro_rules! log_limited {
    ($level:ident, $orb:expr, $cause:literal, $($fields:tt)*) => {
        if let Some(spandrel_reactor::Unlogged(unlogged)) = $orb.server().log_limit().admit($cause) {
            tracing::$level!(unlogged, $($fields)*);
        }
    };
}

mod admission;
mod call;
mod callbacks;
pub(crate) mod collocated;
mod concurrency;
mod connection;
mod current;
#[cfg(feature = "server")]
mod datagrams;
mod deferred;
mod deferred_slot;
pub(crate) mod dispatch;
mod frame;
mod held_requests;
mod idle_sweep;
mod incoming_request;
mod interception;
mod link;
mod listener;
mod lookup;
mod marshaled_reply;
#[cfg(all(test, shuttle))]
mod models;
mod monitor;
mod nesting;
mod origin;
mod pool;
mod prediction;
mod queue;
mod reply;
mod reply_queue;
mod settings;
mod threads;
mod upcall;
mod worker;
mod worker_counts;

pub use call::ServerCall;
pub(crate) use callbacks::Callbacks;
pub(crate) use collocated::CollocatedCalls;
pub(crate) use concurrency::SYNTAX as CONCURRENCY;
pub use concurrency::{Concurrency, ConcurrencyError, QueueOverflow};
pub(crate) use connection::ServerConnection;
pub(crate) use current::served_request;
pub use current::with_current_stream;
pub use deferred::DeferredCall;
pub(crate) use listener::Server;
pub(crate) use monitor::UpcallMonitor;
pub(crate) use nesting::{NestedWait, NestedWork};
pub(crate) use reply::panicked;
pub(crate) use settings::ServerSettings;
