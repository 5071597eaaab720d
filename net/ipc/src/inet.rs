//! The Internet family: TCP over IPv4 and IPv6.
//!
//! ```
//! use spandrel_ipc::inet::{Acceptor, Addr, Connector};
//!
//! let acceptor = Acceptor::open(&Addr::loopback(0))?; // port 0: the system chooses
//! let client = Connector::connect(&acceptor.local_addr()?)?;
//! let (server, from) = acceptor.accept()?;
//! assert_eq!(from, client.local_addr()?);
//!
//! client.send_n(b"ping")?;
//! let mut octets = [0; 4];
//! server.recv_n(&mut octets)?;
//! assert_eq!(&octets, b"ping");
//! # Ok::<(), std::io::Error>(())
//! ```

mod acceptor;
mod addr;
mod broadcast;
mod connecting;
mod connector;
mod dgram;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod dgram_arrival;
mod dgram_options;
mod eyeballs;
mod interface;
mod ip;
mod multicast;
mod options;
mod stream;
mod urgent;

use std::io;
use std::time::Duration;

pub use acceptor::{Acceptor, AcceptorOptions};
pub use addr::{Addr, AddrParseError};
pub use broadcast::Broadcast;
pub use connecting::Connecting;
pub use connector::Connector;
pub use dgram::{ConnectedDgram, Dgram, DgramOptions};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use dgram_arrival::{Arrival, Via};
pub use interface::Interface;
pub use multicast::Multicast;
pub use options::KeepAlive;
pub use stream::Stream;

use crate::Family;

/// The Internet family, for code that is generic over families: the options of acceptors and connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inet {
    /// Options of each acceptor that the family opens.
    pub acceptor: AcceptorOptions,
    /// Options of each connection that the family makes.
    pub connector: Connector,
}

impl Inet {
    /// A family whose acceptors and connections have these options.
    #[must_use]
    pub fn new(acceptor: AcceptorOptions, connector: Connector) -> Self {
        Self { acceptor, connector }
    }
}

impl Family for Inet {
    type Addr = Addr;
    type Acceptor = Acceptor;
    type Connecting = Connecting;
    type Stream = Stream;

    fn open(&self, addr: &Addr) -> io::Result<Acceptor> {
        Acceptor::open_with(addr, &self.acceptor)
    }

    fn connect(&self, addr: &Addr, timeout: Option<Duration>) -> io::Result<Stream> {
        match timeout {
            Some(timeout) => self.connector.timeout(timeout).open(addr),
            None => self.connector.open(addr),
        }
    }

    fn start(&self, addr: &Addr) -> io::Result<Connecting> {
        self.connector.start(addr)
    }
}
