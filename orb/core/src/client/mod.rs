//! The client side: transports, connections to peers and their sharing between threads, and the destinations that lead
//! from a reference to these.
//!
//! A [`peer`](self) is an [address](spandrel_transport::Address), such as a host and a port. A call to it
//! uses a connection alone while another may be opened (five by default), and shares one after that. The
//! first thread that waits reads for all: it delivers the replies of other threads, and hands reading over
//! when its own has come or its deadline has passed.
//!
//! Asynchronous calls use the same connections. Their replies are read by the same threads, or by the ORB's
//! reactor while none waits (`client_reactor`).

pub(crate) mod call_kind;
#[cfg(feature = "asynchronous")]
mod client_reactor;
pub(crate) mod code_set_agreement;
pub(crate) mod connection;
mod connection_cache;
pub(crate) mod datagrams;
pub(crate) mod destination;
mod fragment_sizes;
mod maintenance;
#[cfg(all(test, shuttle))]
mod models;
pub(crate) mod operation_index;
mod peer;
mod peers;
mod request_cache;
mod settings;
pub(crate) mod task;
pub mod transport;
mod unreachable_cache;
pub(crate) mod urgency;

use connection::has_async_calls;
pub use connection::{CallFailure, ClientConnection, Reply, send_fragmented};
pub(crate) use connection::{ReplyKind, ReplyReceiver, RequestLoss};
pub(crate) use connection_cache::{CacheSettings, ConnectionCache, ConnectionSlot};
pub use connection_cache::{ConnectionSharing, Purging};
pub(crate) use fragment_sizes::FragmentSizes;
pub(crate) use maintenance::{MaintenanceThread, Schedule};
pub(crate) use peer::{
    Lease, Peer, no_reconnecting, not_sent_in_time,
    purging::{CONNECTION_LIMITS, ConnectionLimits},
};
pub(crate) use peers::PeerTable;
pub(crate) use settings::{Buffering, ClientSettings, WriteLimits};
#[cfg(feature = "asynchronous")]
pub(crate) use {
    client_reactor::{ClientReactor, ExpiryReason, TimedCall, TimedCallId, cancelled, is_client_reactor_thread},
    connection::{OneWayBuffer, UnsentKind, plug_in, wake},
    peer::{LeaseResult, batches::first_failure},
};

/// The reactor of asynchronous calls, for an ORB that ends it.
pub(crate) trait CallReactor: std::any::Any + Send + Sync {
    /// Ends all calls and the reactor.
    fn shut_down(&self);
}
