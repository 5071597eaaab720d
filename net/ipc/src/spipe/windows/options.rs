//! Options of an acceptor of STREAM pipes.

use std::io;

use crate::sys::named_pipe::Instance;

/// Options of an [`Acceptor`](super::Acceptor); [`Acceptor::open`](super::Acceptor::open) uses
/// [`AcceptorOptions::default`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcceptorOptions {
    /// The maximum number of open accepted streams, from 1 to 253; further clients wait. Default 253.
    pub connections: u8,
    /// The maximum number of octets sent and not yet received. Default 65,536.
    pub send_queue: u32,
    /// The maximum number of octets that the peers have sent and that were not yet received. Default 65,536.
    pub recv_queue: u32,
}

/// The largest limited number of instances (one below `PIPE_UNLIMITED_INSTANCES`), less the acceptor's own
/// one.
const MOST: u8 = 253;

/// The default queue size of a pipe, each way.
pub(super) const QUEUE: u32 = 65_536;

impl Default for AcceptorOptions {
    fn default() -> Self {
        Self { connections: MOST, send_queue: QUEUE, recv_queue: QUEUE }
    }
}

impl AcceptorOptions {
    /// Sets [`connections`](Self::connections), from 1 to 253.
    #[must_use]
    pub fn connections(mut self, number: u8) -> Self {
        self.connections = number;
        self
    }

    /// Sets [`send_queue`](Self::send_queue), in octets.
    #[must_use]
    pub fn send_queue(mut self, octets: u32) -> Self {
        self.send_queue = octets;
        self
    }

    /// Sets [`recv_queue`](Self::recv_queue), in octets.
    #[must_use]
    pub fn recv_queue(mut self, octets: u32) -> Self {
        self.recv_queue = octets;
        self
    }

    /// The parameters of an instance, with room for one more than the accepted streams.
    pub(super) fn instance(&self) -> io::Result<Instance> {
        match self.connections {
            1..=MOST => Ok(Instance { limit: self.connections + 1, queues: [self.send_queue, self.recv_queue] }),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "a pipe has from 1 to 253 connections")),
        }
    }
}
