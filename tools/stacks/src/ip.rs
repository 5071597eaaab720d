//! IPv4 headers (RFC 791), without options and fragments.

use std::net::Ipv4Addr;

use crate::WireError;
use crate::checksum::{Sum, checksum};

/// The octets of a header without options.
pub const HEADER: usize = 20;
/// The protocol number of TCP.
pub const TCP: u8 = 6;
/// The protocol number of UDP.
pub const UDP: u8 = 17;

/// An IPv4 header. Its data is neither fragmented nor to be fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// The address of the sender.
    pub source: Ipv4Addr,
    /// The address of the receiver.
    pub destination: Ipv4Addr,
    /// The number of the protocol above: [`TCP`] or [`UDP`].
    pub protocol: u8,
    /// The octets behind the header.
    pub payload: usize,
}

impl Ipv4Header {
    /// Decodes the header at the start of a packet; returns it with its length in octets. Options are ignored, and so
    /// are octets behind the packet, with which a data link may fill short frames.
    ///
    /// # Errors
    /// [`WireError`]: not IPv4, lengths beyond the packet, a wrong checksum, a fragment.
    pub fn decode(packet: &[u8]) -> Result<(Self, usize), WireError> {
        let fixed: &[u8; HEADER] = packet.first_chunk().ok_or(WireError::Truncated)?;
        let header = usize::from(fixed[0] & 0xf) * 4;
        if fixed[0] >> 4 != 4 {
            return Err(WireError::Unsupported);
        }
        let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if header < HEADER || total < header || packet.len() < total {
            return Err(WireError::Length);
        }
        if checksum(&packet[..header]) != 0 {
            return Err(WireError::Checksum);
        }
        // The offset of the fragment, and the flag for further fragments.
        if u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0 {
            return Err(WireError::Unsupported);
        }
        let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
        let decoded =
            Self { source: address(12), destination: address(16), protocol: fixed[9], payload: total - header };
        Ok((decoded, header))
    }

    /// Encodes the header, with the flag that forbids fragments and 64 hops.
    ///
    /// # Errors
    /// [`WireError::Length`] for a packet beyond 65,535 octets.
    pub fn encode(&self) -> Result<[u8; HEADER], WireError> {
        let total = u16::try_from(HEADER + self.payload).map_err(|_| WireError::Length)?.to_be_bytes();
        let mut octets = [0; HEADER];
        octets[..10].copy_from_slice(&[0x45, 0, total[0], total[1], 0, 0, 0x40, 0, 64, self.protocol]);
        octets[12..16].copy_from_slice(&self.source.octets());
        octets[16..].copy_from_slice(&self.destination.octets());
        let sum = checksum(&octets);
        octets[10..12].copy_from_slice(&sum.to_be_bytes());
        Ok(octets)
    }

    /// The sum over the pseudo-header with which the checksums of TCP and UDP begin (RFC 9293, 3.1; RFC 768).
    #[must_use]
    pub fn pseudo_header(&self) -> Sum {
        let mut sum = Sum::default();
        sum.add(&self.source.octets());
        sum.add(&self.destination.octets());
        sum.add(&[0, self.protocol]);
        sum.add(&(self.payload as u16).to_be_bytes());
        sum
    }
}
