//! Ancillary data of UDP: destination and interface of received datagrams, source and interface of sent ones
//! (Linux).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use socket2::{MsgHdr, SockAddr};
use spandrel_sync::time::Deadline;

use super::{Addr, Dgram, Interface, Multicast};
use crate::dgram::{DgramSocket, Encode, Received, SendError, Wait, retry_within};
use crate::sys::dgram::{names, recv_with_control, set_option};
use crate::{Interest, Pollable, wait_ready};

/// A received datagram with its ancillary data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arrival {
    /// The number of octets in the buffer, and whether the datagram was truncated.
    pub received: Received,
    /// The address from which the datagram was sent.
    pub from: Addr,
    /// The address of this host, or the group, to which it was sent. Only with `set_recv_destination`.
    pub to: Option<IpAddr>,
    /// The index of the interface on which it arrived. Only with `set_recv_destination`.
    pub interface: Option<u32>,
    /// The length of each datagram but the last, if the system coalesced several datagrams of one sender
    /// ([`Dgram::set_coalesce`]).
    pub segment: Option<usize>,
}

/// The source address and the interface of a datagram to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Via {
    from: Option<IpAddr>,
    interface: u32,
}

impl Via {
    /// Sends from this address of the host, for example from the one to which a request was sent.
    #[must_use]
    pub fn from(addr: IpAddr) -> Self {
        Self { from: Some(addr), interface: 0 }
    }

    /// Sends over this interface in place of the one that the routes choose.
    #[must_use]
    pub fn interface(mut self, interface: &Interface) -> Self {
        self.interface = interface.index();
        self
    }
}

/// Receiving with ancillary data.
macro_rules! arrivals {
    ($type:ty) => {
        /// Receiving with ancillary data.
        impl $type {
            /// Whether the system reports the destination and the interface of received datagrams
            /// (`IP_PKTINFO`, `IPV6_RECVPKTINFO`); see [`recv_arrival`](Self::recv_arrival).
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn set_recv_destination(&self, on: bool) -> io::Result<()> {
                set_recv_destination(&self.socket, self.local_addr()?.ip().is_ipv6(), on)
            }

            /// Receives one datagram with its ancillary data; waits while none is queued. One system call.
            ///
            /// # Errors
            /// As [`recv_from`](Self::recv_from).
            pub fn recv_arrival(&self, buffer: &mut [u8]) -> io::Result<Arrival> {
                recv_arrival(&self.socket, buffer, Wait::Configured)
            }

            /// Like [`recv_arrival`](Self::recv_arrival), but never waits.
            ///
            /// # Errors
            /// As [`try_recv_from`](Self::try_recv_from).
            pub fn try_recv_arrival(&self, buffer: &mut [u8]) -> io::Result<Arrival> {
                recv_arrival(&self.socket, buffer, Wait::Never)
            }

            /// Like [`recv_arrival`](Self::recv_arrival), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// As [`recv_from_within`](Self::recv_from_within).
            pub fn recv_arrival_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<Arrival> {
                recv_arrival(&self.socket, buffer, Wait::For(timeout))
            }
        }
    };
}

arrivals!(Dgram);
arrivals!(Multicast);

/// Sending with control messages.
impl Dgram {
    /// Like [`send_to`](Self::send_to), with the given source and interface. A server that is open at
    /// [`Addr::any`] answers from the address of the request with `Via::from(arrival.to)`.
    ///
    /// # Errors
    /// As [`send_to`](Self::send_to); [`io::ErrorKind::InvalidInput`] for an address of the other IP version;
    /// others of the operating system for an address that does not belong to this host.
    pub fn send_to_via(&self, data: &[u8], to: &Addr, via: &Via) -> Result<(), SendError> {
        let control = self.packet_info(via)?;
        send_with_control(&self.socket, data, to, &control)
    }

    /// Sends `data` to `to` as several datagrams of `segment` octets each (the last may be shorter), split by
    /// the system or the network interface: generic segmentation offload (`UDP_SEGMENT`, udp(7)). One system
    /// call.
    ///
    /// # Errors
    /// As [`send_to`](Self::send_to): [`SendError::TooLong`] also if `data` is longer than 65,507 octets or a
    /// segment longer than the path's MTU allows, [`io::ErrorKind::InvalidInput`] for more segments than the
    /// system takes (64 or 128) or segments of no octets.
    pub fn send_segments_to(&self, data: &[u8], segment: u16, to: &Addr) -> Result<(), SendError> {
        if segment == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "segments of no octets").into());
        }
        let mut control = Vec::with_capacity(CONTROL);
        push_message(&mut control, names::SOL_UDP, names::UDP_SEGMENT, &segment.to_ne_bytes());
        send_with_control(&self.socket, data, to, &control)
    }

    /// Whether the system coalesces datagrams of one sender and one length into one result of
    /// [`recv_arrival`](Self::recv_arrival), of up to 65,535 octets: generic receive offload (`UDP_GRO`,
    /// udp(7)). The other receive methods cannot tell such datagrams apart.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn set_coalesce(&self, on: bool) -> io::Result<()> {
        set_option(self.socket.handle(), names::SOL_UDP, names::UDP_GRO, &i32::from(on).to_ne_bytes())
    }

    /// The control message with source and interface.
    fn packet_info(&self, via: &Via) -> io::Result<Vec<u8>> {
        let v6 = self.local_addr()?.ip().is_ipv6();
        let mut control = Vec::with_capacity(CONTROL);
        match (via.from, v6) {
            (Some(IpAddr::V6(_)), false) => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "an IPv6 source address on an IPv4 endpoint"));
            }
            (from, true) => {
                let from = match from {
                    Some(IpAddr::V6(from)) => from,
                    Some(IpAddr::V4(from)) => from.to_ipv6_mapped(),
                    None => Ipv6Addr::UNSPECIFIED,
                };
                let info = [&from.octets()[..], &via.interface.to_ne_bytes()].concat();
                push_message(&mut control, names::IPPROTO_IPV6, names::IPV6_PKTINFO, &info);
            }
            (from, false) => {
                let from = if let Some(IpAddr::V4(from)) = from { from } else { Ipv4Addr::UNSPECIFIED };
                let info = [&via.interface.to_ne_bytes()[..], &from.octets(), &[0; 4]].concat();
                push_message(&mut control, names::IPPROTO_IP, names::IP_PKTINFO, &info);
            }
        }
        Ok(control)
    }
}

fn set_recv_destination(socket: &DgramSocket, v6: bool, on: bool) -> io::Result<()> {
    let on = i32::from(on).to_ne_bytes();
    let (level, name) =
        if v6 { (names::IPPROTO_IPV6, names::IPV6_RECVPKTINFO) } else { (names::IPPROTO_IP, names::IP_PKTINFO) };
    set_option(socket.handle(), level, name, &on)
}

fn send_with_control(socket: &DgramSocket, data: &[u8], to: &Addr, control: &[u8]) -> Result<(), SendError> {
    let to = SockAddr::from(std::net::SocketAddr::from(*to));
    let slices = [io::IoSlice::new(data)];
    let message = MsgHdr::new().with_addr(&to).with_buffers(&slices).with_control(control);
    loop {
        match socket.socket().sendmsg(&message, 0) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(SendError::classify(error, data.len())),
        }
    }
}

fn recv_arrival(socket: &DgramSocket, buffer: &mut [u8], wait: Wait) -> io::Result<Arrival> {
    match wait {
        Wait::Configured => recv_once(socket, buffer, false),
        Wait::Never => recv_once(socket, buffer, true),
        Wait::For(timeout) => {
            let deadline = Deadline::after(timeout);
            let attempt = || recv_once(socket, buffer, true);
            retry_within(deadline, attempt, |left| wait_ready(socket, Interest::INPUT, left).map(drop))
        }
    }
}

fn recv_once(socket: &DgramSocket, buffer: &mut [u8], at_once: bool) -> io::Result<Arrival> {
    let mut control = [0; CONTROL];
    let (len, filled, from) = recv_with_control(socket.handle(), buffer, &mut control, at_once)?;
    let mut arrival = Arrival {
        received: Received::of(len, buffer.len()),
        from: Addr::decode(from.as_ref())?,
        to: None,
        interface: None,
        segment: None,
    };
    for (level, name, data) in messages(&control[..filled.min(CONTROL)]) {
        match (level, name) {
            // struct in_pktinfo: index, the local address, the address in the header
            (names::IPPROTO_IP, names::IP_PKTINFO) => {
                arrival.interface = number(data, 0);
                arrival.to = octets::<4>(data, 8).map(|addr| Ipv4Addr::from(addr).into());
            }
            // struct in6_pktinfo: address, index
            (names::IPPROTO_IPV6, names::IPV6_PKTINFO) => {
                arrival.to = octets::<16>(data, 0).map(|addr| IpAddr::from(addr).to_canonical());
                arrival.interface = number(data, 16);
            }
            (names::SOL_UDP, names::UDP_GRO) => arrival.segment = number(data, 0).map(|segment| segment as usize),
            _ => {}
        }
    }
    Ok(arrival)
}

/// Room for the control messages of one datagram, with some to spare.
const CONTROL: usize = 128;
/// A control message begins with `struct cmsghdr`: its length with this header, its level, its type.
const HEADER: usize = size_of::<usize>() + 8;

/// Parses the control messages that the system wrote (cmsg(3)).
fn messages(mut control: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from_ne_bytes(octets(control, 0)?);
        let level = i32::from_ne_bytes(octets(control, size_of::<usize>())?);
        let name = i32::from_ne_bytes(octets(control, size_of::<usize>() + 4)?);
        let data = control.get(HEADER..len)?;
        control = control.get(len.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
        Some((level, name, data))
    })
}

/// Adds a control message.
fn push_message(control: &mut Vec<u8>, level: i32, name: i32, data: &[u8]) {
    control.extend_from_slice(&(HEADER + data.len()).to_ne_bytes());
    control.extend_from_slice(&level.to_ne_bytes());
    control.extend_from_slice(&name.to_ne_bytes());
    control.extend_from_slice(data);
    control.resize(control.len().next_multiple_of(size_of::<usize>()), 0);
}

fn octets<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..at + N)?.try_into().ok()
}

fn number(data: &[u8], at: usize) -> Option<u32> {
    octets(data, at).map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn control_messages_are_parsed_as_written(
            all in proptest::collection::vec((any::<i32>(), any::<i32>(), proptest::collection::vec(any::<u8>(), 0..30)), 0..6)
        ) {
            let mut control = Vec::new();
            for (level, name, data) in &all {
                push_message(&mut control, *level, *name, data);
            }
            let read: Vec<_> = messages(&control).map(|(level, name, data)| (level, name, data.to_vec())).collect();
            prop_assert_eq!(read, all);
        }

        #[test]
        fn any_octets_can_be_read(control in proptest::collection::vec(any::<u8>(), 0..130)) {
            prop_assert!(messages(&control).count() <= control.len() / HEADER);
        }
    }
}
