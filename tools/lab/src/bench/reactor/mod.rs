//! The reactor experiment: the events per second of an echo server, and its response times, by the number of
//! idle and of active connections.
//!
//! A server is a process that prints its port on one line, echoes its input, and ends when its standard input
//! ends. So every server is driven in the same way, whatever its implementation: plain C over epoll (the base
//! of the ratios), ACE's reactor, Asio, and the reactor of this project: event handlers over each of its back
//! ends, the Acceptor pattern, and the ORB, whose message is a call. The load comes from one thread of this
//! program over plain sockets. On every active connection it sends a message, waits for the echo, and sends
//! the next; idle connections are open and silent. That thread waits with epoll, so the experiment exists on
//! Linux only.

mod contender;
mod echo;
pub mod report;
mod results;
mod series;
mod settings;

pub use contender::Contender;
pub use results::{Echoed, Measurement, Results, Row};
pub use series::run;
pub use settings::{Load, Settings};
