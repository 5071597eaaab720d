//! UDP headers (RFC 768).

use spandrel_message::MessageBlock;

use crate::WireError;
use crate::ip::{self, Ipv4Header};

/// The octets of a header, before the data of a datagram.
pub const HEADER: usize = 8;

/// The ports of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpHeader {
    /// The port of the sender.
    pub source: u16,
    /// The port of the receiver.
    pub destination: u16,
}

impl UdpHeader {
    /// Decodes the datagram that an IP packet carries; returns the ports and the number of octets of data, which follow
    /// the header.
    ///
    /// # Errors
    /// [`WireError`]: a length that does not fit the packet, a wrong checksum. A datagram without a checksum is valid.
    pub fn decode(ip: &Ipv4Header, datagram: &[u8]) -> Result<(Self, usize), WireError> {
        let header: &[u8; HEADER] = datagram.first_chunk().ok_or(WireError::Truncated)?;
        let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let length = usize::from(field(4));
        if length < HEADER || length > datagram.len() {
            return Err(WireError::Length);
        }
        if field(6) != 0 {
            let mut sum = Ipv4Header { payload: length, ..*ip }.pseudo_header();
            sum.add(&datagram[..length]);
            if sum.checksum() != 0 {
                return Err(WireError::Checksum);
            }
        }
        Ok((Self { source: field(0), destination: field(2) }, length - HEADER))
    }

    /// Encodes a datagram with its IP header, from one address to another.
    ///
    /// # Errors
    /// [`WireError::Length`] for more data than a packet takes.
    pub fn packet(
        &self,
        source: std::net::Ipv4Addr,
        destination: std::net::Ipv4Addr,
        data: &MessageBlock,
    ) -> Result<Vec<u8>, WireError> {
        let payload = HEADER + data.total_len();
        let ip = Ipv4Header { source, destination, protocol: ip::UDP, payload };
        let mut packet = Vec::with_capacity(ip::HEADER + payload);
        packet.extend_from_slice(&ip.encode()?);
        for field in [self.source, self.destination, payload as u16, 0] {
            packet.extend_from_slice(&field.to_be_bytes());
        }
        data.links().for_each(|link| packet.extend_from_slice(link));
        let mut sum = ip.pseudo_header();
        sum.add(&packet[ip::HEADER..]);
        let checksum = match sum.checksum() {
            0 => 0xffff, // 0 means that there is none
            checksum => checksum,
        };
        packet[ip::HEADER + 6..ip::HEADER + 8].copy_from_slice(&checksum.to_be_bytes());
        Ok(packet)
    }
}
