//! The message header: the first twelve octets of every message (CORBA 3.3 Part 2, 9.4.1).
//!
//! `"GIOP" | octet major, minor | octet flags (1.0: boolean byte_order) | octet message_type | ulong
//! message_size`

use std::fmt;

use spandrel_cdr::{ByteOrder, GiopVersion};

use crate::{GiopError, MessageType};

/// Octets of a message header.
pub const HEADER_LEN: usize = 12;

pub(crate) const MAGIC: [u8; 4] = *b"GIOP";
const MORE_FRAGMENTS: u8 = 2;

/// The first twelve octets of each GIOP message (9.4.1), decoded and checked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MessageHeader {
    /// The protocol version of the rest of the message.
    pub version: GiopVersion,
    /// The byte order of the rest of the message, and of its size.
    pub order: ByteOrder,
    /// Whether fragments with the rest of the message follow (GIOP 1.1 and later).
    pub more_fragments: bool,
    /// The kind of the message, which tells how the rest is decoded.
    pub message_type: MessageType,
    /// Octets after the header.
    pub size: u32,
}

impl MessageHeader {
    /// Decodes a header. Reserved flag bits are ignored, as in other ORBs.
    ///
    /// # Errors
    /// [`GiopError::BadMagic`], [`GiopError::UnsupportedVersion`], [`GiopError::BadByteOrder`],
    /// [`GiopError::UnknownMessageType`].
    #[inline]
    pub fn parse(octets: &[u8; HEADER_LEN]) -> Result<Self, GiopError> {
        let [m0, m1, m2, m3, major, minor, flags, message_type, s0, s1, s2, s3] = *octets;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(GiopError::BadMagic([m0, m1, m2, m3]));
        }
        let version = GiopVersion { major, minor };
        if major != 1 || minor > 2 {
            return Err(GiopError::UnsupportedVersion(version));
        }
        if minor == 0 && flags > 1 {
            return Err(GiopError::BadByteOrder(flags));
        }
        let order = ByteOrder::from_flag(flags);
        let message_type = match MessageType::ALL.get(usize::from(message_type)) {
            Some(MessageType::Fragment) if minor == 0 => None,
            other => other.copied(),
        }
        .ok_or(GiopError::UnknownMessageType { version, value: message_type })?;
        let size = match order {
            ByteOrder::Big => u32::from_be_bytes([s0, s1, s2, s3]),
            ByteOrder::Little => u32::from_le_bytes([s0, s1, s2, s3]),
        };
        Ok(Self { version, order, more_fragments: flags & MORE_FRAGMENTS != 0, message_type, size })
    }

    /// Encodes the header in its byte order.
    #[inline]
    #[must_use]
    pub fn to_octets(&self) -> [u8; HEADER_LEN] {
        let flags = self.order.flag() | if self.more_fragments { MORE_FRAGMENTS } else { 0 };
        let [m0, m1, m2, m3] = MAGIC;
        let [s0, s1, s2, s3] = match self.order {
            ByteOrder::Big => self.size.to_be_bytes(),
            ByteOrder::Little => self.size.to_le_bytes(),
        };
        [m0, m1, m2, m3, self.version.major, self.version.minor, flags, self.message_type as u8, s0, s1, s2, s3]
    }

    /// Octets of the whole message, this header included.
    #[inline]
    #[must_use]
    pub fn total_len(&self) -> usize {
        HEADER_LEN.saturating_add(self.size as usize)
    }

    /// Rejects a message of more than `limit` octets, header included. Call it before memory is reserved.
    ///
    /// # Errors
    /// [`GiopError::TooLarge`].
    #[inline]
    pub fn check(&self, limit: usize) -> Result<(), GiopError> {
        let len = self.total_len();
        if len > limit { Err(GiopError::TooLarge { len, limit }) } else { Ok(()) }
    }
}

impl fmt::Display for MessageHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            ByteOrder::Big => "big-endian",
            ByteOrder::Little => "little-endian",
        };
        write!(f, "GIOP {} {}, {order}, {} octets", self.version, self.message_type, self.size)?;
        if self.more_fragments { f.write_str(", more fragments follow") } else { Ok(()) }
    }
}

/// A message that consists of its header only: CloseConnection or MessageError.
#[must_use]
pub fn bare_message(version: GiopVersion, order: ByteOrder, message_type: MessageType) -> [u8; HEADER_LEN] {
    MessageHeader { version, order, more_fragments: false, message_type, size: 0 }.to_octets()
}
