//! The wire form, on which both ends must agree: byte order, protocol version, code sets.

use std::fmt;

use crate::{CharSet, Limits, WcharSet};

/// The order of the octets of a number on the wire.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ByteOrder {
    /// Most significant octet first (flag 0).
    Big,
    /// Least significant octet first (flag 1).
    Little,
}

impl ByteOrder {
    /// The order of this machine: its numbers need no swapping.
    pub const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };

    /// Whether numbers must be swapped between the wire and this machine.
    #[inline]
    #[must_use]
    pub fn is_swapped(self) -> bool {
        self != Self::NATIVE
    }

    /// The order that the lowest bit of a flags octet announces (CORBA 3.3 Part 2, 9.4.1).
    #[inline]
    #[must_use]
    pub fn from_flag(flags: u8) -> Self {
        if flags & 1 == 0 { Self::Big } else { Self::Little }
    }

    /// The value of the flag bit in message headers and encapsulations.
    #[inline]
    #[must_use]
    pub fn flag(self) -> u8 {
        match self {
            Self::Big => 0,
            Self::Little => 1,
        }
    }
}

/// The GIOP version of a message, or the highest one of a profile.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct GiopVersion {
    /// Always 1 so far.
    pub major: u8,
    /// 0 to 2 are defined for IIOP.
    pub minor: u8,
}

impl GiopVersion {
    /// GIOP 1.0: no fragments, and no bidirectional use of connections.
    pub const V1_0: Self = Self { major: 1, minor: 0 };
    /// GIOP 1.1: fragments, a tagged component list in profiles.
    pub const V1_1: Self = Self { major: 1, minor: 1 };
    /// GIOP 1.2: addressing dispositions, bodies aligned to eight.
    pub const V1_2: Self = Self { major: 1, minor: 2 };
}

impl fmt::Display for GiopVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The wire form of octets: the parameters of encoding and decoding.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wire {
    /// Order of the octets of a number.
    pub order: ByteOrder,
    /// Protocol version; some types have different encodings in different versions.
    pub version: GiopVersion,
    /// Limits for well-formed input.
    pub limits: Limits,
    /// The code set of narrow characters.
    pub char_set: CharSet,
    /// The code set of wide characters.
    pub wchar_set: WcharSet,
}

impl Wire {
    /// A wire form with default limits and code sets.
    #[must_use]
    pub fn new(order: ByteOrder, version: GiopVersion) -> Self {
        Self { order, version, limits: Limits::default(), char_set: CharSet::default(), wchar_set: WcharSet::default() }
    }
}

impl Default for Wire {
    /// GIOP 1.2 in this machine's byte order.
    fn default() -> Self {
        Self::new(ByteOrder::NATIVE, GiopVersion::V1_2)
    }
}
