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
//! - [`ReaderWord`] decides which thread reads an accepted connection, [`UpcallNumber`] identifies its upcalls, and [`ServerPhase`] how far its end
//!   has come.
//! - [`ServiceModeRule`] decides whether busy connections are read by threads of their own or by shared ones.
//! - [`HandOverLoad`] decides from which age of an upcall another thread reads on.
//! - [`Turn`] decides how many requests of one connection a thread serves before those of others.
//! - [`RequestLoss`] is the fate of a request without a reply: its completion status, and whether it may be
//!   sent once more. [`EndCause`] and [`WriteFailure`] lead to it.
//!
//! # The order of a driver's calls
//! *A request is sent.* Under the lock of the calls: [`ClientHalf::check_open`], then [`ClientHalf::begin`] before the
//! first octet is written, so that the reply always has an entry. Under the lock of the writer:
//! [`SendHalf::may_write`], then the octets. If fewer octets than the whole request were accepted and the rest waits or
//! is lost, [`ClientHalf::set_written`] records it, and [`SendHalf::cut`] that the rest will not be written. With several
//! threads, [`AppendedRequests::begin`] follows under the lock of the calls and decides which thread writes: that one
//! calls [`take`](AppendedRequests::take) under the lock of the writer, writes, calls
//! [`settle`](AppendedRequests::settle), and [`end`](AppendedRequests::end) afterwards.
//!
//! *A message is read.* [`classify`] comes first; a [`Violation`] ends the connection. A reply:
//! [`ClientHalf::reply`], then [`CallEntry::remove`], and the waiter is woken without a lock. A CancelRequest:
//! [`ServerHalf::cancel`]. A request, in the thread that reads: [`ReaderWord::begin_upcall`]; if the result is closing,
//! a second step and no upcall. During the upcall [`ServerHalf::register_cancellation`] and [`ServerHalf::defer`] may
//! follow, in this order or alone; after it [`ServerHalf::end_upcall`], and only then [`ReaderWord::end_upcall`], which
//! decides whether this thread reads on. A deferred request is answered between
//! [`ServerHalf::uncharge_deferred`] and [`ServerHalf::end_deferred`].
//!
//! *A call is given up.* The request is first taken out of the octets that wait, if it is not being written; then
//! [`ClientHalf::abandon`] says whether the peer may have it. An [`Abandoned::InDoubt`] is followed by a CancelRequest,
//! which therefore never precedes its request.
//!
//! *The connection ends.* In order: [`ReaderWord::close`] stops further requests; once none runs and no reply waits,
//! [`SendHalf::close`] gives the message to be written, and [`ServerPhase::send_close`] records it;
//! [`ServerPhase::end_reading`], [`shut`](ServerPhase::shut) and [`close`](ServerPhase::close) follow in this order. After a
//! failure: [`SendHalf::cut`], then [`ClientHalf::end`] once, whose waiters are notified without a lock. Each half
//! refuses what comes after its end, so a driver need not know which thread came first.
//!
//! *Time passes.* The rules of time take `now` or an age, and are asked at the moments that their types name. No
//! call is due in between, and a late one changes only when a thread looks, not what it decides.
//!
//! ```
//! use spandrel_connection::{ClientHalf, EndCause, ConnectionEnd, SendHalf, Written};
//! # use spandrel_giop::{CompletionStatus, SystemException};
//! let (mut calls, mut writer) = (ClientHalf::default(), SendHalf::default());
//! // Two calls; the transport takes only a part of the second one, and fails.
//! for (id, written) in [(2, Written::Whole), (4, Written::Partly)] {
//!     calls.check_open().expect("nothing has failed");
//!     calls.begin(id, "the waiter").expect("it was checked");
//!     assert!(writer.may_write());
//!     calls.set_written(id, written);
//! }
//! writer.cut();
//! // The reply to the first one was read before the end.
//! assert_eq!(calls.reply(2).map(|entry| entry.remove()), Some("the waiter"));
//! let exception = SystemException::comm_failure(0, CompletionStatus::Maybe);
//! let failed = calls.end(ConnectionEnd { cause: EndCause::Failed, exception }, |_| false);
//! // The peer cannot have the second request: it may be sent on another connection.
//! assert!(failed.iter().all(|(waiter, failure)| *waiter == "the waiter" && failure.may_repeat()));
//! assert_eq!((failed.len(), calls.check_open().is_err(), writer.may_write()), (1, true, false));
//! ```

#![forbid(unsafe_code)]

mod appended;
mod call_table;
mod classify;
mod client;
#[cfg(test)]
mod halves_tests;
mod hand_over;
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
pub use hand_over::{HandOverLoad, HandOverTimes};
pub use look_pace::{ActivityRule, LookFinding, LookPace, MonitorTimes};
pub use loss::{CallFailure, ConnectionEnd, EndCause, LossConsequence, RequestLoss, WriteFailure, Written};
pub use reader_word::{ReaderWord, UpcallNumber};
pub use sending::{MOST_APPENDED, SendHalf, SentContexts, WritePhase};
pub use server::{CancelledRequests, RequestKey, ServerHalf, agree_on_code_sets};
pub use server_phase::{ReadSide, ServerPhase, WriteSide};
pub use service_mode::{Busyness, ServiceMode, ServiceModeRule};
pub use turn::Turn;
