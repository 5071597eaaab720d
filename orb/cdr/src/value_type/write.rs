//! Encoding of values: tags, repository ids, chunks, and indirections to earlier parts (9.3.4).

use std::sync::Arc;

use super::{ID_LIST, INDIRECTION, IS_CHUNKED, SINGLE_ID, VALUE_TAG};
use crate::encoder::values::{Graph, GraphPosition, WrittenValues};
use crate::{CdrError, Encoder};

impl<'a> Encoder<'a> {
    fn written(&mut self) -> &mut WrittenValues<'a> {
        self.values.get_or_insert_with(|| Box::new(WrittenValues::new()))
    }

    /// The graph of the value that is being written.
    fn graph(&mut self) -> Option<&'a Graph> {
        self.written().graphs.last().and_then(|graph| graph.downcast_ref())
    }

    /// Encodes the null tag in place of a value.
    pub(super) fn nil_value(&mut self) -> Result<(), CdrError> {
        self.u32(0);
        Ok(())
    }

    /// Encodes the target of a link inside the graph being encoded.
    pub(super) fn linked_value(&mut self, graph_position: &GraphPosition) -> Result<(), CdrError> {
        match self.graph() {
            Some(graph) if Arc::ptr_eq(graph.anchor(), &graph_position.anchor) => {
                self.value(graph, graph_position.index)
            }
            _ => Err(CdrError::UnfinishedValue),
        }
    }

    /// Encodes a value, or an indirection to it.
    pub(super) fn value(&mut self, graph: &'a Graph, index: u32) -> Result<(), CdrError> {
        let key = (Arc::as_ptr(graph.anchor()) as usize, index);
        if let Some(&at) = self.written().places.get(&key) {
            return self.indirection(at);
        }
        let limit = self.wire().limits.value_nesting;
        if self.written().graphs.len() >= usize::from(limit) {
            return Err(CdrError::TooDeep { limit });
        }
        self.close_chunk()?;
        self.align(4);
        let at = self.position();
        let entry = graph.entry(index);
        let (vtable, written) = (entry.vtable(), self.written());
        written.places.insert(key, at);
        if written.graphs.is_empty() {
            written.start = at;
        }
        written.graphs.push(graph);
        let is_chunked = vtable.is_chunked || written.level > 0;
        self.header(vtable.ids, is_chunked)?;
        if is_chunked {
            self.written().level += 1;
            self.open_chunk();
        }
        entry.encode_state(self)?;
        self.written().graphs.pop();
        if is_chunked {
            self.end_tag()?;
        }
        Ok(())
    }

    /// Whether the encoder is inside chunked values.
    pub(crate) fn is_in_chunks(&self) -> bool {
        self.values.as_ref().is_some_and(|values| values.level > 0)
    }

    /// Encodes nil, for a walk.
    pub(crate) fn copy_nil(&mut self) {
        self.u32(0);
    }

    /// Encodes an indirection to the value at this position, a result of [`Encoder::copy_header`].
    ///
    /// # Errors
    /// A position out of range of the offset.
    pub fn copy_indirection(&mut self, at: usize) -> Result<(), CdrError> {
        self.indirection(at)
    }

    /// Suspends the enclosing value for one that a walk encodes. Returns whether its state is in chunks, as
    /// it must be inside chunked values.
    pub(super) fn begin_copy(&mut self, is_chunked: bool) -> Result<bool, CdrError> {
        self.close_chunk()?;
        self.align(4);
        let at = self.position();
        let written = self.written();
        if written.graphs.is_empty() && written.level == 0 {
            written.start = at;
        }
        Ok(is_chunked || written.level > 0)
    }

    /// Begins the state of a value that a walk encodes.
    pub(super) fn begin_copied_state(&mut self, is_chunked: bool) {
        if is_chunked {
            self.written().level += 1;
            self.open_chunk();
        }
    }

    /// Ends a value that [`Encoder::copy_header`] has begun.
    ///
    /// # Errors
    /// A chunk that is too long.
    pub fn end_copy(&mut self) -> Result<(), CdrError> {
        // Values inside chunked ones are chunked, so the level determines whether this one is.
        if self.written().level > 0 { self.end_tag() } else { Ok(()) }
    }

    /// Encodes the tag and the repository ids.
    fn header(&mut self, ids: &'static [&'static str], is_chunked: bool) -> Result<(), CdrError> {
        let chunked = if is_chunked { IS_CHUNKED } else { 0 };
        if let [id] = ids {
            self.u32(VALUE_TAG | SINGLE_ID | chunked);
            return self.repository_id(id);
        }
        self.u32(VALUE_TAG | ID_LIST | chunked);
        if let Some(&at) = self.written().lists.get(ids[0]) {
            return self.indirection(at);
        }
        let at = self.position();
        self.written().lists.insert(ids[0], at);
        self.len(ids.len())?;
        ids.iter().try_for_each(|id| self.repository_id(id))
    }

    fn repository_id(&mut self, id: &'static str) -> Result<(), CdrError> {
        if let Some(&at) = self.written().ids.get(id) {
            return self.indirection(at);
        }
        self.align(4);
        let at = self.position();
        self.written().ids.insert(id, at);
        self.short_str(id)
    }

    /// `at` is the target; the offset counts from the offset itself (9.3.4.4).
    fn indirection(&mut self, at: usize) -> Result<(), CdrError> {
        self.u32(INDIRECTION);
        let back = self.position() - at;
        let offset = i32::try_from(back).map_err(|_| CdrError::TooLong { len: back })?;
        self.i32(-offset);
        Ok(())
    }

    /// Begins a chunk. Its size is written at its end.
    fn open_chunk(&mut self) {
        let placeholder = self.placeholder();
        let start = self.position();
        self.written().chunk = Some((placeholder, start));
    }

    /// Ends the open chunk, if there is one. An empty one is removed, since the standard has none (9.3.4.6).
    fn close_chunk(&mut self) -> Result<(), CdrError> {
        let Some((placeholder, start)) = self.written().chunk.take() else { return Ok(()) };
        match self.position() - start {
            0 => self.remove_from(start - 4),
            // Longer ones would be read as value tags.
            len if len >= VALUE_TAG as usize => return Err(CdrError::TooLong { len }),
            len => self.fill(placeholder, u32::try_from(len).expect("less than a value tag")),
        }
        Ok(())
    }

    /// Ends the innermost chunked value; the enclosing value continues in a new chunk.
    ///
    /// If several end at the same position, one tag ends them all (9.3.4.6). omniORB 4.2.5 does not accept
    /// several tags.
    fn end_tag(&mut self) -> Result<(), CdrError> {
        self.close_chunk()?;
        let position = self.position();
        if self.written().ended == Some(position) {
            self.remove_from(position - 4);
        }
        let level = self.written().level;
        self.i32(-level);
        let position = self.position();
        self.written().ended = Some(position);
        self.written().level -= 1;
        if level > 1 {
            self.open_chunk();
        }
        Ok(())
    }
}
