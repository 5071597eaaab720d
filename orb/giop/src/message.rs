//! Whole messages. `assembler` joins those that arrive in fragments.

use std::fmt;

use spandrel_cdr::{Decoder, Joint, Limits, Wire};
use spandrel_message::MessageBlock;

use crate::{GiopError, HEADER_LEN, MessageHeader};

/// The octets from which on it pays to keep a message in the memory in which it arrived.
const LONG: usize = 16 * 1024;

/// One whole message, with its fragments joined.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// The message header; of a joined message, the header of the whole.
    pub header: MessageHeader,
    pub(crate) octets: MessageBlock,
    /// Positions at which alignment restarts: between fragments of GIOP 1.1.
    pub(crate) joints: Box<[Joint]>,
}

impl Message {
    /// A message in one piece, never fragmented.
    ///
    /// # Errors
    /// The errors of [`MessageHeader::parse`]; [`GiopError::LengthMismatch`] if the header announces another
    /// length.
    #[inline]
    pub fn whole(octets: MessageBlock) -> Result<Self, GiopError> {
        let mismatch = |announced| GiopError::LengthMismatch { announced, found: octets.len() };
        let header = MessageHeader::parse(octets.first_chunk().ok_or_else(|| mismatch(HEADER_LEN))?)?;
        if header.total_len() != octets.len() {
            return Err(mismatch(header.total_len()));
        }
        Ok(Self { header, octets, joints: Box::default() })
    }

    /// All octets, header included.
    #[inline]
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// The block that holds the octets, from which parts can be retained.
    #[inline]
    #[must_use]
    pub fn block(&self) -> &MessageBlock {
        &self.octets
    }

    /// The octets of a message that is [kept](Self::kept), or zero if these are charged to an account for as
    /// long as they are in memory.
    #[must_use]
    pub fn uncharged_len(&self) -> usize {
        if self.octets.is_charged() && self.octets.len() >= LONG { 0 } else { self.octets.len() }
    }

    /// The message in memory that holds nothing else. For a message that is retained while others are read
    /// into the memory in which it arrived.
    #[must_use]
    pub fn into_own_memory(self) -> Self {
        Self { octets: MessageBlock::from(&*self.octets), ..self }
    }

    /// A copy of the message for retention while others are read. It gets memory of its own, unless the
    /// message is long enough to justify retention of the memory in which it arrived.
    #[must_use]
    pub fn kept(&self) -> Self {
        if self.octets.len() < LONG { self.clone().into_own_memory() } else { self.clone() }
    }

    /// As [`kept`](Self::kept), in the memory of an unused block if there is one that suffices.
    #[must_use]
    pub fn kept_in(&self, unused: Option<MessageBlock>) -> Self {
        if unused.is_none() || self.octets.len() >= LONG {
            return self.kept();
        }
        Self {
            header: self.header,
            octets: MessageBlock::copied_into(unused, &self.octets),
            joints: self.joints.clone(),
        }
    }

    /// The memory of a [kept](Self::kept) message, for another message; `None` if the message arrived in this
    /// memory.
    #[must_use]
    pub fn reusable_block(&self) -> Option<MessageBlock> {
        (self.octets.len() < LONG).then(|| self.octets.clone())
    }

    /// A decoder that starts after the message header and aligns from the message's first octet.
    #[inline]
    #[must_use]
    pub fn decoder(&self, limits: Limits) -> Decoder<'_> {
        let wire = Wire { limits, ..Wire::new(self.header.order, self.header.version) };
        let memory = limits.decoded_memory(self.octets.len());
        let mut decoder = Decoder::new(&self.octets, wire).with_memory_limit(memory, None).at(HEADER_LEN);
        if !self.joints.is_empty() {
            decoder = decoder.with_joints(&self.joints);
        }
        decoder
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header.fmt(f)
    }
}
