//! Datagrams to all hosts of a network (UDP broadcast).

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use socket2::Socket;

use super::dgram::{check_kind, local_addr};
use super::dgram_options::ip_options;
use super::{Addr, DgramOptions, Interface};
use crate::dgram::{
    Batch, Data, DgramSocket, Encode, Received, Room, SendError, Wait, common_options, given_away, taken_over,
    unconnected_receives,
};
use crate::{Handle, Pollable};

/// A UDP endpoint that sends to every host of its networks, over all interfaces or one (RFC 919; IPv4 only,
/// since IPv6 has multicast instead).
///
/// A datagram reaches every endpoint of these hosts that is open at the port and at [`Addr::any`] or the
/// broadcast address. The answers reach this endpoint alone, through [`recv_from`](Self::recv_from).
///
/// ```
/// use spandrel_ipc::inet::{Addr, Broadcast, Dgram, Interface};
///
/// let listener = Dgram::open(&Addr::any(0))?;
/// let local = Interface::with_addr([127, 0, 0, 1].into())?;
/// let endpoint = Broadcast::open_on(&Addr::any(0), &local)?;
/// assert_eq!(endpoint.send(b"discover", listener.local_addr()?.port())?, 1);
/// let mut octets = [0; 32];
/// let (received, _from) = listener.recv_from(&mut octets)?;
/// assert_eq!(&octets[..received.len()], b"discover");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Broadcast {
    socket: DgramSocket,
    networks: Vec<Ipv4Addr>,
}

impl Broadcast {
    /// Opens an endpoint that sends over all interfaces that support broadcast now (not the loopback),
    /// usually at [`Addr::any`].
    ///
    /// # Errors
    /// As [`Dgram::open`](super::Dgram::open); [`io::ErrorKind::InvalidInput`] for an IPv6 address;
    /// [`io::ErrorKind::AddrNotAvailable`] if no interface supports broadcast.
    pub fn open(addr: &Addr) -> io::Result<Self> {
        Self::open_with(addr, all_networks()?, &DgramOptions::default())
    }

    /// Opens an endpoint that sends over one interface, which may be the loopback.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(addr: &Addr, interface: &Interface) -> io::Result<Self> {
        Self::open_with(addr, interface.broadcast_addrs().to_vec(), &DgramOptions::default())
    }

    /// Opens an endpoint that sends to these broadcast addresses, with the given options. The limited
    /// broadcast address 255.255.255.255, too, is valid: it goes over the interface of the default route.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(addr: &Addr, networks: Vec<Ipv4Addr>, options: &DgramOptions) -> io::Result<Self> {
        if !addr.ip().is_ipv4() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "IPv6 has no broadcast: use multicast"));
        }
        if networks.is_empty() {
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "no interface supports broadcast"));
        }
        let socket = options.bind(addr)?;
        socket.set_broadcast(true)?;
        Ok(Self { socket: DgramSocket::new(socket), networks })
    }

    /// Lists the interfaces again, and sends over all of them from now on.
    ///
    /// # Errors
    /// Any error of the operating system; [`io::ErrorKind::AddrNotAvailable`] if no interface supports
    /// broadcast. Nothing has changed then.
    pub fn refresh(&mut self) -> io::Result<()> {
        let networks = all_networks()?;
        if networks.is_empty() {
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "no interface supports broadcast"));
        }
        self.networks = networks;
        Ok(())
    }

    /// The broadcast addresses to which each datagram is sent.
    #[must_use]
    pub fn networks(&self) -> &[Ipv4Addr] {
        &self.networks
    }

    /// The bound address, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        local_addr(&self.socket)
    }

    /// Takes over a socket made elsewhere, after checking its kind; it sends over all interfaces that support
    /// broadcast now.
    fn take_over(socket: Socket) -> io::Result<Self> {
        check_kind(&socket, false)?;
        if !socket.local_addr()?.is_ipv4() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "IPv6 has no broadcast: use multicast"));
        }
        socket.set_broadcast(true)?;
        Ok(Self { socket: DgramSocket::new(socket), networks: all_networks()? })
    }
}

/// The methods that send.
impl Broadcast {
    /// Sends `data` as one datagram to `port` on every host of each of the [`networks`](Self::networks), and
    /// returns the number of networks. One system call for each.
    ///
    /// # Errors
    /// [`SendError`] of the first network, if it could be sent to none.
    pub fn send(&self, data: &[u8], port: u16) -> Result<usize, SendError> {
        self.send_to_all(Data::One(data), port, Wait::Configured)
    }

    /// Like [`send`](Self::send), with the octets of `slices` (at most 1,024 of them), in order.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_v(&self, slices: &[IoSlice<'_>], port: u16) -> Result<usize, SendError> {
        self.send_to_all(Data::Several(slices), port, Wait::Configured)
    }

    /// Like [`send`](Self::send), but never waits.
    ///
    /// # Errors
    /// As [`send`](Self::send), with [`io::ErrorKind::WouldBlock`] when it would have to.
    pub fn try_send(&self, data: &[u8], port: u16) -> Result<usize, SendError> {
        self.send_to_all(Data::One(data), port, Wait::Never)
    }

    /// Like [`send_v`](Self::send_v), but never waits.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    pub fn try_send_v(&self, slices: &[IoSlice<'_>], port: u16) -> Result<usize, SendError> {
        self.send_to_all(Data::Several(slices), port, Wait::Never)
    }

    /// Like [`send`](Self::send), but waits no longer than `timeout` for each network.
    ///
    /// # Errors
    /// As [`send`](Self::send), with [`io::ErrorKind::TimedOut`] on a timeout.
    pub fn send_within(&self, data: &[u8], port: u16, timeout: Duration) -> Result<usize, SendError> {
        self.send_to_all(Data::One(data), port, Wait::For(timeout))
    }

    fn send_to_all(&self, data: Data<'_>, port: u16, wait: Wait) -> Result<usize, SendError> {
        let (mut sent, mut first_error) = (0, None);
        for network in &self.networks {
            let to = Addr::from(SocketAddr::V4(SocketAddrV4::new(*network, port)));
            match self.socket.send(data, Some(&to.encode()?), wait) {
                Ok(()) => sent += 1,
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match first_error {
            Some(error) if sent == 0 => Err(error),
            _ => Ok(sent),
        }
    }
}

/// The broadcast addresses of all interfaces but the loopback.
fn all_networks() -> io::Result<Vec<Ipv4Addr>> {
    let mut networks = Vec::new();
    for interface in Interface::all()?.iter().filter(|interface| !interface.is_loopback()) {
        for network in interface.broadcast_addrs() {
            if !networks.contains(network) {
                networks.push(*network);
            }
        }
    }
    Ok(networks)
}

unconnected_receives!(Broadcast, Addr);
common_options!(Broadcast);
ip_options!(Broadcast);
given_away!(Broadcast);
taken_over!(Broadcast, Broadcast::take_over);
