//! Hostile peers against servers and clients in real processes.
//!
//! An [`AttackedServer`] runs in a process of its own, so that its memory use can be measured. During an
//! [`attacks::Attack`], a [`GoodClient`] calls the same server over its own connection and checks each reply.
//! [`judge`] then measures the time until a new client is served, and the peak of the additional memory.
//! [`malicious_server`] attacks in the other direction: its servers break the protocol towards a client.
#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations, reason = "test support")]

pub mod attacked_server;
pub mod attacks;
mod generated;
pub mod good_client;
pub mod judge;
pub mod malicious_server;
pub mod wire;

pub use attacked_server::AttackedServer;
pub use generated::attacked;
pub use good_client::GoodClient;
