//! A connection that is being made.

use std::io;
use std::net::{SocketAddr, TcpStream};

use socket2::Socket;

use super::{Addr, Stream};
use crate::{Handle, Interest, Pollable, wait_ready};

/// A TCP connection that is being made; from [`Connector::start`](super::Connector::start).
///
/// The handle becomes ready for output when the attempt has ended, one way or the other. Dropping it gives the attempt up.
#[derive(Debug)]
pub struct Connecting {
    socket: Option<Socket>,
    target: SocketAddr,
}

const TAKEN: &str = "an attempt is over once its stream or its error was given";

impl Connecting {
    /// `socket` does not block, and connecting has been started.
    pub(super) fn new(socket: Socket, target: SocketAddr) -> Self {
        Self { socket: Some(socket), target }
    }

    /// Where it is to lead.
    #[must_use]
    pub fn target(&self) -> Addr {
        self.target.into()
    }
}

impl Pollable for Connecting {
    fn handle(&self) -> Handle<'_> {
        let socket = self.socket.as_ref().expect(TAKEN);
        #[cfg(unix)]
        return std::os::fd::AsFd::as_fd(socket);
        #[cfg(windows)]
        return std::os::windows::io::AsSocket::as_socket(socket);
    }
}

impl crate::Connecting for Connecting {
    type Stream = Stream;

    fn try_complete(&mut self) -> io::Result<Option<Stream>> {
        let socket = self.socket.as_ref().ok_or_else(|| io::Error::other(TAKEN))?;
        if wait_ready(self, Interest::OUTPUT, Some(std::time::Duration::ZERO))?.is_none() {
            return Ok(None);
        }
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        let socket = self.socket.take().expect(TAKEN);
        socket.set_nonblocking(false)?;
        super::connector::not_to_itself(TcpStream::from(socket), self.target).map(Some)
    }
}
