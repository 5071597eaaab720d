//! What is marshaled: sequences of the papers' types, as Rust values, as memory that an interpreter walks, and described.

use std::hint::black_box;

use spandrel_cdr::{CdrError, Char, Decode, Decoder, Encode, Wire};

use super::ladder::Node;
use crate::workload::{BIN_STRUCT_OCTETS, DataType};

mod compiled {
    //! Coded by straight-line code.
    spandrel::include_idl!("marshal");
}

/// Elements of a sequence.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Short(Vec<i16>),
    Char(Vec<Char>),
    Long(Vec<i32>),
    Octet(Vec<u8>),
    Double(Vec<f64>),
    Struct(Vec<compiled::BinStruct>),
}

impl Data {
    /// So many octets of user data, less what would be no whole element.
    pub(super) fn new(data_type: DataType, octets: usize) -> Self {
        let count = 0..octets / data_type.element_octets();
        match data_type {
            DataType::Short => Self::Short(count.map(|n| n as i16).collect()),
            DataType::Char => Self::Char(count.map(|n| Char(n as u8)).collect()),
            DataType::Long => Self::Long(count.map(|n| n as i32).collect()),
            DataType::Octet => Self::Octet(count.map(|n| n as u8).collect()),
            DataType::Double => Self::Double(count.map(|n| n as f64).collect()),
            DataType::Struct => Self::Struct(count.map(bin_struct).collect()),
        }
    }

    /// The sequence's type, described.
    pub(super) fn node(&self) -> Node {
        Node::sequence(match self {
            Self::Octet(_) | Self::Char(_) => Node::octet(),
            Self::Short(_) => Node::short(),
            Self::Long(_) => Node::long(),
            Self::Double(_) => Node::double(),
            Self::Struct(_) => {
                Node::structure(vec![Node::short(), Node::octet(), Node::long(), Node::octet(), Node::double()])
            }
        })
    }

    /// The elements as C has them in memory.
    pub(super) fn memory(&self) -> Vec<u8> {
        match self {
            Self::Short(items) => items.iter().flat_map(|item| item.to_ne_bytes()).collect(),
            Self::Char(items) => items.iter().map(|item| item.0).collect(),
            Self::Long(items) => items.iter().flat_map(|item| item.to_ne_bytes()).collect(),
            Self::Octet(items) => items.clone(),
            Self::Double(items) => items.iter().flat_map(|item| item.to_ne_bytes()).collect(),
            Self::Struct(items) => items.iter().flat_map(in_memory).collect(),
        }
    }

    /// The sequence as what [`Encode`] writes.
    pub(super) fn compiled(&self) -> &dyn Encode {
        match self {
            Self::Short(items) => items,
            Self::Char(items) => items,
            Self::Long(items) => items,
            Self::Octet(items) => items,
            Self::Double(items) => items,
            Self::Struct(items) => items,
        }
    }

    /// Reads such a sequence, and lets it go.
    pub(super) fn decode_compiled(&self, octets: &[u8]) -> Result<(), CdrError> {
        fn read<T: Decode>(octets: &[u8], _like: &[T]) -> Result<(), CdrError> {
            Vec::<T>::decode(&mut Decoder::new(octets, Wire::default())).map(|items| drop(black_box(items)))
        }
        match self {
            Self::Short(items) => read(octets, items),
            Self::Char(items) => read(octets, items),
            Self::Long(items) => read(octets, items),
            Self::Octet(items) => read(octets, items),
            Self::Double(items) => read(octets, items),
            Self::Struct(items) => read(octets, items),
        }
    }
}

fn bin_struct(n: usize) -> compiled::BinStruct {
    compiled::BinStruct { s: n as i16, c: Char((n % 251) as u8), l: n as i32, o: (n % 253) as u8, d: n as f64 }
}

fn in_memory(item: &compiled::BinStruct) -> [u8; BIN_STRUCT_OCTETS] {
    let mut memory = [0; BIN_STRUCT_OCTETS];
    memory[0..2].copy_from_slice(&item.s.to_ne_bytes());
    memory[2] = item.c.0;
    memory[4..8].copy_from_slice(&item.l.to_ne_bytes());
    memory[8] = item.o;
    memory[16..24].copy_from_slice(&item.d.to_ne_bytes());
    memory
}
