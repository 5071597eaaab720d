//! The client side: connections to peers, and how threads share them.
//!
//! A [`peer`](self) is a host and a port. Calls to it take a connection for themselves while another may be opened (five by
//! default), and share one after that. Whoever waits first reads for all: the leader delivers other threads' replies and
//! hands the reading on when its own has come or its time is up.

mod connection;
#[cfg(all(test, shuttle))]
mod models;
mod peer;

pub(crate) use connection::{CallFailure, ClientConnection, Reply, ReplyKind};
pub(crate) use peer::{ClientSettings, Peer, PeerTable};
