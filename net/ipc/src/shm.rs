//! Shared memory: a connection is a pair of rings of octets in memory that both processes map. Linux only.
//!
//! The connector creates the memory, seals it against a change of its size, and passes it over a UNIX-domain
//! socket to the acceptor, whose [`Addr`] is that of the socket. The socket stays open: it reports the peer's
//! death, and it is the doorbell for reactors. A transfer is a copy into memory and one out of it; a system
//! call is made only to wake the peer or to sleep.
//!
//! ```
//! use spandrel_ipc::shm::{Acceptor, Addr, Connector};
//!
//! let acceptor = Acceptor::open(&Addr::unnamed())?; // the system chooses an abstract name
//! let client = Connector::connect(&acceptor.local_addr()?)?;
//! let (server, _from) = acceptor.accept()?;
//!
//! client.send_n(b"ping")?;
//! let mut octets = [0; 4];
//! server.recv_n(&mut octets)?;
//! assert_eq!(&octets, b"ping");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! *Waiting.* A thread that can make no progress spins for a few microseconds, as long as that has succeeded
//! recently. It yields instead if the peer is on the same processor. After that it sleeps on a futex in the
//! shared memory. Every fifth of a second a sleeper checks whether the peer still exists.
//!
//! *Reactors.* The doorbell is an octet on the socket, sent only if the peer has announced that it is about
//! to poll. It is not an `eventfd`: the peer could make a shared one block, and the socket is needed anyway,
//! so that a connection costs one descriptor.
//!
//! *A hostile peer* can write anything at any time to the shared memory. Positions are checked, octets are
//! copied out once, sizes come from a handshake that was copied, and sealed memory cannot vanish. The peer
//! can do no more than any peer: send nonsense, or stop. The permissions of the socket file, and
//! [`any_user`](AcceptorOptions::any_user), control which processes may connect.

mod acceptor;
mod adaptive_wait;
mod connector;
mod half;
mod handshake;
#[cfg(all(test, shuttle))]
mod models;
mod ring;
mod segment;
mod stream;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
#[cfg(all(test, loom))]
mod weak;

use std::io;
use std::time::Duration;

pub use acceptor::{Acceptor, AcceptorOptions};
pub use connector::{Connecting, Connector};
pub use stream::Stream;

use adaptive_wait::DEFAULT_SPIN;
use segment::{Layout, Side};

pub use crate::unix::{Addr, Credentials};
use crate::{Family, unix};

/// The shared memory family, for code that is generic over families: the options of acceptors and
/// connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shm {
    /// Options of each acceptor that the family opens.
    pub acceptor: AcceptorOptions,
    /// Options of each connection that the family makes.
    pub connector: Connector,
}

impl Shm {
    /// A family whose acceptors and connections have these options.
    #[must_use]
    pub fn new(acceptor: AcceptorOptions, connector: Connector) -> Self {
        Self { acceptor, connector }
    }
}

impl Family for Shm {
    type Addr = Addr;
    type Acceptor = Acceptor;
    type Connecting = Connecting;
    type Stream = Stream;

    fn open(&self, addr: &Addr) -> io::Result<Acceptor> {
        Acceptor::open_with(addr, &self.acceptor)
    }

    fn connect(&self, addr: &Addr, timeout: Option<Duration>) -> io::Result<Stream> {
        self.connector.open_within(addr, timeout)
    }

    fn start(&self, addr: &Addr) -> io::Result<Connecting> {
        self.connector.start(addr)
    }
}

/// Two ends of one unnamed connection, for threads of this process, with room for at least `octets` in flight
/// in each direction.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for more than 64 MiB; those of the operating system, such as too many open
/// files.
pub fn pair(octets: usize) -> io::Result<(Stream, Stream)> {
    let layout = Layout::with(octets, octets)?;
    let (one, other) = unix::pair()?;
    let file = segment::create(layout)?;
    let stream = |socket, side| -> io::Result<Stream> {
        Ok(Stream::new(socket, segment::map(&file, layout)?, layout, side, DEFAULT_SPIN))
    };
    Ok((stream(one, Side::Connector)?, stream(other, Side::Acceptor)?))
}
