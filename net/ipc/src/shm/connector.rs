//! Making connections through shared memory.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::segment::{self, Layout, Side};
use super::{Connecting, DEFAULT_RING, DEFAULT_WATCH, Stream, is_trusted};
use crate::Connecting as _;
use crate::unix::{self, Addr};

/// Makes connections; carries no octets itself.
///
/// [`Connector::connect`] needs no value; a value holds options for the connections that [`open`](Self::open) makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connector {
    timeout: Option<Duration>,
    send_queue: usize,
    recv_queue: usize,
    watch: Duration,
    any_user: bool,
}

impl Default for Connector {
    fn default() -> Self {
        Self {
            timeout: None,
            send_queue: DEFAULT_RING,
            recv_queue: DEFAULT_RING,
            watch: DEFAULT_WATCH,
            any_user: false,
        }
    }
}

impl Connector {
    /// Connects to `addr`; waits while more connections wait to be accepted there than its backlog holds.
    ///
    /// Octets may be sent at once. Whether the acceptor takes the connection shows later: if it refuses, the stream ends.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when there is no such file, [`io::ErrorKind::ConnectionRefused`] when nobody listens,
    /// [`io::ErrorKind::PermissionDenied`] when another user listens, and others of the operating system.
    pub fn connect(addr: &Addr) -> io::Result<Stream> {
        Self::new().open(addr)
    }

    /// Connects to `addr` within `timeout`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); [`io::ErrorKind::TimedOut`] when the time ran out, at once when it is zero.
    pub fn connect_timeout(addr: &Addr, timeout: Duration) -> io::Result<Stream> {
        Self::new().timeout(timeout).open(addr)
    }

    /// A connector without options, as [`connect`](Self::connect) uses.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives up when a connection was not made within this time.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How many octets may be on their way to the peer: a power of two from 4,096 to 67,108,864; others are rounded up. Default 262,144.
    #[must_use]
    pub fn send_queue(mut self, octets: usize) -> Self {
        self.send_queue = octets;
        self
    }

    /// How many octets may be on their way from the peer; as [`send_queue`](Self::send_queue).
    #[must_use]
    pub fn recv_queue(mut self, octets: usize) -> Self {
        self.recv_queue = octets;
        self
    }

    /// How long this side watches for the peer's next step before it goes to sleep, if the peer runs on another processor and
    /// watching has paid of late. Default 50 µs; zero never watches.
    #[must_use]
    pub fn watch(mut self, time: Duration) -> Self {
        self.watch = time;
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
    /// As [`connect_timeout`](Self::connect_timeout); [`io::ErrorKind::InvalidInput`] for queues that are too large.
    pub fn open(&self, addr: &Addr) -> io::Result<Stream> {
        self.open_within(addr, None)
    }

    /// Within `timeout`, or the time set.
    pub(super) fn open_within(&self, addr: &Addr, timeout: Option<Duration>) -> io::Result<Stream> {
        match timeout.or(self.timeout) {
            Some(timeout) => self.start(addr)?.complete(Some(timeout)),
            None => self.greet(unix::Connector::connect(addr)?),
        }
    }

    /// Starts to connect to `addr` with the options set, except for the time-out, without waiting.
    ///
    /// # Errors
    /// Those of the operating system that are known at once; the others come when it is completed.
    pub fn start(&self, addr: &Addr) -> io::Result<Connecting> {
        Ok(Connecting::new(unix::Connector::new().start(addr)?, *self))
    }

    /// Makes the memory and passes it to the acceptor.
    pub(super) fn greet(&self, socket: unix::Stream) -> io::Result<Stream> {
        if !self.any_user && !is_trusted(&socket.peer_credentials()?) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user listens there"));
        }
        let layout = Layout::with(self.send_queue, self.recv_queue)?;
        let file = segment::create(layout)?;
        let memory = segment::map(&file, layout)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let passed = [file.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&passed)), "there is space for one descriptor");
        let greeting = layout.greeting();
        // The queue of the socket is empty, so all of it fits, or the connection is gone.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent = rustix::io::retry_on_intr(|| {
            rustix::net::sendmsg(&socket, &[IoSlice::new(&greeting)], &mut control, flags)
        })?;
        if sent != greeting.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(Stream::new(socket, memory, layout, Side::Connector, self.watch))
    }
}
