//! Waiting for connections.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};
use spandrel_sync::atomic::{AtomicBool, Ordering};

use super::{Addr, Stream};
use crate::{Accept, Handle, Pollable};

/// Waits for connections at an address; carries no octets itself.
///
/// Several threads may accept at once. Dropping it stops listening.
#[derive(Debug)]
pub struct Acceptor {
    listener: TcpListener,
    shut_down: AtomicBool,
}

/// What an [`Acceptor`] can be opened with; [`AcceptorOptions::default`] is what [`Acceptor::open`] uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcceptorOptions {
    /// How many connections may wait to be accepted. Default 1024; the system may have a lower limit.
    pub backlog: u16,
    /// Whether an address may be opened again at once after its last use (`SO_REUSEADDR`). Default true on Unix.
    /// Without effect on Windows, where the option would let two acceptors share one address.
    pub reuse_address: bool,
    /// Whether an IPv6 acceptor also takes IPv4 connections. Default false.
    pub dual_stack: bool,
    /// The send queue of accepted streams, in octets (`SO_SNDBUF`). Default: the system's own.
    pub send_queue: Option<usize>,
    /// The receive queue of accepted streams, in octets (`SO_RCVBUF`). Default: the system's own.
    pub recv_queue: Option<usize>,
}

impl Default for AcceptorOptions {
    fn default() -> Self {
        Self { backlog: 1024, reuse_address: true, dual_stack: false, send_queue: None, recv_queue: None }
    }
}

impl AcceptorOptions {
    /// Sets [`backlog`](Self::backlog).
    #[must_use]
    pub fn backlog(mut self, connections: u16) -> Self {
        self.backlog = connections;
        self
    }

    /// Sets [`reuse_address`](Self::reuse_address).
    #[must_use]
    pub fn reuse_address(mut self, on: bool) -> Self {
        self.reuse_address = on;
        self
    }

    /// Sets [`dual_stack`](Self::dual_stack).
    #[must_use]
    pub fn dual_stack(mut self, on: bool) -> Self {
        self.dual_stack = on;
        self
    }

    /// Sets [`send_queue`](Self::send_queue).
    #[must_use]
    pub fn send_queue(mut self, octets: usize) -> Self {
        self.send_queue = Some(octets);
        self
    }

    /// Sets [`recv_queue`](Self::recv_queue).
    #[must_use]
    pub fn recv_queue(mut self, octets: usize) -> Self {
        self.recv_queue = Some(octets);
        self
    }
}

impl Acceptor {
    /// Starts to listen at `addr`; port 0 lets the system choose one, which [`local_addr`](Self::local_addr) tells.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`], [`io::ErrorKind::AddrNotAvailable`], [`io::ErrorKind::PermissionDenied`] and
    /// others of the operating system.
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
        // Accepted streams inherit these; they must be set before listening to govern the TCP window scale.
        if let Some(octets) = options.send_queue {
            socket.set_send_buffer_size(octets)?;
        }
        if let Some(octets) = options.recv_queue {
            socket.set_recv_buffer_size(octets)?;
        }
        socket.bind(&addr.into())?;
        socket.listen(i32::from(options.backlog))?;
        Ok(Self { listener: socket.into(), shut_down: AtomicBool::new(false) })
    }

    /// Waits for a connection and tells where it came from.
    ///
    /// Goes on after a signal, and after a connection that its peer gave up before it was accepted.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] once [`shutdown`](Self::shutdown) was called. Any other error, such as too many
    /// open files, concerns this call only: the connection waits on and may be accepted later.
    pub fn accept(&self) -> io::Result<(Stream, Addr)> {
        loop {
            if self.is_shut_down() {
                return Err(shut_down());
            }
            match self.listener.accept() {
                Ok(_) if self.is_shut_down() => {
                    // Woken by a connection to ourselves; another thread may be waiting for the same.
                    let _ = self.wake();
                }
                Ok((stream, from)) => return Ok((Stream::from_std(stream), from.into())),
                Err(_) if self.is_shut_down() => {}
                Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Stops accepting: every [`accept`](Self::accept), waiting or yet to come, ends with
    /// [`io::ErrorKind::NotConnected`]. Connections not yet accepted are reset. Calling it again does nothing.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn shutdown(&self) -> io::Result<()> {
        if self.shut_down.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        self.wake()
    }

    /// Linux ends a waiting `accept` when the listening socket is shut down.
    #[cfg(target_os = "linux")]
    fn wake(&self) -> io::Result<()> {
        socket2::SockRef::from(&self.listener).shutdown(std::net::Shutdown::Both)
    }

    /// Where shutting down a listening socket does not end a waiting `accept`, a connection to itself does. The thread
    /// that it wakes wakes the next; the last such connection waits unaccepted until the acceptor is dropped.
    #[cfg(not(target_os = "linux"))]
    fn wake(&self) -> io::Result<()> {
        let mut addr = SocketAddr::from(self.local_addr()?);
        if addr.ip().is_unspecified() {
            addr.set_ip(match addr {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        std::net::TcpStream::connect_timeout(&addr, std::time::Duration::from_secs(1)).map(drop)
    }

    /// Whether [`shutdown`](Self::shutdown) was called.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::SeqCst)
    }

    /// Where it listens, with the port that the system chose if it was asked to.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        self.listener.local_addr().map(Addr::from)
    }

    /// Whether `accept` waits for a connection or fails at once with [`io::ErrorKind::WouldBlock`].
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.listener.set_nonblocking(on)
    }
}

fn shut_down() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the acceptor was shut down")
}

impl Accept for Acceptor {
    type Addr = Addr;
    type Stream = Stream;

    fn accept(&self) -> io::Result<(Stream, Addr)> {
        Acceptor::accept(self)
    }

    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        Acceptor::set_nonblocking(self, on)
    }

    fn shutdown(&self) -> io::Result<()> {
        Acceptor::shutdown(self)
    }

    fn local_addr(&self) -> io::Result<Addr> {
        Acceptor::local_addr(self)
    }
}

impl Pollable for Acceptor {
    fn handle(&self) -> Handle<'_> {
        #[cfg(unix)]
        return std::os::fd::AsFd::as_fd(&self.listener);
        #[cfg(windows)]
        return std::os::windows::io::AsSocket::as_socket(&self.listener);
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for Acceptor {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsSocket for Acceptor {
    fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
        self.listener.as_socket()
    }
}
