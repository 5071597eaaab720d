//! What an acceptor of STREAM pipes can be opened with.

use std::io;

use crate::sys::named_pipe::Instance;

/// What an [`Acceptor`](super::Acceptor) can be opened with; [`AcceptorOptions::default`] is what
/// [`Acceptor::open`](super::Acceptor::open) uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcceptorOptions {
    /// How many of the accepted streams there may be at a time, from 1 to 253; whoever comes then waits. Default 253.
    pub connections: u8,
    /// How much the system keeps of what was sent and not yet received, in octets. Default 65,536.
    pub send_queue: u32,
    /// How much the system keeps of what the peers have sent. Default 65,536.
    pub recv_queue: u32,
}

/// The most instances that are fewer than any number (`PIPE_UNLIMITED_INSTANCES`), but for the acceptor's own one.
const MOST: u8 = 253;

/// What a pipe keeps, each way, if nobody says otherwise.
pub(super) const QUEUE: u32 = 65_536;

impl Default for AcceptorOptions {
    fn default() -> Self {
        Self { connections: MOST, send_queue: QUEUE, recv_queue: QUEUE }
    }
}

impl AcceptorOptions {
    /// Sets [`connections`](Self::connections).
    #[must_use]
    pub fn connections(mut self, number: u8) -> Self {
        self.connections = number;
        self
    }

    /// Sets [`send_queue`](Self::send_queue).
    #[must_use]
    pub fn send_queue(mut self, octets: u32) -> Self {
        self.send_queue = octets;
        self
    }

    /// Sets [`recv_queue`](Self::recv_queue).
    #[must_use]
    pub fn recv_queue(mut self, octets: u32) -> Self {
        self.recv_queue = octets;
        self
    }

    /// As instances are made with it, one more than are given to others.
    pub(super) fn instance(&self) -> io::Result<Instance> {
        match self.connections {
            1..=MOST => Ok(Instance { limit: self.connections + 1, queues: [self.send_queue, self.recv_queue] }),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "a pipe has from 1 to 253 connections")),
        }
    }
}
