//! The memory that a decoder may take for values that are larger in memory than on the wire.

use std::fmt;

use super::Decoder;
use crate::CdrError;

/// Grants the memory of decoded values beyond what a [`Decoder`] may take without asking, for example within the
/// limits of a server.
pub trait MemoryGrant: fmt::Debug + Send + Sync {
    /// Grants at least `octets` more. Returns their number.
    ///
    /// # Errors
    /// [`CdrError::TooMuchMemory`] or [`CdrError::NoMemory`].
    fn grant(&self, octets: usize) -> Result<usize, CdrError>;
}

/// The memory that a decoder may still take.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodingMemory<'m> {
    left: usize,
    limit: usize,
    more: Option<&'m dyn MemoryGrant>,
}

impl DecodingMemory<'_> {
    /// Without a limit.
    pub(super) const UNLIMITED: Self = Self { left: usize::MAX, limit: usize::MAX, more: None };
}

impl<'m> Decoder<'m> {
    /// The same decoder, which may take this many octets of memory beyond those of the message.
    #[inline]
    #[must_use]
    pub fn with_memory_limit(mut self, limit: usize) -> Self {
        self.memory = DecodingMemory { left: limit, limit, more: None };
        self
    }

    /// The same decoder, which may take `octets` of memory beyond those of the message, and asks for more.
    #[inline]
    #[must_use]
    pub fn with_memory_grant(mut self, octets: usize, more: &'m dyn MemoryGrant) -> Self {
        self.memory = DecodingMemory { left: octets, limit: octets, more: Some(more) };
        self
    }

    /// Counts the memory of `len` elements of `T` beyond their `min_octets` each on the wire.
    #[inline]
    pub(crate) fn count_elements<T>(&mut self, len: usize, min_octets: usize) -> Result<(), CdrError> {
        let beyond = size_of::<T>().saturating_sub(min_octets);
        if beyond == 0 { Ok(()) } else { self.count_memory(len.saturating_mul(beyond)) }
    }

    /// Counts memory before it is taken.
    #[inline]
    pub(crate) fn count_memory(&mut self, octets: usize) -> Result<(), CdrError> {
        match self.memory.left.checked_sub(octets) {
            Some(left) => {
                self.memory.left = left;
                Ok(())
            }
            None => self.ask_for_memory(octets),
        }
    }

    #[cold]
    fn ask_for_memory(&mut self, octets: usize) -> Result<(), CdrError> {
        let Some(more) = self.memory.more else { return Err(CdrError::TooMuchMemory { limit: self.memory.limit }) };
        let missing = octets - self.memory.left;
        self.memory.left = more.grant(missing)? - missing;
        Ok(())
    }
}
