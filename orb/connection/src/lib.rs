//! The client's and the server's half of a GIOP connection as state machines.
//!
//! A half has no socket, no thread, no clock and no lock. The ORB keeps each half in a lock that it holds in
//! any case, passes every message and failure to it, and carries out the answer. Octets, time-outs, condition
//! variables and registrations with a reactor belong to the ORB.
//!
//! - [`classify`] decides whether a message may come, by its header and the [`Role`] of the side that reads
//!   it.
//! - [`ClientHalf`] has the calls that wait for replies, and gives each its outcome.
//! - [`SendHalf`] decides which messages may still be written, for requests and replies alike.
//! - [`AppendedRequests`] lets requests of several threads leave in one write.
//! - [`ServerHalf`] has the requests that may be cancelled or are answered later.
//! - [`ReaderWord`] decides which thread reads an accepted connection, and [`ServerPhase`] how far its end
//!   has come.
//! - [`ServiceModeRule`] decides whether busy connections are read by threads of their own or by shared ones.
//! - [`Turn`] decides how many requests of one connection a thread serves before those of others.
//! - [`RequestLoss`] is the fate of a request without a reply: its completion status, and whether it may be
//!   sent once more. [`EndCause`] and [`WriteFailure`] lead to it.

#![forbid(unsafe_code)]

mod appended;
mod classify;
mod client;
#[cfg(test)]
mod halves_tests;
mod look_pace;
mod loss;
mod reader_word;
mod sending;
mod server;
mod server_phase;
mod service_mode;
mod turn;

pub use appended::{AppendedRequests, Urgency, WriteStart, WriteTurn};
pub use classify::{Incoming, Role, Violation, classify};
pub use client::{Abandoned, CallEntry, ClientHalf};
pub use look_pace::{ActivityRule, LookFinding, LookPace, MonitorTimes};
pub use loss::{CallFailure, ConnectionEnd, EndCause, LossConsequence, RequestLoss, WriteFailure, Written};
pub use reader_word::ReaderWord;
pub use sending::{MOST_APPENDED, SendHalf, SentContexts, WritePhase};
pub use server::{CancelledRequests, RequestKey, ServerHalf, agree_on_code_sets};
pub use server_phase::{ReadSide, ServerPhase, WriteSide};
pub use service_mode::{Busyness, ServiceMode, ServiceModeRule};
pub use turn::Turn;
