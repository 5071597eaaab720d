//! The UNIX-domain family: streams between processes of one host, whose addresses are paths or, on Linux,
//! abstract names.
//!
//! ```
//! use spandrel_ipc::unix::{Acceptor, Addr, Connector};
//!
//! # let folder = std::env::temp_dir().join(format!("spandrel-unix-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let addr = Addr::path(folder.join("greeter"))?;
//! let acceptor = Acceptor::open(&addr)?; // creates the socket file; dropping the acceptor removes it
//! let client = Connector::connect(&addr)?;
//! let (server, _from) = acceptor.accept()?;
//!
//! client.send_n(b"ping")?;
//! let mut octets = [0; 4];
//! server.recv_n(&mut octets)?;
//! assert_eq!(&octets, b"ping");
//! # drop(acceptor);
//! # std::fs::remove_dir(&folder)?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod acceptor;
mod addr;
mod connecting;
mod connector;
mod dgram;
mod passing;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) mod retry_timer;
mod socket_file;
mod stream;

use std::io;
use std::time::Duration;

pub use acceptor::{Acceptor, AcceptorOptions};
pub use addr::Addr;
pub use connecting::Connecting;
pub use connector::Connector;
pub use dgram::{ConnectedDgram, Dgram, DgramOptions};
pub use passing::{MAX_HANDLES, Passable, PassingError};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use stream::Credentials;
pub use stream::{Stream, pair};

use crate::Family;

/// The UNIX-domain family, for code that is generic over families: the options of acceptors and connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unix {
    /// Options of each acceptor that the family opens.
    pub acceptor: AcceptorOptions,
    /// Options of each connection that the family makes.
    pub connector: Connector,
}

impl Unix {
    /// A family whose acceptors and connections have these options.
    #[must_use]
    pub fn new(acceptor: AcceptorOptions, connector: Connector) -> Self {
        Self { acceptor, connector }
    }
}

impl Family for Unix {
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
