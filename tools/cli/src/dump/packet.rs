//! The TCP segment of a packet, behind the headers of link, tunnels and IP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::fragments::{Fragment, Fragments};
use super::omitted::{Omission, Omitted};

/// Values of the field `EtherType` (<https://www.iana.org/assignments/ieee-802-numbers>).
mod ether_type {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const IPV6: u16 = 0x86dd;
    /// A whole Ethernet frame (GRE).
    pub(super) const BRIDGED: u16 = 0x6558;
    /// VLAN tags: IEEE 802.1Q, 802.1ad, and the latter's predecessor.
    pub(super) const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
    pub(super) const MPLS: [u16; 2] = [0x8847, 0x8848];
    pub(super) const PPP_DISCOVERY: u16 = 0x8863;
    pub(super) const PPP_SESSION: u16 = 0x8864;
    /// Lesser values are lengths of frames with a header of IEEE 802.2.
    pub(super) const LEAST: u16 = 0x0600;
    /// Protocols below IP: ARP, RARP, LLDP, EAPOL, loopback tests, flow control.
    pub(super) const WITHOUT_IP: [u16; 6] = [0x0806, 0x8035, 0x88cc, 0x888e, 0x9000, 0x8808];
}

/// Protocol numbers above IP, of the [IANA registry](https://www.iana.org/assignments/protocol-numbers).
mod protocol {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const IPV4: u8 = 4;
    pub(super) const TCP: u8 = 6;
    pub(super) const UDP: u8 = 17;
    pub(super) const IPV6: u8 = 41;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const GRE: u8 = 47;
    pub(super) const AUTHENTICATION: u8 = 51;
    pub(super) const DESTINATION_OPTIONS: u8 = 60;
    /// Protocols of the network itself: ICMP, IGMP, ICMPv6, none, OSPF, PIM, VRRP.
    pub(super) const WITHOUT_GIOP: [u8; 7] = [1, 2, 58, 59, 89, 103, 112];
}

/// Ports of tunnels over UDP (<https://www.iana.org/assignments/service-names-port-numbers>).
mod tunnel_port {
    pub(super) const L2TP: u16 = 1701;
    pub(super) const GTP: u16 = 2152;
    pub(super) const IPSEC: u16 = 4500;
    pub(super) const VXLAN: u16 = 4789;
    pub(super) const GENEVE: u16 = 6081;
}

/// Flags of the TCP header (RFC 9293, 3.1).
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
/// The size of the header of UDP (RFC 768).
const UDP_HEADER: usize = 8;
/// The maximum number of headers of IPv6 between IP and TCP.
const MAX_EXTENSIONS: usize = 8;
/// The maximum number of headers before the last one of IP.
const MAX_LAYERS: usize = 16;

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
    /// PPP, the Point-to-Point Protocol.
    Ppp,
    /// As [`Link::Ppp`], behind an octet that says the direction.
    PppWithDirection,
    /// PPP over Ethernet, without the header of Ethernet.
    PppOverEthernet,
    /// HDLC as routers of Cisco use it.
    CiscoHdlc,
    Mpls,
    /// IEEE 802.11, a wireless link.
    Wireless,
    /// IEEE 802.11 behind a header of radiotap.
    Radiotap,
    /// The number of another link type.
    Other(u32),
}

impl From<u32> for Link {
    fn from(number: u32) -> Self {
        match number {
            0 | 108 => Self::Null,
            1 => Self::Ethernet,
            9 | 50 => Self::Ppp,
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            51 => Self::PppOverEthernet,
            104 => Self::CiscoHdlc,
            105 => Self::Wireless,
            113 => Self::Cooked,
            127 => Self::Radiotap,
            166 | 204 => Self::PppWithDirection,
            219 => Self::Mpls,
            276 => Self::Cooked2,
            other => Self::Other(other),
        }
    }
}

/// A TCP segment inside a packet.
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

/// The reason for which a packet has no segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Absence {
    /// It has another purpose, so that no GIOP is missed.
    Irrelevant,
    /// It ends inside a header.
    Short,
    /// It may have GIOP.
    Omitted(Omission),
}

impl From<Omission> for Absence {
    fn from(omission: Omission) -> Self {
        Self::Omitted(omission)
    }
}

/// The header that comes next.
#[derive(Clone, Copy, Debug)]
enum Layer {
    Link(Link),
    EtherType(u16),
    Mpls,
    PppOverEthernet,
    Ppp,
    Gre,
    /// UDP to the port of a tunnel.
    Tunnel(u16),
    Ip,
}

/// The content of an IP packet.
#[derive(Clone, Copy, Debug)]
struct IpPacket<'p> {
    source: IpAddr,
    target: IpAddr,
    protocol: u8,
    payload: &'p [u8],
    /// The payload was cut by the snapshot length.
    is_cut: bool,
    /// The identification, the offset, and whether more fragments follow.
    fragment: Option<(u32, usize, bool)>,
}

/// The decoding of packets: the fragments of IP that wait for others, and the counts of what was left out.
#[derive(Debug, Default)]
pub(super) struct Packets {
    fragments: Fragments,
    /// The payload of the last datagram that was joined from fragments.
    joined: Vec<u8>,
    pub(super) omitted: Omitted,
}

impl Packets {
    /// The segment in a packet, or in the datagram that the packet completes. `is_cut`: the packet was longer than the
    /// snapshot length.
    pub(super) fn segment<'p>(&'p mut self, link: Link, octets: &'p [u8], is_cut: bool) -> Option<Segment<'p>> {
        let result = ip_packet(Layer::Link(link), octets).and_then(|packet| match packet.fragment {
            None => transport(&packet, packet.payload).map(Found::Segment),
            Some((id, offset, has_more)) => {
                let key = (packet.source, packet.target, packet.protocol, id);
                Ok(Found::Fragment(packet, Fragment { key, offset, has_more, octets: packet.payload }))
            }
        });
        let (packet, fragment) = match result {
            Ok(Found::Segment((segment, is_segment_cut))) => {
                if is_segment_cut {
                    self.omitted.add(Omission::Cut, 1);
                }
                return Some(segment);
            }
            Ok(Found::Fragment(packet, fragment)) => (packet, fragment),
            Err(absence) => {
                self.count(absence, is_cut);
                return None;
            }
        };
        self.joined = self.fragments.take(&fragment, &mut self.omitted)?;
        let whole = IpPacket { is_cut: false, fragment: None, payload: &[], ..packet };
        match transport(&whole, &self.joined) {
            Ok((segment, _)) => Some(segment),
            Err(absence) => {
                if let Absence::Omitted(omission) = absence {
                    self.omitted.add(omission, 1);
                }
                None
            }
        }
    }

    /// Counts the fragments that still wait for others.
    pub(super) fn end(&mut self) {
        self.fragments.end(&mut self.omitted);
    }

    fn count(&mut self, absence: Absence, is_cut: bool) {
        match absence {
            Absence::Omitted(omission) => self.omitted.add(omission, 1),
            Absence::Short if is_cut => self.omitted.add(Omission::Cut, 1),
            Absence::Short | Absence::Irrelevant => {}
        }
    }
}

enum Found<'p> {
    /// And whether it was cut.
    Segment((Segment<'p>, bool)),
    Fragment(IpPacket<'p>, Fragment<'p>),
}

/// The last IP packet behind these headers: of tunnels, the innermost one.
fn ip_packet(mut layer: Layer, mut octets: &[u8]) -> Result<IpPacket<'_>, Absence> {
    for _ in 0..MAX_LAYERS {
        if let Layer::Ip = layer {
            let packet = match octets.first().ok_or(Absence::Short)? >> 4 {
                4 => ipv4(octets)?,
                6 => ipv6(octets)?,
                _ => return Err(Absence::Irrelevant),
            };
            layer = match packet.protocol {
                // A tunnel in fragments is joined first, and then not looked into.
                _ if packet.fragment.is_some() => return Ok(packet),
                protocol::IPV4 | protocol::IPV6 => Layer::Ip,
                protocol::GRE => Layer::Gre,
                protocol::UDP => match u16_at(packet.payload, 2)? {
                    port @ (tunnel_port::VXLAN | tunnel_port::GENEVE) => Layer::Tunnel(port),
                    _ => return Ok(packet),
                },
                _ => return Ok(packet),
            };
            octets = packet.payload;
        } else {
            (layer, octets) = behind(layer, octets)?;
        }
    }
    Err(Absence::Irrelevant)
}

/// The next header, and the octets from there on.
fn behind(layer: Layer, octets: &[u8]) -> Result<(Layer, &[u8]), Absence> {
    match layer {
        Layer::Link(link) => behind_link(link, octets),
        Layer::EtherType(number) => match number {
            ether_type::IPV4 | ether_type::IPV6 => Ok((Layer::Ip, octets)),
            ether_type::BRIDGED => Ok((Layer::Link(Link::Ethernet), octets)),
            ether_type::PPP_SESSION => Ok((Layer::PppOverEthernet, octets)),
            _ if ether_type::VLAN.contains(&number) => Ok((Layer::EtherType(u16_at(octets, 2)?), from(octets, 4)?)),
            _ if ether_type::MPLS.contains(&number) => Ok((Layer::Mpls, octets)),
            // A header of IEEE 802.2: SNAP, or protocols without IP.
            _ if number < ether_type::LEAST => match octets.first_chunk().ok_or(Absence::Short)? {
                [0xaa, 0xaa, 0x03, 0, 0, 0] => Ok((Layer::EtherType(u16_at(octets, 6)?), from(octets, 8)?)),
                _ => Err(Absence::Irrelevant),
            },
            ether_type::PPP_DISCOVERY => Err(Absence::Irrelevant),
            _ if ether_type::WITHOUT_IP.contains(&number) => Err(Absence::Irrelevant),
            other => Err(Omission::EtherType(other).into()),
        },
        // RFC 3032, 2.1: entries of four octets; the last one has a bit. What it carries is not said: an IP packet by its
        // first half octet (RFC 4928, 3).
        Layer::Mpls => {
            let rest = from(octets, 4)?;
            match (octets[2] & 1, rest.first().ok_or(Absence::Short)? >> 4) {
                (0, _) => Ok((Layer::Mpls, rest)),
                (_, 4 | 6) => Ok((Layer::Ip, rest)),
                _ => Err(Omission::Tunnel("MPLS pseudowires").into()),
            }
        }
        // RFC 2516, 4: a header of six octets; the code 0 is that of a session.
        Layer::PppOverEthernet => match octets.get(1).ok_or(Absence::Short)? {
            0 => Ok((Layer::Ppp, from(octets, 6)?)),
            _ => Err(Absence::Irrelevant),
        },
        // RFC 1661, 2, and RFC 1662, 3.1: address and control may be absent, and the first octet of the protocol.
        Layer::Ppp => {
            let octets = octets.strip_prefix(&[0xff, 0x03]).unwrap_or(octets);
            let first = *octets.first().ok_or(Absence::Short)?;
            let (number, len) = if first & 1 == 1 { (first.into(), 1) } else { (u16_at(octets, 0)?, 2) };
            match number {
                0x0021 | 0x0057 => Ok((Layer::Ip, from(octets, len)?)),
                0x0281 | 0x0283 => Ok((Layer::Mpls, from(octets, len)?)),
                0x0053 | 0x00fd | 0x003d => Err(Omission::Tunnel("encrypted, compressed or divided PPP").into()),
                _ => Err(Absence::Irrelevant), // it negotiates
            }
        }
        Layer::Gre => behind_gre(octets),
        Layer::Tunnel(port) => behind_datagram(port, from(octets, UDP_HEADER)?),
        Layer::Ip => Ok((Layer::Ip, octets)),
    }
}

fn behind_link(link: Link, octets: &[u8]) -> Result<(Layer, &[u8]), Absence> {
    match link {
        Link::Ethernet => Ok((Layer::EtherType(u16_at(octets, 12)?), from(octets, 14)?)),
        Link::Raw => Ok((Layer::Ip, octets)),
        Link::Null => Ok((Layer::Ip, from(octets, 4)?)),
        Link::Cooked => Ok((Layer::EtherType(u16_at(octets, 14)?), from(octets, 16)?)),
        Link::Cooked2 => Ok((Layer::EtherType(u16_at(octets, 0)?), from(octets, 20)?)),
        Link::Ppp => Ok((Layer::Ppp, octets)),
        Link::PppWithDirection => Ok((Layer::Ppp, from(octets, 1)?)),
        Link::PppOverEthernet => Ok((Layer::PppOverEthernet, octets)),
        Link::CiscoHdlc => Ok((Layer::EtherType(u16_at(octets, 2)?), from(octets, 4)?)),
        Link::Mpls => Ok((Layer::Mpls, octets)),
        Link::Wireless => behind_wireless(octets),
        Link::Radiotap => {
            let len = octets.get(2..4).ok_or(Absence::Short)?;
            Ok((Layer::Link(Link::Wireless), from(octets, u16::from_le_bytes([len[0], len[1]]).max(8).into())?))
        }
        Link::Other(number) => Err(Omission::LinkType(number).into()),
    }
}

/// A frame of data of IEEE 802.11 (9.2.4), which has a header of IEEE 802.2.
fn behind_wireless(octets: &[u8]) -> Result<(Layer, &[u8]), Absence> {
    const DATA: u8 = 0x08;
    const WITHOUT_DATA: u8 = 0x40;
    const QUALITY: u8 = 0x80;
    const BOTH_SYSTEMS: u8 = 0x03;
    const PROTECTED: u8 = 0x40;
    const ORDER: u8 = 0x80;
    const AGGREGATE: u8 = 0x80;
    let [control, flags] = *octets.first_chunk().ok_or(Absence::Short)?;
    if control & 0x0c != DATA || control & WITHOUT_DATA != 0 {
        return Err(Absence::Irrelevant);
    }
    let mut len = if flags & BOTH_SYSTEMS == BOTH_SYSTEMS { 30 } else { 24 };
    if control & QUALITY != 0 {
        if octets.get(len).ok_or(Absence::Short)? & AGGREGATE != 0 {
            return Err(Omission::Tunnel("aggregated frames of 802.11").into());
        }
        len += if flags & ORDER != 0 { 6 } else { 2 };
    }
    if flags & PROTECTED != 0 {
        return Err(Omission::Tunnel("encrypted frames of 802.11").into());
    }
    Ok((Layer::EtherType(0), from(octets, len)?))
}

/// RFC 2784, 2.1, and RFC 2890, 2: flags, the protocol, and the fields that the flags name.
fn behind_gre(octets: &[u8]) -> Result<(Layer, &[u8]), Absence> {
    const FIELDS: [u16; 3] = [0x8000, 0x2000, 0x1000];
    const VERSION_AND_ROUTING: u16 = 0x4007;
    let (flags, number) = (u16_at(octets, 0)?, u16_at(octets, 2)?);
    if flags & VERSION_AND_ROUTING != 0 {
        return Err(Omission::Tunnel("GRE with routing, or of another version").into());
    }
    let fields = FIELDS.iter().filter(|field| flags & **field != 0).count();
    let rest = from(octets, 4 + fields * 4)?;
    match number {
        ether_type::BRIDGED => Ok((Layer::Link(Link::Ethernet), rest)),
        number => Ok((Layer::EtherType(number), rest)),
    }
}

/// The frame in a datagram of VXLAN (RFC 7348, 5) or the packet in one of Geneve (RFC 8926, 3.4).
fn behind_datagram(port: u16, octets: &[u8]) -> Result<(Layer, &[u8]), Absence> {
    const HEADER: usize = 8;
    const HAS_NETWORK: u8 = 0x08;
    const VERSION: u8 = 0xc0;
    const CONTROL: u8 = 0x80;
    let [first, second] = *octets.first_chunk().ok_or(Absence::Short)?;
    if port == tunnel_port::GENEVE {
        // Options are counted in words. A control packet has no data.
        return match (first & VERSION, second & CONTROL) {
            (0, 0) => Ok((Layer::EtherType(u16_at(octets, 2)?), from(octets, HEADER + usize::from(first) * 4)?)),
            (0, _) => Err(Absence::Irrelevant),
            _ => Err(Omission::Tunnel("Geneve of another version").into()),
        };
    }
    match first & HAS_NETWORK {
        0 => Err(Absence::Irrelevant),
        _ => Ok((Layer::Link(Link::Ethernet), from(octets, HEADER)?)),
    }
}

/// An IPv4 packet (RFC 791, 3.1).
fn ipv4(packet: &[u8]) -> Result<IpPacket<'_>, Absence> {
    const MORE: u16 = 0x2000;
    const OFFSET: u16 = 0x1fff;
    let header_len = usize::from(packet.first().ok_or(Absence::Short)? & 0x0f) * 4;
    if header_len < 20 {
        return Err(Absence::Irrelevant);
    }
    let address = |at: usize| u32_at(packet, at).map(|octets| IpAddr::V4(Ipv4Addr::from(octets)));
    // Behind the packet, Ethernet pads. A packet that the network card is to divide may have no length.
    let total = usize::from(u16_at(packet, 2)?);
    let whole = if total < header_len { packet } else { packet.get(..total).unwrap_or(packet) };
    let (source, target) = (address(12)?, address(16)?);
    let part = u16_at(packet, 6)?;
    let (offset, has_more) = (usize::from(part & OFFSET) * 8, part & MORE != 0);
    let mut fragment = (offset > 0 || has_more).then_some((u16_at(packet, 4)?.into(), offset, has_more));
    let first = *packet.get(9).ok_or(Absence::Short)?;
    let payload = from(whole, header_len)?;
    // Headers behind that of IP are in the first fragment.
    let (protocol, payload) =
        if fragment.is_some() { (first, payload) } else { behind_extensions(first, payload, &mut fragment)? };
    Ok(IpPacket { source, target, protocol, payload, is_cut: total > packet.len(), fragment })
}

/// An IPv6 packet (RFC 8200, 3).
fn ipv6(packet: &[u8]) -> Result<IpPacket<'_>, Absence> {
    const HEADER_LEN: usize = 40;
    let address = |at: usize| {
        let octets = packet.get(at..at + 16).and_then(|octets| <[u8; 16]>::try_from(octets).ok());
        octets.map(|octets| IpAddr::V6(Ipv6Addr::from(octets))).ok_or(Absence::Short)
    };
    let payload = from(packet, HEADER_LEN)?;
    let len = usize::from(u16_at(packet, 4)?);
    let whole = if len == 0 { payload } else { payload.get(..len).unwrap_or(payload) };
    let (source, target, mut fragment) = (address(8)?, address(24)?, None);
    let (protocol, octets) = behind_extensions(packet[6], whole, &mut fragment)?;
    Ok(IpPacket { source, target, protocol, payload: octets, is_cut: len > payload.len(), fragment })
}

/// The protocol and the octets behind extension headers. Behind the header of a fragment, there may be a part of any header.
fn behind_extensions<'p>(
    mut protocol: u8,
    mut octets: &'p [u8],
    fragment: &mut Option<(u32, usize, bool)>,
) -> Result<(u8, &'p [u8]), Absence> {
    for _ in 0..=MAX_EXTENSIONS {
        let length = || octets.get(1).map(|length| usize::from(*length)).ok_or(Absence::Short);
        let len = match protocol {
            protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION_OPTIONS => (length()? + 1) * 8,
            protocol::AUTHENTICATION => (length()? + 2) * 4,
            protocol::FRAGMENT => {
                let (part, id, rest) = (u16_at(octets, 2)?, u32_at(octets, 4)?, from(octets, 8)?);
                let (offset, has_more) = (usize::from(part & 0xfff8), part & 1 != 0);
                // An offset of zero without further fragments: a whole packet.
                if offset > 0 || has_more {
                    *fragment = Some((id, offset, has_more));
                    return Ok((octets[0], rest));
                }
                8
            }
            _ => return Ok((protocol, octets)),
        };
        (protocol, octets) = (*octets.first().ok_or(Absence::Short)?, from(octets, len)?);
    }
    Err(Absence::Irrelevant)
}

/// The segment in a packet with this payload, and whether it was cut.
fn transport<'p>(packet: &IpPacket<'_>, payload: &'p [u8]) -> Result<(Segment<'p>, bool), Absence> {
    match packet.protocol {
        protocol::TCP => {}
        protocol::UDP => return Err(datagram(u16_at(payload, 2)?, from(payload, UDP_HEADER)?)),
        other if protocol::WITHOUT_GIOP.contains(&other) => return Err(Absence::Irrelevant),
        other => return Err(Omission::Protocol(other).into()),
    }
    // The header of TCP: RFC 9293, 3.1.
    let header_len = usize::from(payload.get(12).ok_or(Absence::Short)? >> 4) * 4;
    let flags = *payload.get(13).ok_or(Absence::Short)?;
    let has = |flag: u8| flags & flag != 0;
    let segment = Segment {
        from: SocketAddr::new(packet.source, u16_at(payload, 0)?),
        to: SocketAddr::new(packet.target, u16_at(payload, 2)?),
        sequence: u32_at(payload, 4)?,
        acknowledged: if has(ACK) { Some(u32_at(payload, 8)?) } else { None },
        opens: has(SYN),
        closes: has(FIN) || has(RST),
        octets: from(payload, header_len.max(20))?,
    };
    Ok((segment, packet.is_cut))
}

/// The content of a datagram of UDP that is left out.
fn datagram(port: u16, octets: &[u8]) -> Absence {
    match (port, octets.first_chunk()) {
        (_, Some(b"MIOP")) => Omission::Miop.into(),
        (_, Some(b"GIOP" | b"ZIOP")) => Omission::Datagram.into(),
        (tunnel_port::L2TP, _) => Omission::Tunnel("L2TP").into(),
        (tunnel_port::GTP, _) => Omission::Tunnel("GTP").into(),
        // RFC 3948, 2: key exchange begins with zeros, and an octet alone keeps the way open.
        (tunnel_port::IPSEC, Some([0, 0, 0, 0]) | None) => Absence::Irrelevant,
        (tunnel_port::IPSEC, _) => Omission::Tunnel("IPsec over UDP").into(),
        (tunnel_port::VXLAN | tunnel_port::GENEVE, _) => Omission::Tunnel("VXLAN or Geneve in IP fragments").into(),
        _ => Absence::Irrelevant,
    }
}

fn from(octets: &[u8], at: usize) -> Result<&[u8], Absence> {
    octets.get(at..).ok_or(Absence::Short)
}

fn u16_at(octets: &[u8], at: usize) -> Result<u16, Absence> {
    let octets = octets.get(at..at + 2).and_then(|octets| octets.try_into().ok());
    octets.map(u16::from_be_bytes).ok_or(Absence::Short)
}

fn u32_at(octets: &[u8], at: usize) -> Result<u32, Absence> {
    let octets = octets.get(at..at + 4).and_then(|octets| octets.try_into().ok());
    octets.map(u32::from_be_bytes).ok_or(Absence::Short)
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

    /// The segment of a packet, with the counts of what was left out.
    fn parsed(link: Link, octets: &[u8], is_cut: bool) -> (Option<Vec<u8>>, String) {
        let mut packets = Packets::default();
        let segment = packets.segment(link, octets, is_cut).map(|segment| segment.octets.to_vec());
        packets.end();
        (segment, packets.omitted.to_string())
    }

    fn expected(octets: &[u8]) {
        expected_of(Link::Ethernet, octets);
    }

    fn expected_of(link: Link, octets: &[u8]) {
        let mut packets = Packets::default();
        let segment = packets.segment(link, octets, false).unwrap();
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
    fn a_shortened_packet_is_counted() {
        let plain = packet!(PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64));
        let headers = plain.len() - PAYLOAD.len();
        let cut = "1 packet cut by the snapshot length";
        for len in 0..headers {
            assert_eq!(parsed(Link::Ethernet, &plain[..len], true), (None, cut.to_owned()), "{len}");
            assert_eq!(parsed(Link::Ethernet, &plain[..len], false), (None, String::new()), "{len}");
        }
        let short = parsed(Link::Ethernet, &plain[..headers + 2], true);
        assert_eq!(short, (Some(b"GI".to_vec()), cut.to_owned()), "a short snapshot length");
    }

    #[test]
    fn tunnels_and_links_are_followed() {
        let ip = packet!(PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64));
        let with = |front: &[u8]| [front, &ip].concat();
        let ethernet = |ether_type: [u8; 2], front: &[u8]| [&[1; 12][..], &ether_type, front, &ip].concat();
        expected(&ethernet([0x88, 0x47], &[0, 1, 0x00, 64, 0, 2, 0x01, 64]));
        expected(&ethernet([0x88, 0x64], &[0x11, 0, 0, 7, 0, 99, 0x00, 0x21]));
        expected(&ethernet([0x05, 0xdc], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]));
        expected_of(Link::Ppp, &with(&[0xff, 0x03, 0x00, 0x21]));
        expected_of(Link::Ppp, &with(&[0x21]));
        expected_of(Link::PppWithDirection, &with(&[1, 0xff, 0x03, 0x00, 0x21]));
        expected_of(Link::PppOverEthernet, &with(&[0x11, 0, 0, 7, 0, 99, 0x00, 0x21]));
        expected_of(Link::CiscoHdlc, &with(&[0x0f, 0, 8, 0]));
        expected_of(Link::Mpls, &with(&[0, 1, 0x01, 64]));
        // Data with a quality of service, from an access point.
        let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
        let mut wireless = [&[0x88, 0x02][..], &[0; 22], &[0, 0], &snap].concat();
        expected_of(Link::Wireless, &with(&wireless));
        expected_of(Link::Radiotap, &with(&[&[0, 0, 9, 0, 0, 0, 0, 0, 7], &wireless[..]].concat()));
        wireless[1] |= 0x40;
        let encrypted = "1 packet of encrypted frames of 802.11";
        assert_eq!(parsed(Link::Wireless, &with(&wireless), false).1, encrypted);
        // GRE with a key, of an IP packet and of a frame; IP in IP.
        let outer = |protocol: u8, inner: &[u8]| {
            let mut header = ip[..20].to_vec();
            header[2..4].copy_from_slice(&((20 + inner.len()) as u16).to_be_bytes());
            header[9] = protocol;
            [&header, inner].concat()
        };
        expected_of(Link::Raw, &outer(47, &with(&[0x20, 0, 8, 0, 0, 0, 0, 7])));
        expected_of(Link::Raw, &outer(47, &[&[0, 0, 0x65, 0x58][..], &ethernet([8, 0], &[])].concat()));
        expected_of(Link::Raw, &outer(4, &ip));
        assert_eq!(parsed(Link::Raw, &outer(50, &ip), false).1, "1 packet of IP protocol 50 (IPsec)");
        assert_eq!(parsed(Link::Other(147), &ip, false).1, "1 packet of link type 147");
    }

    #[test]
    fn tunnels_over_udp_are_followed_or_named() {
        let frame = packet!(PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64));
        let udp = |port: u16, content: &[&[u8]]| {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4([10, 0, 0, 3], [10, 0, 0, 4], 64).udp(50_000, port);
            builder.write(&mut packet, &content.concat()).unwrap();
            packet
        };
        let omitted = |octets: &[u8]| parsed(Link::Raw, octets, false).1;
        expected_of(Link::Raw, &udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0], &frame]));
        assert_eq!(omitted(&udp(4789, &[&[0; 8], &frame])), "", "it names no network");
        let option = [1, 2, 0, 1, 9, 9, 9, 9];
        expected_of(Link::Raw, &udp(6081, &[&[2, 0, 0x65, 0x58, 0, 0, 7, 0], &option, &frame]));
        expected_of(Link::Raw, &udp(6081, &[&[0, 0, 8, 0, 0, 0, 7, 0], &frame[14..]]));
        assert_eq!(omitted(&udp(6081, &[&[0x40, 0, 8, 0, 0, 0, 7, 0]])), "1 packet of Geneve of another version");
        assert_eq!(omitted(&udp(6081, &[&[0, 0x80, 8, 0, 0, 0, 7, 0]])), "", "a control packet");
        for (port, name) in [(1701, "L2TP"), (2152, "GTP"), (4500, "IPsec over UDP")] {
            assert_eq!(omitted(&udp(port, &[&[7; 16]])), format!("1 packet of {name}"));
        }
        assert_eq!(omitted(&udp(4500, &[&[0; 16]])), "", "an exchange of keys");
        assert_eq!(omitted(&udp(4500, &[&[0xff]])), "");
        // The datagram in two fragments is joined.
        let whole = udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0], &frame]);
        let mut packets = Packets::default();
        for (range, offset) in [(20..52, 0x2000_u16), (52..whole.len(), 4)] {
            let mut part = whole[..20].to_vec();
            part[2..4].copy_from_slice(&((20 + range.len()) as u16).to_be_bytes());
            part[6..8].copy_from_slice(&offset.to_be_bytes());
            part.extend(&whole[range]);
            assert_eq!(packets.segment(Link::Raw, &part, false), None);
        }
        packets.end();
        assert_eq!(packets.omitted.to_string(), "1 packet of VXLAN or Geneve in IP fragments");
    }

    #[test]
    fn other_protocols_have_no_segment() {
        let whole = packet!(PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64));
        let with = |at: usize, value: u8| {
            let mut other = whole.clone();
            other[at] = value;
            parsed(Link::Ethernet, &other, false)
        };
        assert_eq!(with(14 + 9, 17), (None, String::new()), "UDP without GIOP");
        assert_eq!(with(14 + 9, 1), (None, String::new()), "ICMP");
        assert_eq!(with(14 + 9, 132).1, "1 packet of IP protocol 132 (SCTP)");
        assert_eq!(with(12, 0x12).1, "1 packet of EtherType 0x1200");
        assert_eq!(with(13, 0x06), (None, String::new()), "ARP");
    }

    #[test]
    fn datagrams_with_giop_are_named() {
        let datagram = |octets: &[u8]| {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2);
            builder.write(&mut packet, octets).unwrap();
            parsed(Link::Raw, &packet, false).1
        };
        assert_eq!(datagram(b"MIOP\x10"), "1 datagram of MIOP");
        assert_eq!(datagram(b"GIOP\x01\x02"), "1 datagram of GIOP over UDP");
        assert_eq!(datagram(b"question"), "");
    }

    #[test]
    fn fragments_are_joined_or_counted() {
        let whole = packet!(PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64));
        let part = |range: std::ops::Range<usize>, has_more: bool| {
            let mut header = whole[..20].to_vec();
            let payload = &whole[20..][range.clone()];
            header[2..4].copy_from_slice(&((20 + payload.len()) as u16).to_be_bytes());
            let offset = (range.start / 8) as u16 | if has_more { 0x2000 } else { 0 };
            header[6..8].copy_from_slice(&offset.to_be_bytes());
            [&header, payload].concat()
        };
        let parts = [part(0..8, true), part(8..16, true), part(16..24, false)];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let mut packets = Packets::default();
            assert_eq!(packets.segment(Link::Raw, &parts[order[0]], false), None);
            assert_eq!(packets.segment(Link::Raw, &parts[order[1]], false), None);
            let segment = packets.segment(Link::Raw, &parts[order[2]], false).map(|segment| segment.octets.to_vec());
            assert_eq!(segment.as_deref(), Some(PAYLOAD), "{order:?}");
            packets.end();
            assert_eq!(packets.omitted.to_string(), "", "{order:?}");
        }
        let mut packets = Packets::default();
        for octets in [&parts[0], &parts[2], &parts[2]] {
            assert_eq!(packets.segment(Link::Raw, octets, false), None);
        }
        packets.end();
        assert_eq!(packets.omitted.to_string(), "3 IP fragments of incomplete datagrams");
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
        let found = |octets: &[u8]| parsed(Link::Raw, octets, false).0;
        assert_eq!(found(&with(protocol::HOP_BY_HOP, &[protocol::TCP, 0, 1, 4, 0, 0, 0, 0])).as_deref(), Some(PAYLOAD));
        let two = [60, 0, 1, 4, 0, 0, 0, 0, 44, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 9];
        assert_eq!(found(&with(protocol::HOP_BY_HOP, &two)).as_deref(), Some(PAYLOAD));
        assert_eq!(
            found(&with(protocol::FRAGMENT, &[protocol::TCP, 0, 0, 1, 0, 0, 0, 9])),
            None,
            "the first of several fragments"
        );
        assert_eq!(found(&with(protocol::HOP_BY_HOP, &[protocol::HOP_BY_HOP, 0, 1, 4, 0, 0, 0, 0].repeat(20))), None);
    }
}
