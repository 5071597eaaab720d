//! UDP, without a fixed peer and with one.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::Addr;
use super::dgram_options::ip_options;
use crate::dgram::{
    Batch, Connected, Data, DgramSocket, Encode, Received, Room, SendError, Unconnected, Wait, common_options,
    connected_transfers, given_away, taken_over, unconnected_receives, unconnected_sends,
};
use crate::{Handle, Pollable};

/// A UDP endpoint that names the receiver of each datagram and gets the sender of each.
///
/// It has no `send` and no `recv`: [`connect`](Self::connect) turns it into a [`ConnectedDgram`], which has.
/// It cannot broadcast (the system returns [`io::ErrorKind::PermissionDenied`]): a
/// [`Broadcast`](super::Broadcast) can.
///
/// All methods take `&self`: one thread may send while another receives. Every wait continues after a signal;
/// a timeout of [`set_recv_timeout`](Self::set_recv_timeout) then starts again. Dropping it closes it.
///
/// ```
/// use spandrel_ipc::inet::{Addr, Dgram};
///
/// let (here, there) = (Dgram::open(&Addr::loopback(0))?, Dgram::open(&Addr::loopback(0))?);
/// here.send_to(b"ping", &there.local_addr()?)?;
/// let mut octets = [0; 16];
/// let (received, from) = there.recv_from(&mut octets)?;
/// assert_eq!((&octets[..received.len()], from), (&b"ping"[..], here.local_addr()?));
/// assert!(!received.is_truncated());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Dgram {
    pub(super) socket: DgramSocket,
}

/// Options of a datagram endpoint; the plain forms use [`DgramOptions::default`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DgramOptions {
    /// Whether other endpoints may use the same port as well (`SO_REUSEADDR`). Default false; a
    /// [`Multicast`](super::Multicast) always sets it. A unicast datagram then reaches one of them only.
    pub reuse_address: bool,
    /// Whether the system distributes the datagrams of one port over all endpoints that set this option
    /// (`SO_REUSEPORT`). Default false.
    #[cfg(unix)]
    pub reuse_port: bool,
    /// Whether an IPv6 endpoint also sends to and receives from IPv4. Default false.
    pub dual_stack: bool,
    /// The send queue, in octets (`SO_SNDBUF`). Default: the system's own.
    pub send_queue: Option<usize>,
    /// The receive queue, in octets (`SO_RCVBUF`). Default: the system's own.
    pub recv_queue: Option<usize>,
}

impl DgramOptions {
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

    /// A socket at `addr` with these options.
    pub(super) fn bind(&self, addr: &Addr) -> io::Result<Socket> {
        let addr = SocketAddr::from(*addr);
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        if addr.is_ipv6() {
            socket.set_only_v6(!self.dual_stack)?;
        }
        socket.set_reuse_address(self.reuse_address)?;
        #[cfg(all(unix, not(any(target_os = "solaris", target_os = "illumos", target_os = "cygwin"))))]
        socket.set_reuse_port(self.reuse_port)?;
        if let Some(octets) = self.send_queue {
            socket.set_send_buffer_size(octets)?;
        }
        if let Some(octets) = self.recv_queue {
            socket.set_recv_buffer_size(octets)?;
        }
        socket.bind(&addr.into())?;
        Ok(socket)
    }
}

impl Dgram {
    /// Opens an endpoint at `addr`; with port 0 the system chooses one, which
    /// [`local_addr`](Self::local_addr) returns.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`], [`io::ErrorKind::AddrNotAvailable`], [`io::ErrorKind::PermissionDenied`]
    /// and others of the operating system.
    pub fn open(addr: &Addr) -> io::Result<Self> {
        Self::open_with(addr, &DgramOptions::default())
    }

    /// Opens an endpoint at `addr` with the given options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(addr: &Addr, options: &DgramOptions) -> io::Result<Self> {
        options.bind(addr).map(Self::from_socket)
    }

    /// Sets the peer: from now on this endpoint sends to it and receives from it only. Datagrams of other
    /// senders that arrived before are still received.
    ///
    /// # Errors
    /// Any error of the operating system, such as [`io::ErrorKind::NetworkUnreachable`]; the endpoint is
    /// closed then.
    pub fn connect(self, peer: &Addr) -> io::Result<ConnectedDgram> {
        ConnectedDgram::from_bound(self.socket.into_socket(), peer)
    }

    /// The bound address, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        local_addr(&self.socket)
    }

    /// Another handle to the same endpoint.
    ///
    /// # Errors
    /// Any error of the operating system, such as too many open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.socket.socket().try_clone().map(Self::from_socket)
    }

    fn take_over(socket: Socket) -> io::Result<Self> {
        check_kind(&socket, false)?;
        Ok(Self::from_socket(socket))
    }

    pub(super) fn from_socket(socket: Socket) -> Self {
        Self { socket: DgramSocket::new(socket) }
    }
}

unconnected_receives!(Dgram, Addr);
unconnected_sends!(Dgram, Addr);
common_options!(Dgram);
ip_options!(Dgram);
given_away!(Dgram);
taken_over!(Dgram, Dgram::take_over);

/// A UDP endpoint with one peer: it sends to no other and receives from no other.
///
/// It has no `send_to` and no `recv_from`. When the peer's host reports that no endpoint listens at the port
/// (ICMP), a later call returns [`io::ErrorKind::ConnectionRefused`], once. The endpoint stays usable: the
/// peer may open later.
///
/// ```
/// use spandrel_ipc::inet::{Addr, ConnectedDgram, Dgram};
///
/// let there = Dgram::open(&Addr::loopback(0))?;
/// let here = ConnectedDgram::connect(&there.local_addr()?)?;
/// here.send(b"ping")?;
/// let mut octets = [0; 16];
/// let (received, from) = there.recv_from(&mut octets)?;
/// there.send_to(&octets[..received.len()], &from)?;
/// assert_eq!(here.recv(&mut octets)?.len(), 4);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ConnectedDgram {
    socket: DgramSocket,
}

impl ConnectedDgram {
    /// Opens an endpoint at an address that the system chooses, with this peer. Nothing is sent.
    ///
    /// # Errors
    /// Any error of the operating system, such as [`io::ErrorKind::NetworkUnreachable`].
    pub fn connect(peer: &Addr) -> io::Result<Self> {
        let any = if peer.ip().is_ipv4() { Addr::any(0) } else { Addr::any_v6(0) };
        Self::connect_with(peer, &any, &DgramOptions::default())
    }

    /// Opens an endpoint at `local` with this peer.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and as [`Dgram::open`].
    pub fn connect_from(peer: &Addr, local: &Addr) -> io::Result<Self> {
        Self::connect_with(peer, local, &DgramOptions::default())
    }

    /// Opens an endpoint at `local` with this peer and the given options.
    ///
    /// # Errors
    /// As [`connect_from`](Self::connect_from).
    pub fn connect_with(peer: &Addr, local: &Addr, options: &DgramOptions) -> io::Result<Self> {
        Self::from_bound(options.bind(local)?, peer)
    }

    /// Removes the peer.
    ///
    /// # Errors
    /// Any error of the operating system; the endpoint is closed then.
    #[cfg(unix)]
    pub fn disconnect(self) -> io::Result<Dgram> {
        let socket = self.socket.into_socket();
        // Linux removes the local address too, unless it was bound explicitly; so it is bound again.
        let local = socket.local_addr()?;
        rustix::net::connect_unspec(&socket)?;
        if socket.local_addr()?.as_socket() != local.as_socket() {
            socket.bind(&local)?;
        }
        Ok(Dgram::from_socket(socket))
    }

    /// The bound address, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        local_addr(&self.socket)
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn remote_addr(&self) -> io::Result<Addr> {
        internet(&self.socket.socket().peer_addr()?)
    }

    /// Another handle to the same endpoint.
    ///
    /// # Errors
    /// Any error of the operating system, such as too many open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.socket.socket().try_clone().map(Self::from_socket)
    }

    /// The maximum length of a datagram to the peer, headers included, without fragmentation, as far as the
    /// system knows the path (`IP_MTU`, `IPV6_MTU`).
    ///
    /// # Errors
    /// Any error of the operating system.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn path_mtu(&self) -> io::Result<u32> {
        let socket = self.socket.socket();
        Ok(if self.is_v6()? { rustix::net::sockopt::ipv6_mtu(socket)? } else { rustix::net::sockopt::ip_mtu(socket)? })
    }

    fn from_bound(socket: Socket, peer: &Addr) -> io::Result<Self> {
        socket.connect(&SocketAddr::from(*peer).into())?;
        Ok(Self::from_socket(socket))
    }

    fn take_over(socket: Socket) -> io::Result<Self> {
        check_kind(&socket, true)?;
        Ok(Self::from_socket(socket))
    }

    fn from_socket(socket: Socket) -> Self {
        Self { socket: DgramSocket::new(socket) }
    }
}

connected_transfers!(ConnectedDgram, Addr);
common_options!(ConnectedDgram);
ip_options!(ConnectedDgram);
given_away!(ConnectedDgram);
taken_over!(ConnectedDgram, ConnectedDgram::take_over);

/// The address of a socket that has one.
pub(super) fn local_addr(socket: &DgramSocket) -> io::Result<Addr> {
    internet(&socket.socket().local_addr()?)
}

/// The Internet address in a socket address of the system.
fn internet(addr: &socket2::SockAddr) -> io::Result<Addr> {
    addr.as_socket().map(Addr::from).ok_or_else(|| wrong_kind("not one of the Internet family"))
}

/// Whether a socket is a bound UDP socket, connected or not.
pub(super) fn check_kind(socket: &Socket, connected: bool) -> io::Result<()> {
    if socket.r#type()? != Type::DGRAM {
        return Err(wrong_kind("not a datagram socket"));
    }
    internet(&socket.local_addr()?)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if socket.protocol()? != Some(Protocol::UDP) {
        return Err(wrong_kind("not a UDP socket"));
    }
    match (socket.peer_addr().is_ok(), connected) {
        (true, false) => Err(wrong_kind("connected to a peer")),
        (false, true) => Err(wrong_kind("not connected to a peer")),
        _ => Ok(()),
    }
}

fn wrong_kind(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("the socket is {what}"))
}
