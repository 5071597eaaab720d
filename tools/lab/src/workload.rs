//! The transferred data: the papers' data types, in buffers of a given size.
//!
//! A workload is plain data that both processes of an experiment understand; the mechanisms transfer it.

use serde::{Deserialize, Serialize};

/// Octets of one `BinStruct`, in the layout of C and of CDR from an aligned start.
pub const BIN_STRUCT_OCTETS: usize = 24;

/// Octets of the answer of a socket mechanism to a two-way transfer: as many as a GIOP 1.2 reply without
/// results.
pub const ANSWER_OCTETS: usize = 24;

/// The largest buffer that a receiver accepts: a control connection is not trusted to request more memory.
pub const MAX_BUFFER_OCTETS: usize = 64 << 20;

/// An element type of the transferred sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DataType {
    /// `short`, integers of 16 bits.
    Short,
    /// `char`, one octet of text.
    Char,
    /// `long`, integers of 32 bits.
    Long,
    /// `octet`, which no code set converts.
    Octet,
    /// `double`, numbers of 64 bits.
    Double,
    /// `BinStruct`: one of each of the others.
    Struct,
}

impl DataType {
    /// All types, in the papers' order.
    pub const ALL: [Self; 6] = [Self::Short, Self::Char, Self::Long, Self::Octet, Self::Double, Self::Struct];

    /// Octets of user data in one element.
    #[must_use]
    pub fn element_octets(self) -> usize {
        match self {
            Self::Char | Self::Octet => 1,
            Self::Short => 2,
            Self::Long => 4,
            Self::Double => 8,
            Self::Struct => BIN_STRUCT_OCTETS,
        }
    }

    /// Whether the papers' tables count it among the scalars.
    #[must_use]
    pub fn is_scalar(self) -> bool {
        self != Self::Struct
    }

    /// Several elements in words.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Short => "shorts",
            Self::Char => "chars",
            Self::Long => "longs",
            Self::Octet => "octets",
            Self::Double => "doubles",
            Self::Struct => "structs",
        }
    }

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Char => "char",
            Self::Long => "long",
            Self::Octet => "octet",
            Self::Double => "double",
            Self::Struct => "struct",
        }
    }
}

/// Whether the transmitter waits for an answer to each buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    /// Buffers follow each other; only the last is acknowledged.
    OneWay,
    /// Each buffer is answered before the next is sent.
    TwoWay,
}

impl CallKind {
    /// Both kinds, one-way first.
    pub const ALL: [Self; 2] = [Self::OneWay, Self::TwoWay];

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneWay => "oneway",
            Self::TwoWay => "twoway",
        }
    }
}

/// Text forms of a type with named values, all of which are in its `ALL`.
macro_rules! named {
    ($type:ident, $what:literal) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::LabError;

            fn from_str(text: &str) -> Result<Self, $crate::LabError> {
                Self::ALL.into_iter().find(|item| item.name() == text).ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|item| item.name()).collect();
                    $crate::LabError::Settings(format!("`{text}` is not a {}; there are {}", $what, names.join(", ")))
                })
            }
        }
    };
}
pub(crate) use named;

named!(DataType, "data type");
named!(CallKind, "kind of call");

/// One flood: equal buffers of one type, sent as fast as they are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flood {
    /// The IDL type of the elements.
    pub data: DataType,
    /// Whether each buffer is answered.
    pub call: CallKind,
    /// The buffer's nominal size in octets; it holds as many whole elements as fit.
    pub buffer_octets: usize,
    /// The number of buffers sent.
    pub buffers: u64,
}

impl Flood {
    /// A flood of at least `total` octets (and at least one buffer).
    #[must_use]
    pub fn with_total(data: DataType, call: CallKind, buffer_octets: usize, total: u64) -> Self {
        let mut flood = Self { data, call, buffer_octets, buffers: 1 };
        flood.buffers = total.div_ceil(flood.sent_octets() as u64).max(1);
        flood
    }

    /// Elements in one buffer; at least one, however small the buffer.
    #[must_use]
    pub fn elements(&self) -> usize {
        (self.buffer_octets / self.data.element_octets()).max(1)
    }

    /// Octets of user data in one buffer, for every mechanism; the ORB adds its headers.
    #[must_use]
    pub fn sent_octets(&self) -> usize {
        self.elements() * self.data.element_octets()
    }

    /// Octets of user data in the whole flood.
    #[must_use]
    pub fn total_octets(&self) -> u64 {
        self.buffers.saturating_mul(self.sent_octets() as u64)
    }
}

/// The parameters of one call of a ping-pong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PingCase {
    /// Nothing: the operation `void ping()`.
    Void,
    /// 1,024 `BinStruct`s to the server, nothing back.
    Structs,
}

/// The number of `BinStruct`s in a [`PingCase::Structs`] call.
pub const PING_STRUCTS: usize = 1024;

impl PingCase {
    /// Both cases, without parameters first.
    pub const ALL: [Self; 2] = [Self::Void, Self::Structs];

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Void => "void",
            Self::Structs => "structs",
        }
    }

    /// The text for a table's heading.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Void => "two-way call without parameters",
            Self::Structs => "two-way call with 1,024 BinStructs",
        }
    }
}
named!(PingCase, "kind of ping");

/// One ping-pong: calls that each wait for their answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingPong {
    /// The parameters of a call.
    pub case: PingCase,
    /// Calls before the timed ones.
    pub warm_up: u32,
    /// Calls whose times are recorded.
    pub calls: u32,
    /// Octets that a socket mechanism sends per call: as many as the ORB does.
    pub request_octets: usize,
    /// Octets of a socket mechanism's answer per call: as many as the ORB's.
    pub reply_octets: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_holds_whole_elements() {
        let flood = Flood::with_total(DataType::Struct, CallKind::OneWay, 1024, 64 << 20);
        assert_eq!((flood.elements(), flood.sent_octets()), (42, 1008));
        assert!(flood.total_octets() >= 64 << 20 && flood.total_octets() < (64 << 20) + 1008);
        assert_eq!(Flood::with_total(DataType::Double, CallKind::OneWay, 1, 1).sent_octets(), 8);
    }

    #[test]
    fn names_are_parsed() {
        for data in DataType::ALL {
            assert_eq!(data.to_string().parse::<DataType>().unwrap(), data);
        }
        let error = "float".parse::<DataType>().unwrap_err();
        assert_eq!(error.to_string(), "`float` is not a data type; there are short, char, long, octet, double, struct");
        assert_eq!("twoway".parse::<CallKind>().unwrap(), CallKind::TwoWay);
    }
}
