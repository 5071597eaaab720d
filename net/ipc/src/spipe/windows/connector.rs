//! The connector of STREAM pipes on Windows.

use std::io;
use std::time::Duration;

use spandrel_sync::time::Deadline;

use super::{Addr, Stream};
use crate::sys::named_pipe::{Pipe, is_busy, wait_for_instance};

/// Makes connections; carries no octets itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connector(());

impl Connector {
    /// Connects to `addr`, and waits while all instances are taken.
    ///
    /// The acceptor may identify this process, and cannot impersonate it (level `SecurityIdentification`).
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] without an acceptor, [`io::ErrorKind::PermissionDenied`] and others of the
    /// operating system; [`io::ErrorKind::InvalidInput`] for an address without a name.
    pub fn connect(addr: &Addr) -> io::Result<Stream> {
        connect(addr, Deadline::NEVER)
    }

    /// Like [`connect`](Self::connect), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); [`io::ErrorKind::TimedOut`] on a timeout, at once when it is zero.
    pub fn connect_timeout(addr: &Addr, timeout: Duration) -> io::Result<Stream> {
        match timeout {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            timeout => connect(addr, Deadline::after(timeout)),
        }
    }
}

fn connect(addr: &Addr, deadline: Deadline) -> io::Result<Stream> {
    let name = addr.rendezvous()?;
    loop {
        match Pipe::open(name) {
            Err(error) if is_busy(&error) => {}
            opened => return Stream::new(opened?),
        }
        let left = deadline.remaining();
        if left.is_some_and(|left| left.is_zero()) || !wait_for_instance(name, left)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}
