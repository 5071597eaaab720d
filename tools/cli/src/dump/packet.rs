//! The TCP segment of a packet, behind link and IP headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Values of the field `EtherType` (<https://www.iana.org/assignments/ieee-802-numbers>).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// VLAN tags: IEEE 802.1Q, 802.1ad, and the latter's predecessor.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// The maximum number of VLAN tags of a packet.
const MAX_TAGS: usize = 3;

/// Protocol numbers (<https://www.iana.org/assignments/protocol-numbers>).
const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
/// Flags of TCP.
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
/// The maximum number of headers between IP and TCP.
const MAX_EXTENSIONS: usize = 8;

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

impl From<u32> for Link {
    fn from(number: u32) -> Self {
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
    let packet = match link {
        Link::Ethernet => behind_ether_type(u16_at(octets, 12)?, octets.get(14..)?)?,
        Link::Raw => octets,
        Link::Null => octets.get(4..)?,
        Link::Cooked => behind_ether_type(u16_at(octets, 14)?, octets.get(16..)?)?,
        Link::Cooked2 => behind_ether_type(u16_at(octets, 0)?, octets.get(20..)?)?,
        Link::Unknown => return None,
    };
    let (source, target, tcp) = match packet.first()? >> 4 {
        4 => behind_ipv4(packet)?,
        6 => behind_ipv6(packet)?,
        _ => return None,
    };
    // The header of TCP: RFC 9293, 3.1.
    let header_len = usize::from(tcp.get(12)? >> 4) * 4;
    let has = |flag: u8| tcp.get(13).is_some_and(|flags| flags & flag != 0);
    let payload = tcp.get(header_len.max(20)..)?;
    Some(Segment {
        from: SocketAddr::new(source, u16_at(tcp, 0)?),
        to: SocketAddr::new(target, u16_at(tcp, 2)?),
        sequence: u32_at(tcp, 4)?,
        acknowledged: if has(ACK) { Some(u32_at(tcp, 8)?) } else { None },
        opens: has(SYN),
        closes: has(FIN) || has(RST),
        octets: payload,
    })
}

/// The IP packet behind a field `EtherType`, and behind VLAN tags.
fn behind_ether_type(mut ether_type: u16, mut octets: &[u8]) -> Option<&[u8]> {
    for _ in 0..MAX_TAGS {
        if VLAN.contains(&ether_type) {
            (ether_type, octets) = (u16_at(octets, 2)?, octets.get(4..)?);
        }
    }
    (ether_type == IPV4 || ether_type == IPV6).then_some(octets)
}

/// The addresses and the TCP segment of an IPv4 packet (RFC 791, 3.1).
fn behind_ipv4(packet: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    const MORE_FRAGMENTS_AND_OFFSET: u16 = 0x3fff;
    let header_len = usize::from(packet.first()? & 0x0f) * 4;
    if header_len < 20 || u16_at(packet, 6)? & MORE_FRAGMENTS_AND_OFFSET != 0 {
        return None;
    }
    let address = |at: usize| Some(IpAddr::V4(Ipv4Addr::from(u32_at(packet, at)?)));
    // Behind the packet, Ethernet pads. A packet that the network card is to divide may have no length.
    let total = usize::from(u16_at(packet, 2)?);
    let whole = if total < header_len { packet } else { packet.get(..total).unwrap_or(packet) };
    let tcp = behind_extensions(*packet.get(9)?, whole.get(header_len..)?)?;
    Some((address(12)?, address(16)?, tcp))
}

/// The addresses and the TCP segment of an IPv6 packet (RFC 8200, 3).
fn behind_ipv6(packet: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    const HEADER_LEN: usize = 40;
    let address = |at: usize| {
        let octets: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::V6(Ipv6Addr::from(octets)))
    };
    let payload = packet.get(HEADER_LEN..)?;
    let len = usize::from(u16_at(packet, 4)?);
    let payload = if len == 0 { payload } else { payload.get(..len).unwrap_or(payload) };
    Some((address(8)?, address(24)?, behind_extensions(*packet.get(6)?, payload)?))
}

/// The TCP segment behind extension headers.
fn behind_extensions(mut protocol: u8, mut octets: &[u8]) -> Option<&[u8]> {
    for _ in 0..=MAX_EXTENSIONS {
        let len = match protocol {
            TCP => return Some(octets),
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => (usize::from(*octets.get(1)?) + 1) * 8,
            AUTHENTICATION => (usize::from(*octets.get(1)?) + 2) * 4,
            // An offset of zero without further fragments: a whole packet.
            FRAGMENT if u16_at(octets, 2)? & 0xfff9 == 0 => 8,
            _ => return None,
        };
        (protocol, octets) = (*octets.first()?, octets.get(len..)?);
    }
    None
}

fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(octets.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, VlanId};

    use super::*;

    const PAYLOAD: &[u8] = b"GIOP";

    /// A packet of a builder of `etherparse`, behind its IP header.
    macro_rules! packet {
        ($ip:expr) => {{
            let mut octets = Vec::new();
            $ip.tcp(40_000, 2809, 7, 64_000).ack(9).fin().write(&mut octets, PAYLOAD).unwrap();
            octets
        }};
    }

    fn expected(octets: &[u8]) {
        let segment = segment(Link::Ethernet, octets).unwrap();
        assert_eq!((segment.from.port(), segment.to.port(), segment.sequence), (40_000, 2809, 7));
        assert_eq!((segment.acknowledged, segment.opens, segment.closes), (Some(9), false, true));
        assert_eq!(segment.octets, PAYLOAD);
    }

    #[test]
    fn a_segment_is_found_behind_vlan_tags_and_before_padding() {
        let ethernet = || PacketBuilder::ethernet2([1; 6], [2; 6]);
        let plain = packet!(ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64));
        expected(&plain);
        expected(&[&plain[..], &[0; 6]].concat());
        expected(&packet!(ethernet().single_vlan(VlanId::try_new(7).unwrap()).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)));
        let twice = ethernet().double_vlan(VlanId::try_new(7).unwrap(), VlanId::try_new(8).unwrap());
        expected(&packet!(twice.ipv6([1; 16], [2; 16], 64)));
    }

    #[test]
    fn a_shortened_packet_has_no_segment() {
        let plain = packet!(PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64));
        let headers = plain.len() - PAYLOAD.len();
        for len in 0..headers {
            assert_eq!(segment(Link::Ethernet, &plain[..len]), None, "{len}");
        }
        assert_eq!(segment(Link::Ethernet, &plain[..headers + 2]).unwrap().octets, b"GI", "a short snapshot length");
    }

    #[test]
    fn fragments_and_other_protocols_have_no_segment() {
        let whole = packet!(PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64));
        for (at, value) in [(14 + 6, 0x20), (14 + 7, 1), (14 + 9, 17), (12, 0x12)] {
            let mut other = whole.clone();
            other[at] = value;
            assert_eq!(segment(Link::Ethernet, &other), None, "{at}");
        }
    }

    #[test]
    fn extension_headers_are_skipped() {
        let packet = packet!(PacketBuilder::ipv6([1; 16], [2; 16], 64));
        let (header, tcp) = packet.split_at(40);
        let with = |first: u8, extension: &[u8]| {
            let mut header = header.to_vec();
            header[6] = first;
            header[4..6].copy_from_slice(&((extension.len() + tcp.len()) as u16).to_be_bytes());
            [&header, extension, tcp].concat()
        };
        let found = |octets: &[u8]| segment(Link::Raw, octets).map(|segment| segment.octets.to_vec());
        assert_eq!(found(&with(HOP_BY_HOP, &[TCP, 0, 1, 4, 0, 0, 0, 0])).as_deref(), Some(PAYLOAD));
        let two = [DESTINATION_OPTIONS, 0, 1, 4, 0, 0, 0, 0, FRAGMENT, 0, 1, 4, 0, 0, 0, 0, TCP, 0, 0, 0, 0, 0, 0, 9];
        assert_eq!(found(&with(HOP_BY_HOP, &two)).as_deref(), Some(PAYLOAD));
        assert_eq!(found(&with(FRAGMENT, &[TCP, 0, 0, 1, 0, 0, 0, 9])), None, "the first of several fragments");
        assert_eq!(found(&with(HOP_BY_HOP, &[HOP_BY_HOP, 0, 1, 4, 0, 0, 0, 0].repeat(20))), None);
    }
}
