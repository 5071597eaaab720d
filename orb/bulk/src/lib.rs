//! Bulk data beside the ORB: operations hand over ends of streams, and connections of their own carry the octets.
//!
//! An operation of a program's IDL returns or takes a [`bulk::Offer`]: an end of a stream with a one-time token, the
//! endpoints at which the offering party listens, and an object that controls the transfer. The other party opens a
//! bulk connection, shows the token, and the octets flow in either direction. [`BulkServer`] makes offers of a
//! [`Source`] or a [`Sink`]; [`BulkClient`] takes them up. The IDL is `idl/Bulk.idl` of this package.
//!
//! # The party that opens the connection
//! 1. The party that received the offer calls its endpoints, in order: UNIX-domain or shared memory on the
//!    same machine, TCP, or TLS.
//! 2. If none can be reached and it may listen ([`BulkClient::listen`]), it asks the offering party to call it
//!    (`StreamEnd::dial`). That calls no other address than the caller's.
//! 3. If that fails as well, bounded calls over the GIOP connection transfer the octets (`StreamEnd::read` and
//!    `write`).
//!
//! # Security
//! A token opens one connection, within a time, to the party to which the offer was made ([`OfferedTo`]): the same
//! certificate, or the same address, or the same user of this machine. If that party's requests come over TLS, only TLS
//! endpoints are offered to it, and its octets never go in clear.
//!
//! # Further transfers
//! A [`BulkClient`] keeps a connection after a complete transfer for some seconds, and the next offer with the same
//! endpoint goes over it, with its own token ([`BulkClient::reuse`], [`BulkLimits::reuse`]).
//!
//! # Broken connections
//! A party whose connection broke asks for another token (`StreamEnd::renew`), and the transfer goes on where the
//! receiving party has ended. [`wire`] has the format of the bulk connection, for peers in other languages.
#![forbid(unsafe_code)]

mod channel;
mod client;
mod endpoint;
mod error;
mod flow;
mod generated;
mod idle_connections;
mod limits;
mod peer;
mod server;
mod sink;
mod source;
mod stream_end;
mod token;
mod transfer;
pub mod wire;

pub use channel::Route;
pub use client::BulkClient;
pub use error::{BulkError, Party};
pub use flow::Outcome;
pub use limits::BulkLimits;
pub use peer::OfferedTo;
pub use server::{BulkServer, BulkServerBuilder, BulkStatistics, OfferedTransfer};
pub use sink::{FileSink, Sink};
pub use source::{FileSource, Source};

include!("bulk.rs");
