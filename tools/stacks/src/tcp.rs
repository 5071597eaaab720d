//! TCP (RFC 9293) as a state machine: segments and time in, segments and the time of the next timer out.
//!
//! A [`Tcb`] has no socket, thread, lock or clock. A receiver of octets calls [`Tcb::on_segment`] for each segment, and
//! [`Tcb::on_timer`] at [`Tcb::next_timer`]; after each it takes what is to be sent by [`Tcb::transmit`], and what was
//! received by [`Tcb::receive`].
//!
//! | mechanism | source |
//! | --- | --- |
//! | states, acceptance of segments, closing | RFC 9293, 3.3 and 3.10 |
//! | estimate of the round-trip time, back-off of retransmissions | RFC 6298; samples without timestamps, by Karn's algorithm |
//! | slow start, congestion avoidance, fast retransmission | RFC 5681 |
//! | fast recovery with partial acknowledgements (NewReno) | RFC 6582 |
//! | header prediction | the 4.3BSD Reno release (paper 002, 3.2) |
//! | probes of closed windows, avoidance of small segments, delayed acknowledgements | RFC 9293, 3.8.6; RFC 1122, 4.2.3 |
//! | window scale | RFC 7323, 2 |
//! | treatment of RST and SYN within the window | RFC 5961, 3 and 4 |
//!
//! *Absent:* selective acknowledgements, timestamps, urgent data, keep-alive.

mod buffers;
mod congestion;
mod rtt;
mod segment;
mod tcb;
#[cfg(test)]
mod tests;

pub use congestion::Congestion;
pub use rtt::RoundTrip;
pub use segment::{Flags, HEADER, Segment, TcpHeader};
pub use tcb::{Config, EndReason, SendError, State, Statistics, Tcb, reset_for};
