//! Descriptions of types for a TypeCode interpreter.

use crate::workload::DataType;

/// A type: its kind, and its size and alignment in memory, which the original engine computes each time.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(super) kind: Kind,
    /// Octets in memory, tail padding included; of a sequence, those of an element.
    pub(super) size: usize,
    /// Its alignment in memory, which is that in CDR for primitives.
    pub(super) align: usize,
    /// Its offset in the enclosing struct, if any.
    pub(super) offset: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Octet,
    Short,
    Long,
    Double,
    Struct(Vec<Node>),
    Sequence(Box<Node>),
}

impl Node {
    /// The description of the sequence of a type.
    pub(crate) fn sequence_of(data: DataType) -> Self {
        Self::sequence(match data {
            DataType::Octet | DataType::Char => Self::octet(),
            DataType::Short => Self::short(),
            DataType::Long => Self::long(),
            DataType::Double => Self::double(),
            DataType::Struct => {
                Self::structure(vec![Self::short(), Self::octet(), Self::long(), Self::octet(), Self::double()])
            }
        })
    }

    fn primitive(kind: Kind, size: usize) -> Self {
        Self { kind, size, align: size, offset: 0 }
    }

    /// `octet`, and `char`, which is the same to an engine that converts no characters.
    fn octet() -> Self {
        Self::primitive(Kind::Octet, 1)
    }

    /// The description of a `short`.
    fn short() -> Self {
        Self::primitive(Kind::Short, 2)
    }

    /// The description of a `long`.
    fn long() -> Self {
        Self::primitive(Kind::Long, 4)
    }

    /// The description of a `double`.
    fn double() -> Self {
        Self::primitive(Kind::Double, 8)
    }

    /// A struct, laid out as C does.
    fn structure(mut members: Vec<Self>) -> Self {
        let (mut end, mut align) = (0usize, 1);
        for member in &mut members {
            member.offset = end.next_multiple_of(member.align);
            end = member.offset + member.size;
            align = align.max(member.align);
        }
        Self { kind: Kind::Struct(members), size: end.next_multiple_of(align), align, offset: 0 }
    }

    /// The description of a sequence of such elements.
    fn sequence(element: Self) -> Self {
        Self { size: element.size, align: element.align, offset: 0, kind: Kind::Sequence(Box::new(element)) }
    }
}
