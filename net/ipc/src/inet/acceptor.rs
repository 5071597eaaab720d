//! Listening for TCP connections.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

use super::stream::DOMAINS;
use super::{Addr, Stream};
use crate::socket::{Expected, Listener, OwnedHandle, acceptor, adopt, set_queues};

/// Waits for connections at an address; carries no octets itself.
///
/// Several threads may accept at once. Dropping it stops listening.
#[derive(Debug)]
pub struct Acceptor {
    listener: Listener,
}

/// Options of an [`Acceptor`]; [`Acceptor::open`] uses [`AcceptorOptions::default`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcceptorOptions {
    /// The maximum number of connections that wait to be accepted. Default 1024; the system may have a lower
    /// limit.
    pub backlog: u16,
    /// Whether an address can be reopened immediately after its last use (`SO_REUSEADDR`). Default true on
    /// Unix. Without effect on Windows, where the option would let two acceptors share one address.
    pub reuse_address: bool,
    /// Whether several acceptors that all set this option may be open at one address and share the
    /// connections (`SO_REUSEPORT`): one for each thread or process. Linux spreads connections evenly;
    /// connections queued at an acceptor that is closed are lost. Default false.
    #[cfg(unix)]
    pub reuse_port: bool,
    /// Whether an IPv6 acceptor also takes IPv4 connections. Default false.
    pub dual_stack: bool,
    /// The send queue of accepted streams, in octets (`SO_SNDBUF`). Default: the system's own.
    pub send_queue: Option<usize>,
    /// The receive queue of accepted streams, in octets (`SO_RCVBUF`). Default: the system's own.
    pub recv_queue: Option<usize>,
}

impl Default for AcceptorOptions {
    fn default() -> Self {
        Self {
            backlog: 1024,
            reuse_address: true,
            #[cfg(unix)]
            reuse_port: false,
            dual_stack: false,
            send_queue: None,
            recv_queue: None,
        }
    }
}

impl AcceptorOptions {
    /// Sets [`backlog`](Self::backlog), in connections.
    #[must_use]
    pub fn backlog(mut self, connections: u16) -> Self {
        self.backlog = connections;
        self
    }

    /// Sets [`reuse_address`](Self::reuse_address), the option `SO_REUSEADDR`.
    #[must_use]
    pub fn reuse_address(mut self, on: bool) -> Self {
        self.reuse_address = on;
        self
    }

    /// Sets [`reuse_port`](Self::reuse_port), the option `SO_REUSEPORT`.
    #[cfg(unix)]
    #[must_use]
    pub fn reuse_port(mut self, on: bool) -> Self {
        self.reuse_port = on;
        self
    }

    /// Sets [`dual_stack`](Self::dual_stack): whether IPv4 is included.
    #[must_use]
    pub fn dual_stack(mut self, on: bool) -> Self {
        self.dual_stack = on;
        self
    }

    /// Sets [`send_queue`](Self::send_queue), in octets (`SO_SNDBUF`).
    #[must_use]
    pub fn send_queue(mut self, octets: usize) -> Self {
        self.send_queue = Some(octets);
        self
    }

    /// Sets [`recv_queue`](Self::recv_queue), in octets (`SO_RCVBUF`).
    #[must_use]
    pub fn recv_queue(mut self, octets: usize) -> Self {
        self.recv_queue = Some(octets);
        self
    }
}

impl Acceptor {
    /// Starts to listen at `addr`; with port 0 the system chooses one, which [`local_addr`](Self::local_addr)
    /// returns.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`], [`io::ErrorKind::AddrNotAvailable`], [`io::ErrorKind::PermissionDenied`]
    /// and others of the operating system.
    pub fn open(addr: &Addr) -> io::Result<Self> {
        Self::open_with(addr, &AcceptorOptions::default())
    }

    /// Starts to listen at `addr` with the given options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(addr: &Addr, options: &AcceptorOptions) -> io::Result<Self> {
        let addr = SocketAddr::from(*addr);
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
        if addr.is_ipv6() {
            socket.set_only_v6(!options.dual_stack)?;
        }
        if cfg!(unix) {
            socket.set_reuse_address(options.reuse_address)?;
        }
        #[cfg(unix)]
        if options.reuse_port {
            socket.set_reuse_port(true)?;
        }
        // Accepted streams inherit these; to affect the TCP window scale they must be set before listening.
        set_queues(&socket, options.send_queue, options.recv_queue)?;
        socket.bind(&addr.into())?;
        Ok(Self { listener: Listener::listen(socket, options.backlog)? })
    }

    /// As [`accept`](Self::accept), without the peer's address: the system copies it for nothing on Linux, and needs a
    /// further system call for it on Windows.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn accept_unnamed(&self) -> io::Result<Stream> {
        Stream::from_accepted(self.listener.accept_unnamed()?, &self.listener)
    }

    /// Takes over a connection that was accepted at this endpoint by other means, such as a completed operation of an
    /// `io_uring`. No system call checks that.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn adopt(&self, accepted: OwnedHandle) -> io::Result<Stream> {
        Stream::from_socket(Socket::from(accepted))
    }

    /// Lets accepted streams send small segments without delay (`TCP_NODELAY`) from the beginning, where they inherit
    /// that: on Linux, and on Windows, where they have the properties of the listening socket.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_no_delay(&self, on: bool) -> io::Result<()> {
        self.listener.socket().set_tcp_nodelay(on)
    }

    /// Among acceptors that share an address ([`reuse_port`](AcceptorOptions::reuse_port)), this one gets the
    /// connections whose packets arrive on this processor (`SO_INCOMING_CPU`).
    ///
    /// # Errors
    /// Any error of the operating system.
    #[cfg(target_os = "linux")]
    pub fn set_incoming_cpu(&self, cpu: usize) -> io::Result<()> {
        self.listener.socket().set_cpu_affinity(cpu)
    }
}

acceptor!(Acceptor, Stream, Addr, |(socket, from)| Ok((Stream::from_socket(socket)?, Addr::from_system(&from)?)));

impl From<Acceptor> for OwnedHandle {
    fn from(acceptor: Acceptor) -> Self {
        acceptor.listener.into_socket().into()
    }
}

/// Takes over a listening socket made elsewhere, such as one inherited from another process.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for a handle that is not a stream socket of the Internet family, or does
/// not listen; it is closed.
impl TryFrom<OwnedHandle> for Acceptor {
    type Error = io::Error;

    fn try_from(handle: OwnedHandle) -> io::Result<Self> {
        Ok(Self { listener: Listener::from_listening(adopt(handle, LISTENING)?) })
    }
}

const LISTENING: Expected = Expected { domains: DOMAINS, kind: Type::STREAM, listening: true };
