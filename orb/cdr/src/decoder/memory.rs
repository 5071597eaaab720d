//! The memory that a decoder may take for values that are larger in memory than on the wire.

use std::fmt;

use crate::CdrError;

/// Grants the memory of decoded values beyond what a [`Decoder`](crate::Decoder) may take without asking, for example
/// within the limits of a server.
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

impl<'m> DecodingMemory<'m> {
    /// Memory that no limit bounds.
    pub(super) const UNLIMITED: Self = Self { left: usize::MAX, limit: usize::MAX, more: None };

    /// `limit` octets, and what is granted beyond.
    #[inline]
    pub(super) fn new(limit: usize, more: Option<&'m dyn MemoryGrant>) -> Self {
        Self { left: limit, limit, more }
    }

    /// Counts memory before it is taken.
    #[inline]
    pub(super) fn count(&mut self, octets: usize) -> Result<(), CdrError> {
        match self.left.checked_sub(octets) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => self.ask(octets),
        }
    }

    #[cold]
    fn ask(&mut self, octets: usize) -> Result<(), CdrError> {
        let Some(more) = self.more else { return Err(CdrError::TooMuchMemory { limit: self.limit }) };
        let missing = octets - self.left;
        self.left = more.grant(missing)? - missing;
        Ok(())
    }
}
