//! STREAM pipes: bidirectional pipes between processes of one host, made one for each connection.
//!
//! System V Release 4 attached a pipe to a path with `fattach` and gave each process that opened the path a pipe of its own (the module
//! `connld`). Here the path is the rendezvous: an acceptor makes a socketpair for each process that comes to it, hands one end over,
//! keeps the other, and the rendezvous is forgotten. No end has a name, and either may be passed on
//! ([`unix::Passable`](crate::unix::Passable)). [`pair`] makes both ends in one process.
//!
//! ```
//! use spandrel_ipc::spipe;
//!
//! let (one, other) = spipe::pair()?;
//! one.send_n(b"ping")?;
//! let mut octets = [0; 4];
//! other.recv_n(&mut octets)?;
//! assert_eq!(&octets, b"ping");
//! # Ok::<(), std::io::Error>(())
//! ```

mod acceptor;
mod addr;
mod connecting;
mod stream;

use std::io;
use std::time::Duration;

pub use crate::unix::AcceptorOptions;
pub use acceptor::Acceptor;
pub use addr::Addr;
pub use connecting::{Connecting, Connector};
pub use stream::{Stream, pair};

use crate::Family;

/// The family of STREAM pipes, for code that is generic over families: with which options acceptors are opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spipe {
    /// For the rendezvous; its queues do not matter to the pipes.
    pub acceptor: AcceptorOptions,
}

impl Spipe {
    /// With these options.
    #[must_use]
    pub fn new(acceptor: AcceptorOptions) -> Self {
        Self { acceptor }
    }
}

impl Family for Spipe {
    type Addr = Addr;
    type Acceptor = Acceptor;
    type Connecting = Connecting;
    type Stream = Stream;

    fn open(&self, addr: &Addr) -> io::Result<Acceptor> {
        Acceptor::open_with(addr, &self.acceptor)
    }

    fn connect(&self, addr: &Addr, timeout: Option<Duration>) -> io::Result<Stream> {
        match timeout {
            Some(timeout) => Connector::connect_timeout(addr, timeout),
            None => Connector::connect(addr),
        }
    }

    fn start(&self, addr: &Addr) -> io::Result<Connecting> {
        Connector::start(addr)
    }
}
