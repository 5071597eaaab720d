//! Datagrams to groups of hosts (UDP multicast).

use std::io::{self, IoSlice, IoSliceMut};
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::net::Ipv6Addr;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use socket2::{InterfaceIndexOrAddress, Socket};

use super::dgram::{check_kind, local_addr};
use super::dgram_options::ip_options;
use super::{Addr, DgramOptions, Interface};
use crate::dgram::{
    Batch, Data, DgramSocket, Encode, Received, Room, SendError, Unconnected, Wait, common_options, given_away,
    taken_over, unconnected_receives, unconnected_sends,
};
use crate::{Handle, Pollable};

/// A UDP endpoint that sends to multicast groups and receives from those that it has joined (RFC 1112, RFC
/// 3376, RFC 3810).
///
/// Several endpoints of one host may be open at the same port; each receives every datagram of the groups
/// that it has joined. A unicast datagram to the port reaches one of them. The groups have the IP version of
/// the endpoint's address.
///
/// Nothing is received before the first [`join`](Self::join); sending needs none. By default a datagram goes
/// over the interface of the routing table, passes no router ([`set_multicast_ttl`](Self::set_multicast_ttl))
/// and reaches the members on this host too ([`set_loopback`](Self::set_loopback)).
///
/// ```
/// use std::net::SocketAddr;
///
/// use spandrel_ipc::inet::{Addr, Interface, Multicast};
///
/// let group = "239.255.40.10".parse().unwrap();
/// let local = Interface::with_addr([127, 0, 0, 1].into())?;
/// let member = Multicast::open(&Addr::any(0))?;
/// member.join(group, Some(&local))?;
///
/// let sender = Multicast::open(&Addr::any(0))?;
/// sender.set_interface(Some(&local))?;
/// sender.send_to(b"to all members", &SocketAddr::new(group, member.local_addr()?.port()).into())?;
/// let mut octets = [0; 32];
/// let (received, _from) = member.recv_from(&mut octets)?;
/// assert_eq!(&octets[..received.len()], b"to all members");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Multicast {
    pub(super) socket: DgramSocket,
}

impl Multicast {
    /// Opens an endpoint, usually at [`Addr::any`] or [`Addr::any_v6`] with the groups' port. (On Unix it may
    /// be opened at a group's own address, and then receives from that alone.)
    ///
    /// # Errors
    /// As [`Dgram::open`](super::Dgram::open).
    pub fn open(addr: &Addr) -> io::Result<Self> {
        Self::open_with(addr, &DgramOptions::default())
    }

    /// Opens an endpoint with the given options; the address is shared (`reuse_address`) in any case.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(addr: &Addr, options: &DgramOptions) -> io::Result<Self> {
        let options = options.reuse_address(true);
        // Systems derived from BSD share a port among the members of a group with this option only.
        #[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
        let options = options.reuse_port(true);
        let endpoint = Self::from_socket(options.bind(addr)?);
        endpoint.only_joined()?;
        Ok(endpoint)
    }

    /// Joins `group` on one interface, or on that of the routing table.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an address that is no group or of the other IP version;
    /// [`io::ErrorKind::AddrInUse`] if the group is joined there already; `ENODEV` without a route; `ENOBUFS`
    /// for more groups than the system allows one endpoint (Linux: `igmp_max_memberships`, 20).
    pub fn join(&self, group: IpAddr, interface: Option<&Interface>) -> io::Result<()> {
        match self.checked(group)? {
            IpAddr::V4(group) => self.socket.socket().join_multicast_v4_n(&group, &index_or_addr(interface)),
            IpAddr::V6(group) => self.socket.socket().join_multicast_v6(&group, index(interface)),
        }
    }

    /// Leaves a group that [`join`](Self::join) with the same arguments joined.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrNotAvailable`] if the group is not joined there; others as [`join`](Self::join).
    pub fn leave(&self, group: IpAddr, interface: Option<&Interface>) -> io::Result<()> {
        match self.checked(group)? {
            IpAddr::V4(group) => self.socket.socket().leave_multicast_v4_n(&group, &index_or_addr(interface)),
            IpAddr::V6(group) => self.socket.socket().leave_multicast_v6(&group, index(interface)),
        }
    }

    /// Joins `group` for datagrams of `source` only (RFC 4607). May be called for several sources.
    ///
    /// # Errors
    /// As [`join`](Self::join); [`io::ErrorKind::AddrNotAvailable`] for an interface without an IPv4 address.
    pub fn join_source(&self, group: Ipv4Addr, source: Ipv4Addr, interface: Option<&Interface>) -> io::Result<()> {
        self.checked(group.into())?;
        self.socket.socket().join_ssm_v4(&source, &group, &ipv4(interface)?)
    }

    /// Leaves a group that [`join_source`](Self::join_source) with the same arguments joined.
    ///
    /// # Errors
    /// As [`leave`](Self::leave), or [`io::ErrorKind::InvalidInput`] (Linux), if it is not joined there.
    pub fn leave_source(&self, group: Ipv4Addr, source: Ipv4Addr, interface: Option<&Interface>) -> io::Result<()> {
        self.checked(group.into())?;
        self.socket.socket().leave_ssm_v4(&source, &group, &ipv4(interface)?)
    }

    /// As [`join_source`](Self::join_source), for IPv6.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn join_source_v6(&self, group: Ipv6Addr, source: Ipv6Addr, interface: Option<&Interface>) -> io::Result<()> {
        self.checked(group.into())?;
        crate::sys::dgram::join_source_v6(self.socket.handle(), group, source, index(interface))
    }

    /// Leaves a group that [`join_source_v6`](Self::join_source_v6) with the same arguments joined.
    ///
    /// # Errors
    /// As [`leave`](Self::leave).
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn leave_source_v6(&self, group: Ipv6Addr, source: Ipv6Addr, interface: Option<&Interface>) -> io::Result<()> {
        self.checked(group.into())?;
        crate::sys::dgram::leave_source_v6(self.socket.handle(), group, source, index(interface))
    }

    /// Sends to groups over this interface, or that of the routing table (`IP_MULTICAST_IF`).
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrNotAvailable`] for an interface without an IPv4 address, if this is an IPv4
    /// endpoint; others of the operating system.
    pub fn set_interface(&self, interface: Option<&Interface>) -> io::Result<()> {
        if self.is_v6()? {
            self.socket.socket().set_multicast_if_v6(index(interface))
        } else {
            self.socket.socket().set_multicast_if_v4(&ipv4(interface)?)
        }
    }

    /// The hop limit of a datagram to a group: 0 stays on this host, 1 (the default) on the link
    /// (`IP_MULTICAST_TTL`).
    ///
    /// # Errors
    /// Any error of the operating system, for more than 255.
    pub fn set_multicast_ttl(&self, hops: u32) -> io::Result<()> {
        if self.is_v6()? {
            self.socket.socket().set_multicast_hops_v6(hops)
        } else {
            self.socket.socket().set_multicast_ttl_v4(hops)
        }
    }

    /// See [`set_multicast_ttl`](Self::set_multicast_ttl).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn multicast_ttl(&self) -> io::Result<u32> {
        if self.is_v6()? { self.socket.socket().multicast_hops_v6() } else { self.socket.socket().multicast_ttl_v4() }
    }

    /// Whether datagrams to a group are also delivered to its members on this host, including the sender
    /// (`IP_MULTICAST_LOOP`). Default true. On Unix the sender decides, on Windows the receiver.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_loopback(&self, on: bool) -> io::Result<()> {
        if self.is_v6()? {
            self.socket.socket().set_multicast_loop_v6(on)
        } else {
            self.socket.socket().set_multicast_loop_v4(on)
        }
    }

    /// See [`set_loopback`](Self::set_loopback).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn loopback(&self) -> io::Result<bool> {
        if self.is_v6()? { self.socket.socket().multicast_loop_v6() } else { self.socket.socket().multicast_loop_v4() }
    }

    /// The bound address, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        local_addr(&self.socket)
    }

    fn take_over(socket: Socket) -> io::Result<Self> {
        check_kind(&socket, false)?;
        let endpoint = Self::from_socket(socket);
        endpoint.only_joined()?;
        Ok(endpoint)
    }

    pub(super) fn from_socket(socket: Socket) -> Self {
        Self { socket: DgramSocket::new(socket) }
    }

    /// Linux would let an endpoint receive from groups that other sockets on the host have joined.
    fn only_joined(&self) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            // An IPv6 endpoint may receive from IPv4 groups too.
            self.socket.socket().set_multicast_all_v4(false)?;
            if self.is_v6()? {
                self.socket.socket().set_multicast_all_v6(false)?;
            }
        }
        Ok(())
    }

    fn checked(&self, group: IpAddr) -> io::Result<IpAddr> {
        if !group.is_multicast() {
            let error = format!("{group} is not the address of a multicast group");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        if group.is_ipv6() != self.is_v6()? {
            let error = format!("the group {group} is of another IP version than the endpoint");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        Ok(group)
    }
}

/// The index of the interface; zero lets the system choose.
fn index(interface: Option<&Interface>) -> u32 {
    interface.map_or(0, Interface::index)
}

/// The index, since interfaces without an IPv4 address have one too; on Windows the address, since some
/// interfaces reject indexes there.
fn index_or_addr(interface: Option<&Interface>) -> InterfaceIndexOrAddress {
    match interface.and_then(Interface::ipv4) {
        Some(addr) if cfg!(windows) => InterfaceIndexOrAddress::Address(addr),
        _ => InterfaceIndexOrAddress::Index(index(interface)),
    }
}

fn ipv4(interface: Option<&Interface>) -> io::Result<Ipv4Addr> {
    let Some(interface) = interface else { return Ok(Ipv4Addr::UNSPECIFIED) };
    interface.ipv4().ok_or_else(|| {
        let error = format!("the interface `{}` has no IPv4 address", interface.name());
        io::Error::new(io::ErrorKind::AddrNotAvailable, error)
    })
}

unconnected_receives!(Multicast, Addr);
unconnected_sends!(Multicast, Addr);
common_options!(Multicast);
ip_options!(Multicast);
given_away!(Multicast);
taken_over!(Multicast, Multicast::take_over);
