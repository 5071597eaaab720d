//! A decoder's access to its state of values.

use super::values::ReadValues;
use super::{NextChunk, ValueHistory};
use crate::{CdrError, Decoder};

impl ValueHistory for ReadValues {
    fn values(&self) -> &ReadValues {
        self
    }

    fn values_mut(&mut self) -> &mut ReadValues {
        self
    }

    fn next_chunk(&self) -> NextChunk {
        |input, padding| input.find_chunk(padding)
    }

    fn copy(&self) -> Box<dyn ValueHistory> {
        Box::new(self.clone())
    }

    fn chunk_position(&self) -> Box<dyn ValueHistory> {
        Box::new(self.position_in_chunks())
    }
}

impl Decoder<'_> {
    /// The same decoder, without its state of values, which may be large: for looking ahead.
    pub(crate) fn ahead(&self) -> Self {
        self.with_values(self.values.as_ref().map(|values| values.chunk_position()))
    }

    /// Whether the end of the input means the end of a chunk.
    pub(crate) fn is_confined(&self) -> bool {
        self.values.as_ref().is_some_and(|values| values.values().chunks.is_limited)
    }

    /// Continues in the next chunk. The last one may only have padding left: nothing is divided between two.
    pub(crate) fn next_chunk(&mut self, padding: usize) -> Result<(), CdrError> {
        match &self.values {
            Some(values) if values.values().chunks.is_limited => values.next_chunk()(self, padding),
            _ => Ok(()),
        }
    }

    pub(crate) fn read_values(&mut self) -> &mut ReadValues {
        self.values.get_or_insert_with(|| Box::new(ReadValues::default())).values_mut()
    }
}
