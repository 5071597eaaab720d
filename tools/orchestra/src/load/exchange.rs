//! One request: the client's side of the paper's service (4.1, and figure 5.2).
//!
//! The client connects, receives the greeting, sends the size in four digits, and receives that many octets. It
//! closes first, so that TIME_WAIT stays on its side.
//!
//! The socket has time limits instead of a connector that waits: a request so takes eight system calls instead of
//! some twenty, and the load disturbs a server on the same machine less.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use super::FailureKind;

/// The greeting: the string of the paper's servers with its NUL, seven octets.
pub const GREETING: &[u8; 7] = b"Hello\n\0";
/// The greatest size that four digits express.
pub const MAX_OCTETS: u32 = 9999;

/// The client of one worker.
pub(super) struct Exchange {
    target: SockAddr,
    domain: Domain,
    timeout: Duration,
    has_greeting: bool,
    reply: Vec<u8>,
}

impl Exchange {
    pub(super) fn new(target: SocketAddr, timeout: Duration, has_greeting: bool) -> Self {
        let (target, domain) = (target.into(), Domain::for_address(target));
        Self { target, domain, timeout, has_greeting, reply: vec![0; MAX_OCTETS as usize] }
    }

    /// Makes one request for this many octets.
    pub(super) fn run(&mut self, octets: u32) -> Result<(), FailureKind> {
        let failed = |error: io::Error| FailureKind::from(&error);
        let socket = Socket::new(self.domain, Type::STREAM, None).map_err(failed)?;
        // On Linux, the limit of sending is also that of connecting.
        socket.set_write_timeout(Some(self.timeout)).map_err(failed)?;
        socket.set_read_timeout(Some(self.timeout)).map_err(failed)?;
        socket.connect(&self.target).map_err(failed)?;
        let mut stream = &socket;
        if self.has_greeting {
            let mut greeting = [0; GREETING.len()];
            stream.read_exact(&mut greeting).map_err(|error| ended(&error, FailureKind::NoGreeting))?;
            if greeting != *GREETING {
                return Err(FailureKind::WrongGreeting);
            }
        }
        let mut request = [0; 4];
        write!(&mut request[..], "{octets:04}").map_err(failed)?;
        stream.write_all(&request).map_err(|error| ended(&error, FailureKind::ShortReply))?;
        let reply = &mut self.reply[..octets as usize];
        stream.read_exact(reply).map_err(|error| ended(&error, FailureKind::ShortReply))?;
        match reply.iter().all(|octet| *octet == b'A') {
            true => Ok(()),
            false => Err(FailureKind::WrongReply),
        }
    }
}

/// The kind of a transfer that has stopped; `at_end` if the server closed the connection.
fn ended(error: &io::Error, at_end: FailureKind) -> FailureKind {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => at_end,
        _ => FailureKind::from(error),
    }
}
