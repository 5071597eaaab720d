//! Octets after their length.

use std::io;

use super::{FoundFrame, Framing, not_encodable, too_long};

/// Content after its length in octets, an unsigned number of two or four octets in network byte order (big
/// endian) that does not count itself.
#[derive(Clone, Debug)]
pub struct LengthPrefix {
    width: usize,
    limit: usize,
    is_little_endian: bool,
}

impl LengthPrefix {
    /// A length of two octets, at most `limit`.
    #[must_use]
    pub fn u16(limit: u16) -> Self {
        Self { width: 2, limit: usize::from(limit), is_little_endian: false }
    }

    /// A length of four octets, at most `limit`. A frame takes memory as its octets arrive, whatever its
    /// length says.
    #[must_use]
    pub fn u32(limit: u32) -> Self {
        Self { width: 4, limit: usize::try_from(limit).unwrap_or(usize::MAX), is_little_endian: false }
    }

    /// The length has its least significant octet first.
    #[must_use]
    pub fn little_endian(mut self) -> Self {
        self.is_little_endian = true;
        self
    }
}

impl Framing for LengthPrefix {
    fn find(&mut self, input: &[u8]) -> io::Result<Option<FoundFrame>> {
        let Some(prefix) = input.get(..self.width) else { return Ok(None) };
        let append = |length: usize, octet: &u8| length << 8 | usize::from(*octet);
        let length = match self.is_little_endian {
            true => prefix.iter().rev().fold(0, append),
            false => prefix.iter().fold(0, append),
        };
        if length > self.limit {
            return Err(too_long(format_args!("a frame of {length} octets"), self.limit));
        }
        if input.len() - self.width < length {
            return Ok(None);
        }
        let len = self.width + length;
        Ok(Some(FoundFrame { content: self.width..len, len }))
    }

    fn encode(&self, content: &[u8]) -> io::Result<Vec<u8>> {
        let length = u32::try_from(content.len())
            .ok()
            .filter(|_| content.len() <= self.limit)
            .ok_or_else(|| not_encodable(format_args!("{} octets, the limit is {}", content.len(), self.limit)))?;
        let (big, little) = (length.to_be_bytes(), length.to_le_bytes());
        let prefix = if self.is_little_endian { &little[..self.width] } else { &big[4 - self.width..] };
        Ok([prefix, content].concat())
    }
}
