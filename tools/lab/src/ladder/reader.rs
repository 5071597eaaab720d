//! A rung of the ladder as the reading half of a skeleton, and as the writing half of a stub.

use std::hint::black_box;

use super::{Node, Rung, decode, encode};
use crate::LabError;
use crate::workload::DataType;

/// Reads the sequences of requests as one rung of the ladder does.
#[derive(Debug)]
pub(crate) struct RungReader {
    rung: Rung,
    /// The description of the sequence of each type.
    nodes: Vec<(DataType, Node)>,
}

impl RungReader {
    /// Reads sequences of all types by this rung.
    pub(crate) fn new(rung: Rung) -> Self {
        Self { rung, nodes: DataType::ALL.into_iter().map(|data| (data, Node::sequence_of(data))).collect() }
    }

    /// Reads a sequence that begins at a multiple of eight in its message. Returns its size in the memory of C.
    ///
    /// # Errors
    /// Octets that are not such a sequence.
    pub(crate) fn read(&self, data: DataType, octets: &[u8]) -> Result<usize, LabError> {
        let node = self.nodes.iter().find(|(described, _)| *described == data).map(|(_, node)| node);
        let node = node.ok_or_else(|| LabError::Settings(format!("no rung reads {}", data.plural())))?;
        Ok(black_box(decode(self.rung, node, octets)?).len())
    }
}

/// Writes one sequence, again and again, as one rung of the ladder does.
#[derive(Debug)]
pub(crate) struct RungWriter {
    rung: Rung,
    node: Node,
    /// The elements in the layout of C.
    memory: Vec<u8>,
    octets: Vec<u8>,
}

impl RungWriter {
    /// Writes that many elements of a type, each octet with another value.
    pub(crate) fn new(rung: Rung, data: DataType, elements: usize) -> Self {
        let memory = (0..elements * data.element_octets()).map(|nth| (nth % 251) as u8).collect();
        Self { rung, node: Node::sequence_of(data), memory, octets: Vec::new() }
    }

    /// The sequence in CDR, for a place at a multiple of eight in its message.
    pub(crate) fn write(&mut self) -> &[u8] {
        encode(self.rung, &self.node, black_box(&self.memory), &mut self.octets);
        &self.octets
    }
}
