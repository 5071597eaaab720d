//! A pending connection through shared memory.

use std::io;

use super::{Connector, Stream};
use crate::{Handle, Interest, Pollable, Prepared, unix};

/// A pending connection through shared memory; from [`Connector::start`].
#[derive(Debug)]
pub struct Connecting {
    socket: unix::Connecting,
    connector: Connector,
}

impl Connecting {
    pub(super) fn new(socket: unix::Connecting, connector: Connector) -> Self {
        Self { socket, connector }
    }
}

impl Pollable for Connecting {
    fn handle(&self) -> Handle<'_> {
        self.socket.handle()
    }
    fn is_plain(&self) -> bool {
        self.socket.is_plain()
    }
    fn prepare(&self, wanted: Interest) -> Prepared {
        self.socket.prepare(wanted)
    }
    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        self.socket.interpret(seen, wanted)
    }
}

impl crate::Connecting for Connecting {
    type Stream = Stream;

    fn try_complete(&mut self) -> io::Result<Option<Stream>> {
        match self.socket.try_complete()? {
            Some(socket) => self.connector.send_handshake(socket).map(Some),
            None => Ok(None),
        }
    }
}
