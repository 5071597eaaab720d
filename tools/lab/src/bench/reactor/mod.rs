//! The reactor experiment: how many events per second an echo server handles, and how long an answer takes, by the number
//! of idle and of active connections.
//!
//! A server is a process that prints its port on one line, sends back whatever comes, and ends when its standard input
//! ends. So every server is driven in the same way, whatever it is made of: plain C over epoll (the base of the ratios),
//! ACE's reactor, Asio, and the reactor of this project: event handlers over each of its back ends, and the Acceptor
//! pattern; at last the ORB, whose message is a call. The load comes from one thread of
//! this program over plain sockets: on every active connection it sends a message, waits until it has
//! come back, and sends the next; idle connections are open and silent. That thread waits by epoll, so the experiment
//! is there on Linux only.

mod calls;
mod contender;
mod echo;
mod load;
mod peers;
pub mod report;
mod results;
mod series;
mod settings;

pub use contender::Contender;
pub use results::{Echoed, Measured, Results, Row};
pub use series::run;
pub use settings::{Load, Settings};
