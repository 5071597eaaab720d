//! The client side: connections to peers, and how threads share them.
//!
//! A [`peer`](self) is a host and a port. Calls to it take a connection for themselves while another may be opened (five by
//! default), and share one after that. Whoever waits first reads for all: the leader delivers other threads' replies and
//! hands the reading on when its own has come or its time is up.
//!
//! Asynchronous calls use the same connections. Their replies are read by whoever leads, and by the ORB's reactor where no
//! thread does (`station`).

mod connection;
#[cfg(all(test, shuttle))]
mod models;
mod peer;
#[cfg(feature = "asynchronous")]
mod station;

#[cfg(feature = "asynchronous")]
pub(crate) use connection::{Awaiting, Kind};
pub(crate) use connection::{CallFailure, ClientConnection, Reply, ReplyKind, Told};
pub(crate) use peer::{ClientSettings, Peer, PeerName, PeerTable};
#[cfg(feature = "asynchronous")]
pub(crate) use peer::{Lease, Leasing};
#[cfg(feature = "asynchronous")]
pub(crate) use station::{Ending, Limited, Station, Ticket};
