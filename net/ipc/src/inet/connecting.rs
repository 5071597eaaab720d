//! A connection that is being made.

use std::io;
use std::net::SocketAddr;

use super::connector::not_to_itself;
use super::{Addr, Stream};
use crate::socket::Attempt;
use crate::{Handle, Pollable};

/// A TCP connection that is being made; from [`Connector::start`](super::Connector::start).
///
/// The handle becomes ready for output when the attempt has ended, one way or the other. Dropping it gives the attempt up.
#[derive(Debug)]
pub struct Connecting {
    attempt: Attempt,
    target: SocketAddr,
}

impl Connecting {
    pub(super) fn new(attempt: Attempt, target: SocketAddr) -> Self {
        Self { attempt, target }
    }

    /// Where it is to lead.
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
