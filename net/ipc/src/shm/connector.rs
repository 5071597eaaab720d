//! The connector for shared memory, and its pending connections.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::Stream;
use super::adaptive_wait::DEFAULT_SPIN;
use super::handshake::is_trusted;
use super::segment::{self, Layout, Side};
use crate::unix::{self, Addr};
use crate::{Connecting as _, Handle, Interest, Pollable, Prepared};

/// The default ring size in octets.
const DEFAULT_RING: usize = 256 * 1024;

/// Makes connections; carries no octets itself.
///
/// [`Connector::connect`] is an associated function; a value holds options for the connections that
/// [`open`](Self::open) makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connector {
    timeout: Option<Duration>,
    send_queue: usize,
    recv_queue: usize,
    spin: Duration,
    any_user: bool,
}

impl Default for Connector {
    fn default() -> Self {
        Self { timeout: None, send_queue: DEFAULT_RING, recv_queue: DEFAULT_RING, spin: DEFAULT_SPIN, any_user: false }
    }
}

impl Connector {
    /// Connects to `addr`; waits while the acceptor's backlog is full.
    ///
    /// Octets may be sent at once. A refusal by the acceptor shows later: the stream ends.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when there is no such file, [`io::ErrorKind::ConnectionRefused`] without a
    /// listener, [`io::ErrorKind::PermissionDenied`] when the listener belongs to another user, and others of
    /// the operating system.
    pub fn connect(addr: &Addr) -> io::Result<Stream> {
        Self::new().open(addr)
    }

    /// Connects to `addr` within `timeout`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); [`io::ErrorKind::TimedOut`] on a timeout, at once when it is zero.
    pub fn connect_timeout(addr: &Addr, timeout: Duration) -> io::Result<Stream> {
        Self::new().timeout(timeout).open(addr)
    }

    /// A connector with the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The longest time of a connection attempt. By default this library sets no limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The maximum number of octets in flight to the peer: a power of two from 4,096 to 67,108,864; others
    /// are rounded up. Default 262,144.
    #[must_use]
    pub fn send_queue(mut self, octets: usize) -> Self {
        self.send_queue = octets;
        self
    }

    /// The maximum number of octets in flight from the peer; as [`send_queue`](Self::send_queue).
    #[must_use]
    pub fn recv_queue(mut self, octets: usize) -> Self {
        self.recv_queue = octets;
        self
    }

    /// The time for which this side spins before it sleeps, if the peer runs on another processor and
    /// spinning has succeeded recently. Default 50 µs; zero never spins.
    #[must_use]
    pub fn spin(mut self, time: Duration) -> Self {
        self.spin = time;
        self
    }

    /// Whether another user may be the acceptor. Default false. The superuser always may.
    #[must_use]
    pub fn any_user(mut self, on: bool) -> Self {
        self.any_user = on;
        self
    }

    /// Connects to `addr` with the options set.
    ///
    /// # Errors
    /// As [`connect_timeout`](Self::connect_timeout); [`io::ErrorKind::InvalidInput`] for queues that are too
    /// large.
    pub fn open(&self, addr: &Addr) -> io::Result<Stream> {
        self.open_within(addr, None)
    }

    /// Within `timeout`, or the timeout set.
    pub(super) fn open_within(&self, addr: &Addr, timeout: Option<Duration>) -> io::Result<Stream> {
        match timeout.or(self.timeout) {
            Some(timeout) => self.start(addr)?.complete(Some(timeout)),
            None => self.send_handshake(unix::Connector::connect(addr)?),
        }
    }

    /// Starts to connect to `addr` with the options set, except for the timeout, without waiting.
    ///
    /// # Errors
    /// Errors of the operating system that are known at once; the others are returned on completion.
    pub fn start(&self, addr: &Addr) -> io::Result<Connecting> {
        Ok(Connecting::new(unix::Connector::new().start(addr)?, *self))
    }

    /// Creates the memory and passes it to the acceptor.
    fn send_handshake(&self, socket: unix::Stream) -> io::Result<Stream> {
        if !self.any_user && !is_trusted(&socket.peer_credentials()?) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the listener belongs to another user"));
        }
        let layout = Layout::with(self.send_queue, self.recv_queue)?;
        let file = segment::create(layout)?;
        let memory = segment::map(&file, layout)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let passed = [file.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&passed)), "there is space for one descriptor");
        let handshake = layout.handshake();
        // The queue of the socket is empty, so all of it fits, or the connection has ended.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent = rustix::io::retry_on_intr(|| {
            rustix::net::sendmsg(&socket, &[IoSlice::new(&handshake)], &mut control, flags)
        })?;
        if sent != handshake.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(Stream::new(socket, memory, layout, Side::Connector, self.spin))
    }
}

/// A pending connection through shared memory; from [`Connector::start`].
#[derive(Debug)]
pub struct Connecting {
    socket: unix::Connecting,
    connector: Connector,
}

impl Connecting {
    fn new(socket: unix::Connecting, connector: Connector) -> Self {
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
