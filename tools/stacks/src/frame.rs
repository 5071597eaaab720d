//! Ethernet frames around IPv4 packets (IEEE 802.3, with an EtherType).

/// The octets of a header.
pub const HEADER: usize = 14;
/// The EtherType of IPv4.
const IPV4: [u8; 2] = [0x08, 0x00];
/// The addresses of both ends, which are administered locally.
const DESTINATION: [u8; 6] = [0x02, 0, 0, 0, 0x77, 0x02];
const SOURCE: [u8; 6] = [0x02, 0, 0, 0, 0x77, 0x01];

/// The first 14 octets of a frame that carries IPv4.
#[must_use]
pub fn header() -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..6].copy_from_slice(&DESTINATION);
    header[6..12].copy_from_slice(&SOURCE);
    header[12..].copy_from_slice(&IPV4);
    header
}

/// The frame around an IPv4 packet.
#[must_use]
pub fn frame(packet: &[u8]) -> Vec<u8> {
    [&header()[..], packet].concat()
}

/// The IPv4 packet in a frame, if it has one.
#[must_use]
pub fn packet(frame: &[u8]) -> Option<&[u8]> {
    frame.split_at_checked(HEADER).filter(|(header, _)| header[12..] == IPV4).map(|(_, packet)| packet)
}
