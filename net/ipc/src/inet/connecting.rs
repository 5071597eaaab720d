//! A pending TCP connection.

use std::io;
use std::net::SocketAddr;

use socket2::Socket;

use super::{Addr, Stream};
use crate::socket::Attempt;
use crate::{Handle, Pollable};

/// A pending TCP connection; from [`Connector::start`](super::Connector::start).
///
/// The handle becomes ready for output when the attempt has ended, with or without success. Dropping it
/// cancels the attempt.
#[derive(Debug)]
pub struct Connecting {
    attempt: Attempt,
    target: SocketAddr,
}

impl Connecting {
    pub(super) fn new(attempt: Attempt, target: SocketAddr) -> Self {
        Self { attempt, target }
    }

    /// The address to which it connects.
    #[must_use]
    pub fn target(&self) -> Addr {
        self.target.into()
    }
}

impl Pollable for Connecting {
    fn handle(&self) -> Handle<'_> {
        self.attempt.handle()
    }
}

impl crate::Connecting for Connecting {
    type Stream = Stream;

    fn try_complete(&mut self) -> io::Result<Option<Stream>> {
        match self.attempt.try_complete()? {
            Some(socket) => not_to_itself(socket, self.target).map(Some),
            None => Ok(None),
        }
    }
}

/// TCP can connect a socket to itself when no socket listens and the ephemeral port happens to be the target.
pub(super) fn not_to_itself(socket: Socket, target: SocketAddr) -> io::Result<Stream> {
    let stream = Stream::from_socket(socket)?;
    if target.ip().is_loopback() && SocketAddr::from(stream.local_addr()?) == target {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}
