//! Tables: the engine's description of a type.
//!
//! A [`Program`] lists a type's parts in the order of their encoding, structs inside structs flattened, so
//! that one loop over at most a few dozen [`Op`]s codes a value. All sizes, alignments and offsets are
//! computed by the compiler.
//!
//! `assemble` makes tables at compile time; the loops that interpret them are in `write` and `read`.

use std::fmt;

use crate::{CdrError, CharSet, Decoder, Encoder};

/// One part of a value; `at` is its offset in memory from the start of the value. Sixteen octets.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// `count` numbers or octets in a row, each of `width` octets (1, 2, 4 or 8) and aligned to its width;
    /// any bits are valid.
    Plain {
        /// Octets of one number.
        width: u8,
        /// Offset of the first number.
        at: u32,
        /// Number of elements in the row.
        count: u32,
    },
    /// `count` booleans in a row.
    Bool {
        /// Offset of the first boolean.
        at: u32,
        /// Number of booleans in the row.
        count: u32,
    },
    /// `count` characters of one octet in a row, each of which may be another octet on the wire.
    Char {
        /// Offset of the first character.
        at: u32,
        /// Number of characters in the row.
        count: u32,
    },
    /// An enumerator, a `u32` in memory and in CDR.
    Enum {
        /// Offset of the enumerator.
        at: u32,
        /// The name of the enum, and the number of its enumerators.
        table: &'static EnumTable,
    },
    /// A string of at most `bound` characters.
    Text {
        /// Offset of the string.
        at: u32,
        /// `u32::MAX` without a bound.
        bound: u32,
    },
    /// A sequence of any element type.
    Sequence {
        /// Offset of the vector.
        at: u32,
        /// The element type, the bound and the functions of the vector.
        table: &'static SequenceTable,
    },
    /// An array of parts that are not plain.
    Array {
        /// Offset of the first element.
        at: u32,
        /// The element type and the number of elements.
        table: &'static ArrayTable,
    },
    /// A type with an encoding of its own.
    Opaque {
        /// Offset of the value.
        at: u32,
        /// The functions that encode, decode and drop the value.
        table: &'static OpaqueTable,
    },
    /// A header: the next ops, first `zeros` of [`Op::Zero`] and then `leaves` plain parts, booleans and
    /// enumerators, have the same layout in memory and in CDR, if the first of them starts at a multiple of
    /// `align` in the message.
    Run {
        /// Alignment of the first leaf.
        first: u8,
        /// The largest alignment of the leaves.
        align: u8,
        /// Offset of the first leaf.
        at: u32,
        /// Octets from its start to the end of the last leaf.
        octets: u32,
        /// Number of leaves in the run.
        leaves: u8,
        /// Number of gaps between the leaves.
        zeros: u8,
        /// Whether some leaves must be validated.
        checked: bool,
    },
    /// A gap between the leaves of the preceding run: `octets` without meaning, zero on the wire.
    Zero {
        /// Offset of the gap.
        at: u32,
        /// Length of the gap.
        octets: u32,
    },
}

impl Op {
    /// The same part of a value that begins `by` octets later.
    pub(super) const fn moved(mut self, by: u32) -> Self {
        match &mut self {
            Self::Plain { at, .. }
            | Self::Bool { at, .. }
            | Self::Char { at, .. }
            | Self::Enum { at, .. }
            | Self::Text { at, .. }
            | Self::Sequence { at, .. }
            | Self::Array { at, .. }
            | Self::Opaque { at, .. }
            | Self::Run { at, .. }
            | Self::Zero { at, .. } => *at += by,
        }
        self
    }

    /// Offset, alignment and octets of a leaf, the same in memory as in CDR.
    pub(super) const fn leaf(self) -> Option<Leaf> {
        let (at, width, count) = match self {
            Self::Plain { width, at, count } => (at, width as usize, count as usize),
            Self::Bool { at, count } | Self::Char { at, count } => (at, 1, count as usize),
            Self::Enum { at, .. } => (at, 4, 1),
            _ => return None,
        };
        // An empty part has no alignment either.
        if count == 0 { None } else { Some(Leaf { at: at as usize, width, octets: width * count }) }
    }

    /// Whether some octets are invalid for the leaf.
    pub(super) const fn is_checked(self) -> bool {
        matches!(self, Self::Bool { .. } | Self::Enum { .. })
    }

    /// Whether a value of this part owns memory.
    pub(super) const fn owns(self) -> bool {
        matches!(self, Self::Text { .. } | Self::Sequence { .. } | Self::Array { .. } | Self::Opaque { .. })
    }
}

/// A part without indirection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    /// Offset from the start of the value, in memory.
    pub(super) at: usize,
    /// Octets and alignment of one number.
    pub(super) width: usize,
    /// Octets of all numbers.
    pub(super) octets: usize,
}

/// The layout of all values of a type of fixed layout, in the sense of [`FixedSize`](crate::FixedSize).
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    /// Alignment of the first leaf.
    pub(super) first: u8,
    /// The largest alignment of any leaf.
    pub(super) align: u8,
    /// Whether memory and CDR agree, for the next element of a sequence too.
    pub(super) block: bool,
    /// Octets from an aligned start to the end of the last leaf.
    pub(super) octets: u32,
}

impl Fixed {
    /// The distance between two aligned elements of a sequence.
    pub(super) const fn stride(self) -> usize {
        (self.octets as usize).next_multiple_of(self.align as usize)
    }

    /// Whether the element after an aligned one is aligned too.
    pub(super) const fn is_uniform(self) -> bool {
        (self.octets as usize).next_multiple_of(self.first as usize).is_multiple_of(self.align as usize)
    }
}

/// The table by which the engine encodes and decodes a type.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub(super) ops: &'static [Op],
    /// Octets in memory, the distance between elements of a slice.
    pub(super) memory: u32,
    /// Octets of the smallest encoding.
    pub(super) least: u32,
    pub(super) fixed: Option<Fixed>,
    /// Alignment of a value in memory.
    pub(super) memory_align: u8,
    /// Whether it is a primitive or an array of them, which continue across a joint of fragments.
    pub(super) is_number: bool,
}

impl Program {
    /// The parts of a value in the order of their encoding.
    #[must_use]
    pub const fn ops(&self) -> &'static [Op] {
        self.ops
    }

    /// Octets of the smallest encoding, at least 1.
    #[must_use]
    pub const fn min_octets(&self) -> usize {
        if self.least == 0 { 1 } else { self.least as usize }
    }

    /// Whether some of its octets differ in this code set.
    #[inline]
    pub(super) fn is_converted(&self, set: CharSet) -> bool {
        set.converts_chars() && self.ops.iter().any(|op| matches!(op, Op::Char { .. }))
    }

    /// Whether a slice of such values is its own encoding in this machine's byte order.
    pub(super) const fn is_dense(&self) -> bool {
        match (self.fixed, self.ops) {
            (Some(fixed), [Op::Run { zeros: 0, .. }, ..] | [_]) => fixed.block && fixed.octets == self.memory,
            _ => false,
        }
    }

    /// Octets of the table, without those of the types that it points to.
    #[must_use]
    pub const fn table_octets(&self) -> usize {
        size_of::<Self>() + size_of_val(self.ops)
    }
}

/// The numbers from 0 up to `count` are the enumerators, each in memory as a `u32`.
#[derive(Debug)]
pub struct EnumTable {
    pub(super) name: &'static str,
    pub(super) count: u32,
}

/// The operations on a vector for which the engine needs the element type, because Rust does not define the
/// layout of `Vec`.
pub struct SequenceTable {
    /// The element's table. A function, so that a type's table can refer to itself.
    pub(super) element: fn() -> &'static Program,
    pub(super) parts: unsafe fn(*const u8) -> (*const u8, usize),
    /// Writes a vector of the elements with this capacity, which the global allocator reserved for it.
    pub(super) install: unsafe fn(*mut u8, *mut u8, usize),
    pub(super) drop: unsafe fn(*mut u8),
    /// `u32::MAX` without a bound.
    pub(super) bound: u32,
}

impl fmt::Debug for SequenceTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SequenceTable").field("bound", &self.bound).finish_non_exhaustive()
    }
}

/// The element type and the length, for [`Op::Array`].
pub struct ArrayTable {
    pub(super) element: fn() -> &'static Program,
    pub(super) count: u32,
}

impl fmt::Debug for ArrayTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrayTable").field("count", &self.count).finish_non_exhaustive()
    }
}

/// The functions by which a type encodes and decodes itself, for [`Op::Opaque`].
pub struct OpaqueTable {
    pub(super) encode: EncodeFn,
    pub(super) decode: unsafe fn(*mut u8, &mut Decoder<'_>) -> Result<(), CdrError>,
    pub(super) drop: Option<unsafe fn(*mut u8)>,
}

/// Encodes the value behind the pointer, which lives as long as the encoder's borrows.
pub(super) type EncodeFn = for<'a> unsafe fn(*const u8, &mut Encoder<'a>) -> Result<(), CdrError>;

impl fmt::Debug for OpaqueTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpaqueTable").finish_non_exhaustive()
    }
}
