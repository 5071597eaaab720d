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
mod connector;
mod stream;

use std::io;
use std::time::Duration;

pub use acceptor::{Acceptor, AcceptorOptions};
pub use addr::{Addr, AddrParseError};
pub use connector::Connector;
pub use stream::Stream;

use crate::Family;

/// The Internet family, for code that is generic over families.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inet {}

impl Family for Inet {
    type Addr = Addr;
    type Acceptor = Acceptor;
    type Stream = Stream;

    fn open(addr: &Addr) -> io::Result<Acceptor> {
        Acceptor::open(addr)
    }

    fn accept(acceptor: &Acceptor) -> io::Result<(Stream, Addr)> {
        acceptor.accept()
    }

    fn shut_down(acceptor: &Acceptor) -> io::Result<()> {
        acceptor.shutdown()
    }

    fn local_addr(acceptor: &Acceptor) -> io::Result<Addr> {
        acceptor.local_addr()
    }

    fn connect(addr: &Addr, timeout: Option<Duration>) -> io::Result<Stream> {
        match timeout {
            Some(timeout) => Connector::connect_timeout(addr, timeout),
            None => Connector::connect(addr),
        }
    }
}
