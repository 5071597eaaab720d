//! A rung of the ladder as the reading half of a skeleton.

use std::hint::black_box;

use super::{Node, Rung, decode};
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
    /// Reads by the engine before its first step.
    pub(crate) fn original() -> Self {
        Self::new(Rung::Original)
    }

    /// Reads by the engine after its last step.
    pub(crate) fn optimised() -> Self {
        Self::new(Rung::SplitEncoding)
    }

    fn new(rung: Rung) -> Self {
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
