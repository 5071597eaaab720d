//! What a decoder remembers of the values that it has read: where they are, which graph they belong to, and where in chunks
//! it is itself.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::mem;
use std::sync::Arc;

use super::{Decoder, ValueFactory};
use crate::encoder::values::{Anchor, Entry, Graph, Place};
use crate::{CdrError, Limits};

/// What a decoder remembers of the values that it has read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadValues {
    /// Values by the position of their tag.
    pub(crate) known: HashMap<usize, KnownValue>,
    /// Octets that were passed over in chunks or read a second time.
    pub(crate) passed_octets: usize,
    /// While octets are read a second time: where those begin that are not counted yet.
    pub(crate) uncounted_from: Option<usize>,
    /// The strings of headers, and lists of them, by where their lengths stand.
    pub(crate) strings: HashMap<usize, Arc<str>>,
    pub(crate) lists: HashMap<usize, Ids>,
    /// The earliest of them that an indirection has meant since somebody asked.
    pub(crate) reach: Option<usize>,
    /// The graph that is being read: one for each value at the top.
    open: OpenGraph,
    /// How many values are around this place.
    depth: u16,
    /// Those that are complete. Later values of the message may refer to theirs.
    finished: Vec<Arc<Graph>>,
    pub(crate) chunks: Chunks,
}

/// A value that was read, or passed over: within an `any`, or with what a derived type adds to its base.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownValue {
    /// The number of chunked values around it.
    pub(crate) level: u32,
    /// The value, once it is read.
    pub(crate) place: Option<Place>,
    /// The end of its state, if that was passed over by its type code and is not in chunks.
    pub(crate) end: Option<usize>,
    /// The repository id of the type of its position in the `any`, if its header has none.
    pub(crate) formal_id: Option<Arc<str>>,
}

/// Where in chunked values a decoder is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunks {
    /// How many values in chunks are around this place.
    pub(crate) level: u32,
    /// An end tag has ended all values from this level on, and not all of them know.
    pub(crate) ended: Option<u32>,
    /// What goes on in the next chunk, while the decoder sees one chunk's content only. It does not while it reads what
    /// stands between chunks.
    pub(crate) next: Option<NextChunk>,
}

/// Goes on in the next chunk, behind so many octets of padding.
pub(crate) type NextChunk = for<'m> fn(&mut Decoder<'m>, usize) -> Result<(), CdrError>;

/// Repository ids, shared with the other values that have the same.
pub(crate) type Ids = Arc<[Arc<str>]>;

/// What a decoder remembers, as the decoder has it: programs that read no values are without the code that these need.
pub(crate) trait Remembered: std::fmt::Debug + Send + Sync {
    fn values(&self) -> &ReadValues;
    fn values_mut(&mut self) -> &mut ReadValues;
    /// The same once more.
    fn copy(&self) -> Box<dyn Remembered>;
    /// Where in chunks the decoder is, and nothing else.
    fn place(&self) -> Box<dyn Remembered>;
}

impl Remembered for ReadValues {
    fn values(&self) -> &ReadValues {
        self
    }

    fn values_mut(&mut self) -> &mut ReadValues {
        self
    }

    fn copy(&self) -> Box<dyn Remembered> {
        Box::new(self.clone())
    }

    fn place(&self) -> Box<dyn Remembered> {
        Box::new(Self { chunks: self.chunks.clone(), ..Self::default() })
    }
}

impl Clone for Box<dyn Remembered> {
    fn clone(&self) -> Self {
        self.copy()
    }
}

impl Decoder<'_> {
    /// The same decoder, without what it knows of values, which may be much: to look ahead.
    pub(crate) fn ahead(&self) -> Self {
        self.with_values(self.values.as_ref().map(|values| values.place()))
    }

    /// Whether running out of octets means that the next chunk is to be looked for.
    pub(crate) fn is_confined(&self) -> bool {
        self.values.as_ref().is_some_and(|values| values.values().chunks.next.is_some())
    }

    /// Goes on in the next chunk. What the last one has left may only be padding: nothing is split between two.
    pub(crate) fn next_chunk(&mut self, padding: usize) -> Result<(), CdrError> {
        match self.values.as_ref().and_then(|values| values.values().chunks.next) {
            Some(next) => next(self, padding),
            None => Ok(()),
        }
    }

    pub(crate) fn read_values(&mut self) -> &mut ReadValues {
        self.values.get_or_insert_with(|| Box::new(ReadValues::default())).values_mut()
    }
}

/// Values of which some are not complete.
#[derive(Clone, Debug, Default)]
struct OpenGraph {
    anchor: Arc<Anchor>,
    entries: Vec<Option<Entry>>,
    /// Positions to which a value was referred before it was complete.
    expected: Vec<(u32, Expected)>,
}

/// What a position demands of a value, without its type.
#[derive(Clone, Copy)]
pub(crate) struct Expected {
    pub(crate) repository_id: &'static str,
    pub(crate) known: fn(&str) -> Option<&'static dyn ValueFactory>,
    pub(crate) accepts: fn(&Entry) -> bool,
}

impl std::fmt::Debug for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.repository_id)
    }
}

impl Expected {
    pub(crate) fn check(self, entry: &Entry) -> Result<(), CdrError> {
        if (self.accepts)(entry) {
            return Ok(());
        }
        Err(CdrError::WrongValue { expected: self.repository_id, found: entry.about().ids[0] })
    }
}

impl OpenGraph {
    fn finish(self) -> Result<Arc<Graph>, CdrError> {
        let entries: Vec<Entry> = self.entries.into_iter().flatten().collect();
        for (index, expected) in self.expected {
            expected.check(&entries[index as usize])?;
        }
        Ok(Graph::finish(self.anchor, entries))
    }
}

impl ReadValues {
    pub(crate) fn is_open(&self, place: &Place) -> bool {
        self.depth > 0 && Arc::ptr_eq(&place.anchor, &self.open.anchor)
    }

    /// Begins a value.
    pub(crate) fn enter(&mut self, at: usize, limits: Limits) -> Result<Place, CdrError> {
        if self.depth >= limits.value_nesting {
            return Err(CdrError::TooDeep { limit: limits.value_nesting });
        }
        let index = u32::try_from(self.open.entries.len()).expect("the limit is such a number");
        let place = Place { anchor: Arc::clone(&self.open.anchor), index };
        self.note(at, self.chunks.level, limits)?.place = Some(place.clone());
        self.depth += 1;
        self.open.entries.push(None);
        Ok(place)
    }

    /// Completes a value; with the outermost one its graph is finished.
    pub(crate) fn leave(&mut self, index: u32, entry: Entry) -> Result<(), CdrError> {
        self.open.entries[index as usize] = Some(entry);
        self.depth -= 1;
        if self.depth == 0 {
            let graph = mem::take(&mut self.open).finish()?;
            self.finished.push(graph);
        }
        Ok(())
    }

    /// Refuses a value that is known already and not of the type that another position needs.
    pub(crate) fn check(&mut self, place: &Place, expected: Expected) -> Result<(), CdrError> {
        if !self.is_open(place) {
            // A finished one is asked when the reference is made.
            return Ok(());
        }
        match &self.open.entries[place.index as usize] {
            Some(entry) => expected.check(entry),
            None => {
                self.open.expected.push((place.index, expected));
                Ok(())
            }
        }
    }

    /// The value whose tag is at a position, with `level` chunked values around it; it is noted if it is not known yet.
    pub(crate) fn note(&mut self, at: usize, level: u32, limits: Limits) -> Result<&mut KnownValue, CdrError> {
        let is_full = self.known.len() >= limits.values as usize;
        match self.known.entry(at) {
            Slot::Occupied(known) => Ok(known.into_mut()),
            Slot::Vacant(_) if is_full => Err(CdrError::TooManyValues { limit: limits.values }),
            Slot::Vacant(slot) => Ok(slot.insert(KnownValue { level, ..KnownValue::default() })),
        }
    }
}
