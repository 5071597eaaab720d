//! The family of STREAM pipes.

use std::io;
use std::time::Duration;

use super::{Acceptor, AcceptorOptions, Addr, Connecting, Connector, Stream};
use crate::Family;

/// The family of STREAM pipes, for code that is generic over families: the options of acceptors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spipe {
    /// The options of acceptors. Their queue sizes do not affect pipes.
    pub acceptor: AcceptorOptions,
}

impl Spipe {
    /// A family with these options.
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
