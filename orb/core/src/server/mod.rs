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
mod answering;
mod asked;
mod call;
mod callbacks;
mod concurrency;
mod connection;
mod current;
#[cfg(feature = "datagrams")]
mod datagrams;
mod deferred;
mod frame;
#[cfg(feature = "policies")]
mod held;
mod link;
mod listener;
pub(crate) mod local;
mod lookup;
#[cfg(all(test, shuttle))]
mod models;
mod monitor;
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
mod queue;
mod reply_queue;
mod rounds;
mod settings;
mod staff;
mod threads;
mod upcall;
mod worker;

pub(crate) use answering::panicked;
pub use call::ServerCall;
pub(crate) use callbacks::Callbacks;
pub(crate) use concurrency::SYNTAX as CONCURRENCY;
pub use concurrency::{Concurrency, ConcurrencyError, QueueOverflow};
pub(crate) use connection::ServerConnection;
pub(crate) use current::served_request;
pub use current::with_current_stream;
pub use deferred::DeferredCall;
pub(crate) use listener::Server;
pub(crate) use local::Locals;
pub(crate) use monitor::UpcallMonitor;
pub(crate) use nesting::{Meanwhile, Nested};
pub(crate) use settings::ServerSettings;
