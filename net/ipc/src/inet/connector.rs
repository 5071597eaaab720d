//! Connecting to a TCP acceptor.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::connecting::not_to_itself;
#[cfg(unix)]
use super::ip;
use super::{Addr, Connecting, Stream, eyeballs};
#[cfg(target_os = "linux")]
use super::{Interface, interface::Device};
use crate::Connecting as _;
use crate::socket::{Attempt, connect, set_queues};

/// Makes connections; carries no octets itself.
///
/// [`Connector::connect`] is an associated function; a value holds options for the connections that
/// [`open`](Self::open) makes.
///
/// ```
/// use std::time::Duration;
/// use spandrel_ipc::inet::{Acceptor, Addr, Connector};
///
/// let acceptor = Acceptor::open(&Addr::loopback(0))?;
/// let connector = Connector::new().send_queue(65_536).no_delay(true).timeout(Duration::from_secs(5));
/// let stream = connector.open(&acceptor.local_addr()?)?;
/// assert!(stream.no_delay()?);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connector {
    timeout: Option<Duration>,
    local: Option<Addr>,
    send_queue: Option<usize>,
    recv_queue: Option<usize>,
    no_delay: bool,
    stagger: Option<Duration>,
    #[cfg(unix)]
    tos: Option<u8>,
    #[cfg(target_os = "linux")]
    mark: Option<u32>,
    #[cfg(target_os = "linux")]
    device: Option<Device>,
}

impl Connector {
    /// Connects to `addr`, with the timeout of the system.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`], [`io::ErrorKind::HostUnreachable`], [`io::ErrorKind::TimedOut`]
    /// and others of the operating system.
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

    /// Connects from this address; its port may be 0.
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

    /// The size of the receive queue in octets (`SO_RCVBUF`), set before connecting so that it governs the
    /// TCP window scale.
    #[must_use]
    pub fn recv_queue(mut self, octets: usize) -> Self {
        self.recv_queue = Some(octets);
        self
    }

    /// Whether small messages are sent at once instead of being coalesced (`TCP_NODELAY`).
    #[must_use]
    pub fn no_delay(mut self, on: bool) -> Self {
        self.no_delay = on;
        self
    }

    /// The delay of [`open_any`](Self::open_any) before it starts the next attempt concurrently. Default 250
    /// ms, as RFC 8305 recommends.
    #[must_use]
    pub fn stagger(mut self, time: Duration) -> Self {
        self.stagger = Some(time);
        self
    }

    /// The traffic class, set before the first packet; see [`Stream::set_tos`].
    #[cfg(unix)]
    #[must_use]
    pub fn tos(mut self, class: u8) -> Self {
        self.tos = Some(class);
        self
    }

    /// The mark, set before the first packet; see [`Stream::set_mark`].
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn mark(mut self, mark: u32) -> Self {
        self.mark = Some(mark);
        self
    }

    /// Connects over this interface; see [`Stream::set_device`].
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn device(mut self, interface: &Interface) -> Self {
        self.device = Some(Device::new(interface));
        self
    }

    /// Connects to the first of `addrs` that answers (RFC 8305, "Happy Eyeballs"). Starts with the first
    /// address, starts the next one when an attempt fails or takes long ([`stagger`](Self::stagger)),
    /// alternates IP versions, and cancels the other attempts once there is a connection. The
    /// [`timeout`](Self::timeout) covers all attempts together.
    ///
    /// # Errors
    /// If all fail, as [`open`](Self::open) to the first of them; [`io::ErrorKind::InvalidInput`] for none.
    pub fn open_any(&self, addrs: &[Addr]) -> io::Result<Stream> {
        let stagger = self.stagger.unwrap_or(eyeballs::STAGGER);
        eyeballs::connect(addrs, stagger, self.timeout, &|addr| self.start(addr))
    }

    /// Connects to the first address of `host`, a name or a number, that answers. Name resolution does not
    /// count towards the [`timeout`](Self::timeout).
    ///
    /// # Errors
    /// As [`Addr::resolve`] and [`open_any`](Self::open_any).
    pub fn open_host(&self, host: &str, port: u16) -> io::Result<Stream> {
        self.open_any(&Addr::resolve(host, port)?)
    }

    /// Connects to `addr` with the options set.
    ///
    /// # Errors
    /// As [`connect_timeout`](Self::connect_timeout).
    pub fn open(&self, addr: &Addr) -> io::Result<Stream> {
        match self.timeout {
            Some(Duration::ZERO) => return Err(io::ErrorKind::TimedOut.into()),
            Some(timeout) => return self.start(addr)?.complete(Some(timeout)),
            None => {}
        }
        let (socket, target) = self.socket(addr)?;
        connect(&socket, &target.into())?;
        not_to_itself(socket, target)
    }

    /// Starts to connect to `addr` with the options set, except for the timeout, without waiting.
    ///
    /// # Errors
    /// Errors of the operating system that are known at once; the others are returned on completion.
    pub fn start(&self, addr: &Addr) -> io::Result<Connecting> {
        let (socket, target) = self.socket(addr)?;
        Ok(Connecting::new(Attempt::start(socket, &target.into())?, target))
    }

    /// A socket with the options set.
    fn socket(&self, addr: &Addr) -> io::Result<(Socket, SocketAddr)> {
        let target = SocketAddr::from(*addr);
        let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
        self.prepare(&socket)?;
        Ok((socket, target))
    }

    fn prepare(&self, socket: &Socket) -> io::Result<()> {
        set_queues(socket, self.send_queue, self.recv_queue)?;
        if self.no_delay {
            socket.set_tcp_nodelay(true)?;
        }
        #[cfg(unix)]
        if let Some(class) = self.tos {
            ip::set_tos(socket, class)?;
        }
        #[cfg(target_os = "linux")]
        if let Some(mark) = self.mark {
            socket.set_mark(mark)?;
        }
        #[cfg(target_os = "linux")]
        if let Some(device) = &self.device {
            socket.bind_device(Some(device.name()))?;
        }
        match self.local {
            Some(local) => socket.bind(&SocketAddr::from(local).into()),
            None => Ok(()),
        }
    }
}
