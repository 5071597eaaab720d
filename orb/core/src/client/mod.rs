//! The client side: connections to peers, and how threads share them.
//!
//! A [`peer`](self) is a [address](spandrel_transport::Address), such as a host and a port. Calls to it take a connection for themselves while another may be opened (five by
//! default), and share one after that. Whoever waits first reads for all: the leader delivers other threads' replies and
//! hands the reading on when its own has come or its time is up.
//!
//! Asynchronous calls use the same connections. Their replies are read by whoever leads, and by the ORB's reactor where no
//! thread does (`client_reactor`).

#[cfg(feature = "asynchronous")]
mod client_reactor;
mod connection;
mod connection_cache;
mod fragment_sizes;
mod maintenance;
#[cfg(all(test, shuttle))]
mod models;
mod peer;
mod peers;
mod settings;
mod unreachable_cache;
mod unsent_calls;

#[cfg(feature = "server")]
pub(crate) use client_reactor::cancelled;
#[cfg(feature = "asynchronous")]
pub(crate) use client_reactor::{
    ClientReactor, ExpiryReason, TimedCall, TimedCallId, is_here as is_client_reactor_thread,
};
#[cfg(feature = "asynchronous")]
pub(crate) use connection::Buffering;
#[cfg(feature = "server")]
pub(crate) use connection::send_fragmented;
#[cfg(feature = "server")]
pub(crate) use connection::{AdoptedReader, CallbackDispatcher};
pub(crate) use connection::{
    CODE_SETS, CallFailure, ClientConnection, LISTEN_POINTS, Reply, ReplyKind, ReplyReceiverHandle, RequestLoss,
};
#[cfg(feature = "asynchronous")]
pub(crate) use connection::{ReplyReceiver, UnsentKind, WriteLimits};
pub(crate) use connection_cache::{CacheSettings, ConnectionCache, ConnectionSlot};
pub use connection_cache::{ConnectionSharing, Purging};
pub(crate) use fragment_sizes::FragmentSizes;
pub(crate) use maintenance::{MaintenanceThread, Schedule};
#[cfg(feature = "asynchronous")]
pub(crate) use peer::LeaseResult;
#[cfg(feature = "asynchronous")]
pub(crate) use peer::batches::all;
pub(crate) use peer::{
    Lease, Peer,
    purging::{CONNECTION_LIMITS, ConnectionLimits},
};
pub(crate) use peers::PeerTable;
pub(crate) use settings::ClientSettings;
pub(crate) use unsent_calls::{no_reconnecting, not_sent_in_time};
