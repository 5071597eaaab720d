//! Bulk data beside the ORB: operations hand over ends of streams, and connections of their own carry the octets.
//!
//! An operation of a program's IDL returns or takes a `Bulk::Offer`: an end of a stream with a one-time token, the
//! endpoints at which the offering party listens, and an object that controls the transfer. The other party opens a
//! bulk connection, shows the token, and the octets flow in either direction.
//!
//! # The party that opens the connection
//! 1. The party that received the offer calls its endpoints, in order: UNIX-domain on the same machine, TCP, or TLS.
//! 2. If none can be reached and it may listen, it asks the offering party to call it (`StreamEnd::dial`).
//! 3. If that fails as well, bounded calls over the GIOP connection transfer the octets (`StreamEnd::read` and
//!    `write`).
//!
//! [`wire`] has the format of the bulk connection, for peers in other languages.
#![forbid(unsafe_code)]

pub mod wire;
