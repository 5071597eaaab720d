//! TCP segments (RFC 9293, 3.1), with the options for the segment size and the window scale.

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::BitOr;

use spandrel_message::MessageBlock;

use crate::WireError;
use crate::ip::{self, Ipv4Header};

/// The octets of a header without options.
pub const HEADER: usize = 20;

/// The control bits of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronises sequence numbers: the first segment of each side.
    pub const SYN: Self = Self(0x02);
    /// Resets the connection, which ends at once.
    pub const RST: Self = Self(0x04);
    /// The receiver should pass the data to its application at once.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);

    /// Whether all of these bits are set.
    #[inline]
    #[must_use]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These bits except for some.
    #[must_use]
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    /// Whether a bit is set that is none of these.
    #[inline]
    #[must_use]
    pub const fn has_others_than(self, flags: Self) -> bool {
        self.0 & !flags.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let set = names.into_iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        f.write_str(&set.map(|(_, name)| name).collect::<Vec<_>>().join("|"))
    }
}

/// The fields of a TCP header, with the options in use here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpHeader {
    /// The port of the sender.
    pub source: u16,
    /// The port of the receiver.
    pub destination: u16,
    /// The sequence number of the first octet of data, or of the SYN.
    pub sequence: u32,
    /// The sequence number that the sender expects next; valid with [`Flags::ACK`].
    pub acknowledgment: u32,
    /// The control bits, such as SYN.
    pub flags: Flags,
    /// The window in units of the window scale.
    pub window: u16,
    /// The greatest segment that the sender receives, in octets of data (option of a SYN).
    pub max_segment: Option<u16>,
    /// The number of bits by which the sender's windows are shifted (option of a SYN; RFC 7323, 2).
    pub window_scale: Option<u8>,
}

/// A segment: a header and its data, which may be a chain of blocks.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The fields of the header.
    pub header: TcpHeader,
    /// The octets behind the header.
    pub data: MessageBlock,
}

impl TcpHeader {
    /// Decodes the segment that an IP packet carries; returns the header with its length in octets. The data follows
    /// to the end of the packet. Unknown options are skipped.
    ///
    /// # Errors
    /// [`WireError`]: lengths that do not fit, a wrong checksum.
    pub fn decode(ip: &Ipv4Header, segment: &[u8]) -> Result<(Self, usize), WireError> {
        let segment = segment.get(..ip.payload).ok_or(WireError::Truncated)?;
        let fixed: &[u8; HEADER] = segment.first_chunk().ok_or(WireError::Truncated)?;
        let length = usize::from(fixed[12] >> 4) * 4;
        if length < HEADER || length > segment.len() {
            return Err(WireError::Length);
        }
        let mut sum = ip.pseudo_header();
        sum.add(segment);
        if sum.checksum() != 0 {
            return Err(WireError::Checksum);
        }
        let short = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let long = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let mut header = Self {
            source: short(0),
            destination: short(2),
            sequence: long(4),
            acknowledgment: long(8),
            flags: Flags(fixed[13]),
            window: short(14),
            ..Self::default()
        };
        let mut options = &segment[HEADER..length];
        while let [kind, rest @ ..] = options {
            options = match (kind, rest) {
                (0, _) => break,
                (1, rest) => rest,
                (_, [length, ..]) if *length >= 2 && rest.len() + 1 >= usize::from(*length) => {
                    match (kind, &rest[1..usize::from(*length) - 1]) {
                        (2, [high, low]) => header.max_segment = Some(u16::from_be_bytes([*high, *low])),
                        (3, [shift]) => header.window_scale = Some((*shift).min(14)),
                        _ => {}
                    }
                    &rest[usize::from(*length) - 1..]
                }
                _ => return Err(WireError::Length),
            };
        }
        Ok((header, length))
    }
}

impl Segment {
    /// The sequence numbers that the segment takes: its octets of data, and one each for SYN and FIN.
    #[must_use]
    pub fn sequence_len(&self) -> u32 {
        let flags = self.header.flags;
        self.data.total_len() as u32 + u32::from(flags.has(Flags::SYN)) + u32::from(flags.has(Flags::FIN))
    }

    /// Encodes the segment with its IP header, from one address to another.
    ///
    /// # Errors
    /// [`WireError::Length`] for more data than a packet takes.
    pub fn packet(&self, source: Ipv4Addr, destination: Ipv4Addr) -> Result<Vec<u8>, WireError> {
        let header = &self.header;
        let mut options = [1; 8];
        let mut length = 0;
        if let Some(size) = header.max_segment {
            let [high, low] = size.to_be_bytes();
            options[..4].copy_from_slice(&[2, 4, high, low]);
            length = 4;
        }
        if let Some(shift) = header.window_scale {
            options[length..length + 3].copy_from_slice(&[3, 3, shift]);
            length += 4; // with the no-operation behind it
        }
        let payload = HEADER + length + self.data.total_len();
        let ip = Ipv4Header { source, destination, protocol: ip::TCP, payload };
        let mut packet = Vec::with_capacity(ip::HEADER + payload);
        packet.extend_from_slice(&ip.encode()?);
        packet.extend_from_slice(&header.source.to_be_bytes());
        packet.extend_from_slice(&header.destination.to_be_bytes());
        packet.extend_from_slice(&header.sequence.to_be_bytes());
        packet.extend_from_slice(&header.acknowledgment.to_be_bytes());
        packet.extend_from_slice(&[((HEADER + length) as u8 / 4) << 4, header.flags.0]);
        packet.extend_from_slice(&header.window.to_be_bytes());
        packet.extend_from_slice(&[0; 4]); // checksum and urgent pointer
        packet.extend_from_slice(&options[..length]);
        self.data.links().for_each(|link| packet.extend_from_slice(link));
        let mut sum = ip.pseudo_header();
        sum.add(&packet[ip::HEADER..]);
        packet[ip::HEADER + 16..ip::HEADER + 18].copy_from_slice(&sum.checksum().to_be_bytes());
        Ok(packet)
    }
}
