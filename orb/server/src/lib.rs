//! The server side of an ORB: it accepts connections, reads their requests and runs the servants.
//!
//! By default each connection has a thread of its own, up to a limit, while few are busy. A reactor serves the connections
//! beyond the limit, and all while many are busy (see [`Concurrency`](spandrel_orb::Concurrency)). A connection's thread reads a request, runs
//! it, writes the reply and reads again, without a hand-off between threads. An upcall that lasts while there
//! is input loses the reader role to a new thread. So further requests, a CancelRequest and the end of the
//! connection are noticed (design decision 3).
//!
//! The modules:
//! - `request_of_thread` is a thread's record of the request that it runs.
//! - `upcall` passes a request to its servant, and its reply to the request's origin. Its part `executor` is the
//!   interface to threads of crates above, which run the requests of some adapters.
//! - `long_wait` warns of requests that wait for the application.
//! - `quick_operations` has the operations during which replies to earlier requests may wait.
//! - `threads` starts the server's threads, and `worker_counts` counts those that serve several connections.
//! - `nesting` has the connections whose requests a thread runs inside one another (`WaitStrategy::OnReactor`).
//! - `reactor_pool` has the reactor, and the threads that serve connections without a thread of their own
//!   (leader/followers). `queue` has the requests that wait for the workers of a thread pool, and these workers.
//! - `running_calls` counts calls outside of accepted connections; `announced_addresses` has the addresses that
//!   clients have announced.
//! - `monitor` finds long upcalls and idle connections.
//! - `resources` has the settings, threads and memory that the connections of an ORB share.
//! - `connection` is one accepted connection: it reads requests and sends replies.
//! - `current` finds the connection and the cancellation of the request that a thread runs.
//! - `unordered_requests` runs requests by datagram and callbacks side by side, in threads of the pool.
//! - `admission` decides which clients may connect.
//! - `collocated` runs calls on objects of the same ORB, marshaled or directly.
//! - `callbacks` runs requests that arrive over connections which this ORB has opened (bidirectional GIOP).
//! - `datagrams` runs requests by datagram (DIOP).
//! - `listener` opens the endpoints, and admits and closes the accepted connections.
//! - `dedicated` has the endpoints with a reading thread and limits of their own, whose requests all go to executors.
//! - `request_server` joins these, and is the core's interface to them. `install` puts it into an ORB.
//!
//! Each module uses only modules above it in this list. A module that has to call one further down has a
//! trait for it, such as the monitor's `MonitoredConnection`.
//!
//! [`install_adapter`] installs the server side in an ORB. The core calls it through
//! [`ServerSide`](spandrel_orb::internal::ServerSide), and it finds servants through an [`ObjectAdapter`].
#![forbid(unsafe_code)]

/// Logs an event that clients can cause: at most ten lines of each cause in a minute. `$limited` has the
/// [`LogLimit`](spandrel_reactor::LogLimit).
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
mod connection;
mod current;
mod datagrams;
mod dedicated;
#[doc(hidden)]
pub mod generated;
mod install;
#[doc(hidden)]
pub mod interpreted;
mod listener;
mod long_wait;
#[cfg(all(test, shuttle))]
mod models;
mod monitor;
mod nesting;
mod queue;
mod quick_operations;
mod reactor_pool;
mod reply_batch;
mod reply_urgency;
mod request_of_thread;
mod request_server;
mod resources;
mod running_calls;
mod threads;
mod unordered_requests;
mod upcall;
mod worker_counts;

pub(crate) use connection::ServerConnection;
pub use current::{current_peer_address, with_current_stream};
pub use install::install_adapter;
pub use listener::AcceptedSockets;
pub use long_wait::{LongWaitWatch, WaitingRequests};
pub use request_server::{dedicated_addresses, dedicated_hosts, open_dedicated_endpoint, server_endpoints};
pub use upcall::adapter::{AdapterWait, Entry, LastTarget, ObjectAdapter, Reservation, Resolution, ServantUse, Upcall};
pub use upcall::call::{Replied, ServerCall};
pub use upcall::deferred::DeferredCall;
pub use upcall::deferred_reply::{DeferredOperations, DeferredReply, DeferringSkeleton, TakenRequest};
pub use upcall::executor::{
    EndpointNumber, HandedOverRequest, Placed, Placement, RequestExecutor, RequestToPlace, RunningRequest,
};
pub use upcall::request_memory::RequestMemory;
pub use upcall::servant::{Servant, ServedAsyncBy};
pub use upcall::skeleton::{ServedBy, Skeleton};
