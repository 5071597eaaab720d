//! STREAM pipes: bidirectional pipes between processes of one host, made one for each connection.
//!
//! System V Release 4 attached a pipe to a path with `fattach` and gave each process that opened the path its
//! own pipe (the module `connld`). Here an acceptor listens at the path, makes a socketpair for each process
//! that connects, passes one end to it, and keeps the other; the listening connection is closed. Neither end
//! has a name, and either may be passed on (`unix::Passable`). [`pair`] makes both ends in one process.
//!
//! On Windows they are instances of a named pipe, `\\.\pipe\name`: `Acceptor`, `Connector` and `Stream` have
//! the same methods there, as far as they apply. Facilities that Windows lacks are absent from the interface.
//! No call waits for a pipe and a socket together, so these endpoints are not `Pollable` and belong to no
//! reactor, and there is neither a `Family` nor a `Connecting`. A pipe is shut down in both directions or not
//! at all, so there is no `close_writer`. An end cannot be passed on.
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

#[cfg(unix)]
mod acceptor;
#[cfg(unix)]
mod addr;
#[cfg(unix)]
mod connecting;
#[cfg(unix)]
mod family;
#[cfg(unix)]
mod stream;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use crate::unix::AcceptorOptions;
#[cfg(unix)]
pub use acceptor::Acceptor;
#[cfg(unix)]
pub use addr::Addr;
#[cfg(unix)]
pub use connecting::{Connecting, Connector};
#[cfg(unix)]
pub use family::Spipe;
#[cfg(unix)]
pub use stream::{Stream, pair};
#[cfg(windows)]
pub use windows::{Acceptor, AcceptorOptions, Addr, Connector, Stream, pair};
