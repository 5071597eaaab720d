//! What the datagram endpoints of all families have in common.
//!
//! A datagram is sent and received whole or not at all, keeps its bounds, and may be lost, doubled or overtaken. There are two
//! roles, with types of their own, since what one can do is an error for the other: an [`Unconnected`] endpoint (`Dgram`,
//! `Broadcast`, `Multicast`) names the receiver of each datagram and learns the sender of each; a [`Connected`] one
//! (`ConnectedDgram`) has one peer, hears nobody else, and is told when that peer does not listen.
//!
//! As with streams, every transfer has three forms: `recv` waits as the endpoint is set up to, `try_recv` never waits, and
//! `recv_within` waits for a time of its own; each for one buffer and for several (`_v`). Many datagrams at once go through a
//! [`Batch`].
//!
//! What a send can come to is in [`SendError`]; what a receive can come to:
//!
//! - A datagram longer than the buffer is cut, and [`Received`] says so.
//! - [`ConnectionRefused`](std::io::ErrorKind::ConnectionRefused), connected endpoints only: a datagram sent *earlier* found nobody
//!   at its address. Telling it clears it; the endpoint works on.
//! - A datagram of no octets is a datagram, not an end: nobody tells that a peer of datagrams has gone.
//!
//! The endpoints themselves are [`inet`](crate::inet)'s and, on Unix, `unix`'s.

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
pub(crate) use socket::within;
pub(crate) use socket::{Data, DgramSocket, Room, Wait};
pub(crate) use transfers::{connected_transfers, unconnected_receives, unconnected_sends};
