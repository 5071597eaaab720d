//! Keys of handlers: index and generation.

use std::fmt;

/// Identifies a handler in its reactor. Never reused, so a stale identifier has no effect.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerId(pub(crate) Key);

/// Slot and generation of a handler. Never zero, since generations begin at one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(pub(crate) u64);

impl Key {
    pub(crate) fn new(index: u32, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(index))
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the low half is meant")]
    pub(crate) fn index(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl fmt::Debug for HandlerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandlerId({}v{})", self.0.index(), self.0.generation())
    }
}
