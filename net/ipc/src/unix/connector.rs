//! Making connections of the UNIX-domain family.

use std::io;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::{Addr, Connecting, Stream};
use crate::Connecting as _;
use crate::socket::set_queues;

/// Makes connections; carries no octets itself.
///
/// [`Connector::connect`] is an associated function; a value holds options for the connections that
/// [`open`](Self::open) makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connector {
    timeout: Option<Duration>,
    local: Option<Addr>,
    send_queue: Option<usize>,
    recv_queue: Option<usize>,
}

impl Connector {
    /// Connects to `addr`; waits while the listener's queue is full.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when there is no such file, [`io::ErrorKind::ConnectionRefused`] without a
    /// listener, [`io::ErrorKind::PermissionDenied`] and others of the operating system.
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

    /// Connects from this address, which the peer can query; the caller removes the file created for it.
    #[must_use]
    pub fn local(mut self, addr: Addr) -> Self {
        self.local = Some(addr);
        self
    }

    /// The size of the send queue in octets (`SO_SNDBUF`), set before connecting.
    #[must_use]
    pub fn send_queue(mut self, octets: usize) -> Self {
        self.send_queue = Some(octets);
        self
    }

    /// The size of the receive queue in octets (`SO_RCVBUF`), set before connecting.
    #[must_use]
    pub fn recv_queue(mut self, octets: usize) -> Self {
        self.recv_queue = Some(octets);
        self
    }

    /// Connects to `addr` with the options set.
    ///
    /// # Errors
    /// As [`connect_timeout`](Self::connect_timeout).
    pub fn open(&self, addr: &Addr) -> io::Result<Stream> {
        self.open_within(addr, None)
    }

    /// Within `timeout`, or the timeout set.
    pub(super) fn open_within(&self, addr: &Addr, timeout: Option<Duration>) -> io::Result<Stream> {
        match timeout.or(self.timeout) {
            Some(Duration::ZERO) => Err(io::ErrorKind::TimedOut.into()),
            Some(timeout) => self.start(addr)?.complete(Some(timeout)),
            None => {
                let target = addr.to_system()?;
                let socket = self.socket()?;
                crate::socket::connect(&socket, &target)?;
                Stream::from_socket(socket)
            }
        }
    }

    /// Starts to connect to `addr` with the options set, except for the timeout, without waiting.
    ///
    /// # Errors
    /// Errors of the operating system that are known at once; the others are returned on completion.
    pub fn start(&self, addr: &Addr) -> io::Result<Connecting> {
        Connecting::start(self.socket()?, addr.to_system()?)
    }

    /// A socket with the options set.
    fn socket(&self) -> io::Result<Socket> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        set_queues(&socket, self.send_queue, self.recv_queue)?;
        if let Some(local) = &self.local {
            socket.bind(&local.to_system()?)?;
        }
        Ok(socket)
    }
}
