//! UDP with one peer.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

use socket2::Socket;

use super::dgram::{check_kind, internet, local_addr};
use super::dgram_options::ip_options;
use super::{Addr, DgramOptions};
use crate::dgram::{
    Batch, Connected, Data, DgramSocket, Received, Room, SendError, Wait, common_options, connected_transfers,
    given_away, taken_over,
};
use crate::{Handle, Pollable};

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
    /// As [`connect`](Self::connect), and as [`Dgram::open`](super::Dgram::open).
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
    pub fn disconnect(self) -> io::Result<super::Dgram> {
        let socket = self.socket.into_socket();
        // Linux removes the local address too, unless it was bound explicitly; so it is bound again.
        let local = socket.local_addr()?;
        rustix::net::connect_unspec(&socket)?;
        if socket.local_addr()?.as_socket() != local.as_socket() {
            socket.bind(&local)?;
        }
        Ok(super::Dgram::from_socket(socket))
    }

    /// The address of this endpoint.
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

    pub(super) fn from_bound(socket: Socket, peer: &Addr) -> io::Result<Self> {
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
