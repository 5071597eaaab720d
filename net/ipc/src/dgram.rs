//! Common parts of the datagram endpoints of all families.
//!
//! A datagram is sent and received whole or not at all, keeps its boundaries, and may be lost, duplicated or
//! reordered. There are two roles, each with its own types, since an operation of one is an error for the
//! other. An [`Unconnected`] endpoint (`Dgram`, `Broadcast`, `Multicast`) names the receiver of each datagram
//! and gets the sender of each. A [`Connected`] one (`ConnectedDgram`) has one peer, receives from no other,
//! and gets an error when that peer does not listen.
//!
//! As with streams, every transfer has three forms: `recv` waits as the endpoint is configured, `try_recv`
//! never waits, and `recv_within` takes its own time limit; each for one buffer and for several (`_v`). A
//! [`Batch`] transfers many datagrams at once.
//!
//! Errors of a send are in [`SendError`]. Results of a receive:
//!
//! - A datagram longer than the buffer is truncated, and [`Received`] reports it.
//! - [`ConnectionRefused`](std::io::ErrorKind::ConnectionRefused), connected endpoints only: an *earlier*
//!   datagram found no receiver at its address. Reporting it clears it; the endpoint stays usable.
//! - A datagram of zero octets is a datagram, not an end: a datagram peer that closes is not reported.
//!
//! The endpoints themselves are in [`inet`](crate::inet) and, on Unix, `unix`.

mod address;
mod batch;
mod error;
mod options;
mod received;
mod roles;
mod socket;
mod transfers;

pub use address::Address;
pub(crate) use address::{Encode, Name};
pub use batch::{Batch, Datagram, PushError};
pub use error::SendError;
pub(crate) use options::{common_options, given_away, taken_over};
pub use received::Received;
pub use roles::{Connected, Unconnected};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use socket::retry_within;
pub(crate) use socket::{Data, DgramSocket, Room, Wait};
pub(crate) use transfers::{connected_transfers, unconnected_receives, unconnected_sends};
