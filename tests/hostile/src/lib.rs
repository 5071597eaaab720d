//! Hostile peers, against real processes.
//!
//! A [`Victim`] is a server in a process of its own, so that what it takes of memory can be seen. While a [`attacks::Attack`] runs, a good client
//! ([`Witness`]) calls the same server over a connection of its own and checks every answer. Afterwards it is seen how soon a new client is
//! served, and how much more memory there was at the worst ([`judge`]). The other way round, [`rogue`] servers do to a client what
//! servers should not.
#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations, reason = "test support")]

pub mod attacks;
mod generated;
pub mod judge;
pub mod rogue;
pub mod victim;
pub mod wire;
pub mod witness;

pub use generated::attacked;
pub use victim::Victim;
pub use witness::Witness;
