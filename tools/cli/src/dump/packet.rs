//! The TCP segment of a packet, behind link and IP headers.

use std::net::{IpAddr, SocketAddr};

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};

/// Link types of packets (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Link {
    /// BSD loopback: four octets in front of IP.
    Null,
    Ethernet,
    /// IP without a link header.
    Raw,
    /// Linux "cooked", of the `any` interface.
    Cooked,
    /// Linux "cooked", version 2.
    Cooked2,
    Unknown,
}

impl From<i32> for Link {
    fn from(number: i32) -> Self {
        match number {
            0 | 108 => Self::Null,
            1 => Self::Ethernet,
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            113 => Self::Cooked,
            276 => Self::Cooked2,
            _ => Self::Unknown,
        }
    }
}

/// A TCP segment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Segment<'p> {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) sequence: u32,
    /// The acknowledged sequence number.
    pub(super) acknowledged: Option<u32>,
    /// SYN: the first segment of the connection.
    pub(super) opens: bool,
    /// FIN or RST: the last segment of its side.
    pub(super) closes: bool,
    pub(super) octets: &'p [u8],
}

/// The segment in a packet; none for packets of other kinds, and for IP fragments.
pub(super) fn segment(link: Link, octets: &[u8]) -> Option<Segment<'_>> {
    let sliced = match link {
        Link::Ethernet => LaxSlicedPacket::from_ethernet(octets).ok()?,
        Link::Raw => LaxSlicedPacket::from_ip(octets).ok()?,
        Link::Null => LaxSlicedPacket::from_ip(octets.get(4..)?).ok()?,
        Link::Cooked => LaxSlicedPacket::from_ether_type(ether_type(octets.get(14..16)?), octets.get(16..)?),
        Link::Cooked2 => LaxSlicedPacket::from_ether_type(ether_type(octets.get(..2)?), octets.get(20..)?),
        Link::Unknown => return None,
    };
    let (source, target): (IpAddr, IpAddr) = match sliced.net? {
        LaxNetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Arp(_) => return None,
    };
    let TransportSlice::Tcp(tcp) = sliced.transport? else { return None };
    Some(Segment {
        from: SocketAddr::new(source, tcp.source_port()),
        to: SocketAddr::new(target, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledged: tcp.ack().then(|| tcp.acknowledgment_number()),
        opens: tcp.syn(),
        closes: tcp.fin() || tcp.rst(),
        octets: tcp.payload(),
    })
}

fn ether_type(octets: &[u8]) -> EtherType {
    EtherType(u16::from_be_bytes([octets[0], octets[1]]))
}
