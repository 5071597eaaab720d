//! The client side: connections to peers, and how threads share them.
//!
//! A [`peer`](self) is a [address](spandrel_transport::Address), such as a host and a port. Calls to it take a connection for themselves while another may be opened (five by
//! default), and share one after that. Whoever waits first reads for all: the leader delivers other threads' replies and
//! hands the reading on when its own has come or its time is up.
//!
//! Asynchronous calls use the same connections. Their replies are read by whoever leads, and by the ORB's reactor where no
//! thread does (`station`).

#[cfg(feature = "caching")]
mod cache;
#[cfg(not(feature = "caching"))]
#[path = "cache/absent.rs"]
mod cache;
mod connection;
mod fragment_sizes;
#[cfg(feature = "caching")]
mod keeper;
#[cfg(all(test, shuttle))]
mod models;
mod peer;
mod peers;
mod settings;
mod shunned;
#[cfg(feature = "asynchronous")]
mod station;
mod unsent;

pub(crate) use cache::{Cache, CacheSettings, Slot};
#[cfg(feature = "caching")]
pub use cache::{ConnectionSharing, Purging};
#[cfg(feature = "batching")]
pub(crate) use connection::Buffering;
#[cfg(feature = "asynchronous")]
pub(crate) use connection::{Awaiting, Bounds, Kind};
pub(crate) use connection::{CODE_SETS, CallFailure, ClientConnection, LISTEN_POINTS, Loss, Reply, ReplyKind, Told};
#[cfg(feature = "server")]
pub(crate) use connection::{Called, Feeder};
pub(crate) use fragment_sizes::FragmentSizes;
#[cfg(feature = "caching")]
pub(crate) use keeper::Keeper;
#[cfg(feature = "asynchronous")]
pub(crate) use peer::Leasing;
#[cfg(feature = "batching")]
pub(crate) use peer::batches::all;
pub(crate) use peer::{Lease, Peer};
pub(crate) use peers::PeerTable;
pub(crate) use settings::ClientSettings;
#[cfg(feature = "server")]
pub(crate) use station::cancelled;
#[cfg(feature = "asynchronous")]
pub(crate) use station::{Ending, Limited, Station, Ticket, is_here as is_station_here};
pub(crate) use unsent::{no_reconnecting, not_sent_in_time};
