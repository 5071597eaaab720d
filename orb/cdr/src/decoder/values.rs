//! A decoder's state of values: their positions, their graph, and the decoder's position in chunks.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::mem;
use std::sync::Arc;

use crate::encoder::values::{Anchor, Entry, Graph, GraphPosition};
use crate::{CdrError, Limits};

/// The octets of memory that a small value takes: itself, its entries in its graph and among the known values,
/// which grow by doubling. (Measured: 341, for values with a number and a reference; more while one of them grows.)
pub(crate) const VALUE_MEMORY: usize = 340;

/// The values that a decoder has read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadValues {
    /// Values by the position of their tag.
    pub(crate) by_position: HashMap<usize, KnownValue>,
    /// Octets that were skipped in chunks or read twice.
    pub(crate) skipped_octets: usize,
    /// During a second reading: the start of the octets that are not counted yet.
    pub(crate) uncounted_from: Option<usize>,
    /// The strings of headers, and lists of them, by the position of their lengths.
    pub(crate) strings: HashMap<usize, Arc<str>>,
    pub(crate) lists: HashMap<usize, Ids>,
    /// The earliest of them that was the target of an indirection since the last query.
    pub(crate) earliest_target: Option<usize>,
    /// The graph being decoded: one for each outermost value.
    open: OpenGraph,
    /// Whether a [`Linked`](crate::Linked) of the innermost value is being read, which may hold links inside the
    /// open graph.
    pub(crate) takes_links: bool,
    /// The nesting depth of values at this position.
    depth: u16,
    /// Complete graphs. Later values of the message may refer to their values.
    finished: Vec<Arc<Graph>>,
    pub(crate) chunks: Chunks,
}

/// A value that was decoded, or skipped: within an `any`, or as the additions of a derived type to its base.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownValue {
    /// The number of chunked values around it.
    pub(crate) level: u32,
    /// The value, once it is decoded.
    pub(crate) graph_position: Option<GraphPosition>,
    /// The end of its state, if that was skipped by its type code and is not in chunks.
    pub(crate) end: Option<usize>,
    /// The repository id of the type of its position in the `any`, if its header has none.
    pub(crate) formal_id: Option<Arc<str>>,
}

/// The position of a decoder in chunked values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunks {
    /// The number of enclosing chunked values.
    pub(crate) level: u32,
    /// The outermost level of the values that the last end tag has ended. It is kept until the decoder has left all of
    /// them: one end tag may end several nested values.
    pub(crate) ended: Option<u32>,
    /// Whether the input is limited, to one chunk's content, or to nothing between two chunks.
    pub(crate) is_limited: bool,
}

/// Repository ids, shared between the values with equal ones.
pub(crate) type Ids = Arc<[Arc<str>]>;

/// A graph of which some values are incomplete.
#[derive(Clone, Debug, Default)]
struct OpenGraph {
    anchor: Arc<Anchor>,
    entries: Vec<Option<Entry>>,
    /// References to values that were incomplete at the time.
    required: Vec<(u32, RequiredType)>,
}

/// The type that a position requires of a value, erased.
#[derive(Clone, Copy)]
pub(crate) struct RequiredType {
    pub(crate) repository_id: &'static str,
    pub(crate) accepts: fn(&Entry) -> bool,
}

impl std::fmt::Debug for RequiredType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.repository_id)
    }
}

impl RequiredType {
    pub(crate) fn check(self, entry: &Entry) -> Result<(), CdrError> {
        if (self.accepts)(entry) {
            return Ok(());
        }
        Err(CdrError::WrongValue { expected: self.repository_id, found: entry.vtable().ids[0] })
    }
}

impl OpenGraph {
    fn finish(self) -> Result<Arc<Graph>, CdrError> {
        let entries: Vec<Entry> = self.entries.into_iter().flatten().collect();
        for (index, required) in self.required {
            required.check(&entries[index as usize])?;
        }
        Ok(Graph::finish(self.anchor, entries))
    }
}

impl ReadValues {
    /// A copy of the position in chunks, without the values.
    pub(super) fn position_in_chunks(&self) -> Self {
        Self { chunks: self.chunks.clone(), ..Self::default() }
    }

    pub(crate) fn is_open(&self, graph_position: &GraphPosition) -> bool {
        self.depth > 0 && Arc::ptr_eq(&graph_position.anchor, &self.open.anchor)
    }

    /// Enters a value that begins at this position, nested in those that are not complete.
    pub(crate) fn enter(&mut self, at: usize, limits: Limits) -> Result<GraphPosition, CdrError> {
        if self.depth >= limits.value_nesting {
            return Err(CdrError::TooDeep { limit: limits.value_nesting });
        }
        let index = u32::try_from(self.open.entries.len()).expect("the limit is such a number");
        let graph_position = GraphPosition { anchor: Arc::clone(&self.open.anchor), index };
        self.note(at, self.chunks.level, limits)?.graph_position = Some(graph_position.clone());
        self.depth += 1;
        self.open.entries.push(None);
        Ok(graph_position)
    }

    /// Completes a value; the outermost one completes its graph.
    pub(crate) fn leave(&mut self, index: u32, entry: Entry) -> Result<(), CdrError> {
        self.open.entries[index as usize] = Some(entry);
        self.depth -= 1;
        if self.depth == 0 {
            let graph = mem::take(&mut self.open).finish()?;
            self.finished.push(graph);
        }
        Ok(())
    }

    /// Rejects a known value of another type than this position requires.
    pub(crate) fn check(&mut self, graph_position: &GraphPosition, required: RequiredType) -> Result<(), CdrError> {
        if !self.is_open(graph_position) {
            // The values of a complete graph are checked when the reference is created.
            return Ok(());
        }
        match &self.open.entries[graph_position.index as usize] {
            Some(entry) => required.check(entry),
            None => {
                self.open.required.push((graph_position.index, required));
                Ok(())
            }
        }
    }

    /// The value whose tag is at a position, with `level` enclosing chunked values; it is recorded if
    /// unknown.
    pub(crate) fn note(&mut self, at: usize, level: u32, limits: Limits) -> Result<&mut KnownValue, CdrError> {
        let is_full = self.by_position.len() >= limits.values as usize;
        match self.by_position.entry(at) {
            Slot::Occupied(value) => Ok(value.into_mut()),
            Slot::Vacant(_) if is_full => Err(CdrError::TooManyValues { limit: limits.values }),
            Slot::Vacant(slot) => Ok(slot.insert(KnownValue { level, ..KnownValue::default() })),
        }
    }
}
