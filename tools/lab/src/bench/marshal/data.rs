//! The marshaled data: sequences of the papers' types, as Rust values, as memory for an interpreter, and
//! described.

use std::hint::black_box;

use spandrel_cdr::engine::{self, Interpreted};
use spandrel_cdr::{CdrError, Char, Decode, Decoder, Encode, Encoder, Wire};

use crate::ladder::Node;
use crate::workload::{BIN_STRUCT_OCTETS, DataType};

/// The struct by each engine.
macro_rules! generated {
    ($($(#[$doc:meta])* $module:ident $path:literal;)*) => {
        $(
            $(#[$doc])*
            mod $module {
                include!(concat!(env!("OUT_DIR"), $path));
            }

            impl From<compiled::BinStruct> for $module::BinStruct {
                #[allow(clippy::needless_update, reason = "one of them has padding")]
                fn from(it: compiled::BinStruct) -> Self {
                    Self { s: it.s, c: it.c, l: it.l, o: it.o, d: it.d, ..Default::default() }
                }
            }
        )*
    };
}

mod compiled {
    //! Marshaled by straight-line code.
    spandrel::include_idl!("marshal");
}

generated! {
    /// Marshaled by an interpreter with a table.
    interpreted "/interpretive/marshal.rs";
    /// Marshaled by that one first, and by straight-line code after frequent use.
    adaptive "/adaptive/marshal.rs";
    /// With the same layout in memory as in messages.
    padded "/padded/marshal.rs";
}

/// The ORB's engines for a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Compiled,
    Interpretive,
    Adaptive,
    Padded,
}

/// The struct for each engine.
#[derive(Clone, Debug)]
pub(super) struct Structs {
    compiled: Vec<compiled::BinStruct>,
    interpreted: Vec<interpreted::BinStruct>,
    adaptive: Vec<adaptive::BinStruct>,
    padded: Vec<padded::BinStruct>,
}

impl Structs {
    fn new(count: usize) -> Self {
        fn all<T: From<compiled::BinStruct>>(count: usize) -> Vec<T> {
            (0..count).map(|n| bin_struct(n).into()).collect()
        }
        Self { compiled: all(count), interpreted: all(count), adaptive: all(count), padded: all(count) }
    }
}

/// Elements of a sequence.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Short(Vec<i16>),
    Char(Vec<Char>),
    Long(Vec<i32>),
    Octet(Vec<u8>),
    Double(Vec<f64>),
    Struct(Structs),
}

impl Data {
    /// User data of `octets` octets, rounded down to whole elements.
    pub(super) fn new(data_type: DataType, octets: usize) -> Self {
        let count = 0..octets / data_type.element_octets();
        match data_type {
            DataType::Short => Self::Short(count.map(|n| n as i16).collect()),
            DataType::Char => Self::Char(count.map(|n| Char(n as u8)).collect()),
            DataType::Long => Self::Long(count.map(|n| n as i32).collect()),
            DataType::Octet => Self::Octet(count.map(|n| n as u8).collect()),
            DataType::Double => Self::Double(count.map(|n| n as f64).collect()),
            DataType::Struct => Self::Struct(Structs::new(count.len())),
        }
    }

    /// The sequence's type, described.
    pub(super) fn node(&self) -> Node {
        Node::sequence_of(match self {
            Self::Short(_) => DataType::Short,
            Self::Char(_) => DataType::Char,
            Self::Long(_) => DataType::Long,
            Self::Octet(_) => DataType::Octet,
            Self::Double(_) => DataType::Double,
            Self::Struct(_) => DataType::Struct,
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
            Self::Struct(items) => items.compiled.iter().flat_map(in_memory).collect(),
        }
    }

    /// Encodes the sequence with one engine.
    pub(super) fn encode<'a>(&'a self, engine: Engine, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        /// The interpreter knows sequences of primitives too; other engines have the same code for them.
        fn write<'a, T: Encode + Interpreted>(
            items: &'a Vec<T>,
            engine: Engine,
            out: &mut Encoder<'a>,
        ) -> Result<(), CdrError> {
            match engine {
                Engine::Interpretive => engine::encode(items, out),
                _ => items.encode(out),
            }
        }
        match self {
            Self::Short(items) => write(items, engine, out),
            Self::Char(items) => write(items, engine, out),
            Self::Long(items) => write(items, engine, out),
            Self::Octet(items) => write(items, engine, out),
            Self::Double(items) => write(items, engine, out),
            Self::Struct(items) => match engine {
                Engine::Compiled => items.compiled.encode(out),
                Engine::Interpretive => engine::encode(&items.interpreted, out),
                Engine::Adaptive => items.adaptive.encode(out),
                Engine::Padded => items.padded.encode(out),
            },
        }
    }

    /// Reads such a sequence, and drops it.
    pub(super) fn decode(&self, engine: Engine, octets: &[u8]) -> Result<(), CdrError> {
        fn keep<T>(items: T) {
            drop(black_box(items));
        }
        fn read<T: Decode + Interpreted>(octets: &[u8], _like: &[T], engine: Engine) -> Result<(), CdrError> {
            let input = &mut Decoder::new(octets, Wire::default());
            match engine {
                Engine::Interpretive => engine::decode::<Vec<T>>(input).map(keep),
                _ => Vec::<T>::decode(input).map(keep),
            }
        }
        match self {
            Self::Short(items) => read(octets, items, engine),
            Self::Char(items) => read(octets, items, engine),
            Self::Long(items) => read(octets, items, engine),
            Self::Octet(items) => read(octets, items, engine),
            Self::Double(items) => read(octets, items, engine),
            Self::Struct(items) => {
                let input = &mut Decoder::new(octets, Wire::default());
                match engine {
                    Engine::Compiled => Vec::<compiled::BinStruct>::decode(input).map(keep),
                    Engine::Interpretive => read(octets, &items.interpreted, engine),
                    Engine::Adaptive => Vec::<adaptive::BinStruct>::decode(input).map(keep),
                    Engine::Padded => Vec::<padded::BinStruct>::decode(input).map(keep),
                }
            }
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
