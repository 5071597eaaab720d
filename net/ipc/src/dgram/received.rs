//! The result of a receive.

/// The result of one receive: the number of octets in the buffer, and whether they are the whole datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the datagram may have been cut"]
pub struct Received {
    len: usize,
    truncated: bool,
    whole: Option<usize>,
}

impl Received {
    /// The number of octets in the buffer.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "an empty datagram is not nothing")]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the datagram was longer than the buffer (`MSG_TRUNC`). The rest of it is lost.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// The length of the datagram as sent. `None` if it was truncated by a system that does not report it
    /// (all but Linux).
    #[must_use]
    pub const fn datagram_len(&self) -> Option<usize> {
        self.whole
    }

    /// A datagram of `whole` octets received into a buffer of `room`.
    #[inline]
    pub(crate) const fn of(whole: usize, room: usize) -> Self {
        let truncated = whole > room;
        Self { len: if truncated { room } else { whole }, truncated, whole: Some(whole) }
    }

    /// For a system that reports the number of octets in the buffer, and whether the datagram was longer.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) const fn part(len: usize, truncated: bool) -> Self {
        Self { len, truncated, whole: if truncated { None } else { Some(len) } }
    }
}
