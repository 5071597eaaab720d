//! What a decoder remembers of the values that it has read: where they are, which graph they belong to, and where in chunks
//! it is itself.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use super::graph::{Anchor, Graph, Place};
use super::header::Ids;
use super::{Entry, ValueFactory, ValueType};
use crate::{CdrError, Decoder};

/// What a decoder remembers of the values that it has read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadValues {
    /// The value whose tag is at a position.
    pub(super) places: HashMap<usize, Place>,
    /// The tags of values that were passed over with what a derived type adds to its base, and how many chunked values
    /// are around each.
    pub(super) passed: HashMap<usize, u32>,
    /// How many octets have been passed over so.
    pub(super) passed_octets: usize,
    /// The strings of headers, and lists of them, by where their lengths stand.
    pub(super) strings: HashMap<usize, Arc<str>>,
    pub(super) lists: HashMap<usize, Ids>,
    /// The earliest of them that an indirection has meant since somebody asked.
    pub(super) reach: Option<usize>,
    /// The graph that is being read: one for each value at the top.
    open: OpenGraph,
    /// How many values are around this place.
    depth: u16,
    /// Those that are complete. Later values of the message may refer to theirs.
    finished: Vec<Arc<Graph>>,
    pub(super) chunks: Chunks,
}

/// Where in chunked values a decoder is.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunks {
    /// How many values in chunks are around this place.
    pub(super) level: u32,
    /// An end tag has ended all values from this level on, and not all of them know.
    pub(super) ended: Option<u32>,
    /// What goes on in the next chunk, while the decoder sees one chunk's content only. It does not while it reads what
    /// stands between chunks.
    pub(super) next: Option<NextChunk>,
}

/// Goes on in the next chunk, behind so many octets of padding.
pub(super) type NextChunk = for<'m> fn(&mut Decoder<'m>, usize) -> Result<(), CdrError>;

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
    pub(super) fn read_values(&mut self) -> &mut ReadValues {
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
pub(super) struct Expected {
    pub(super) repository_id: &'static str,
    pub(super) known: fn(&str) -> Option<&'static dyn ValueFactory>,
    accepts: fn(&Entry) -> bool,
}

impl std::fmt::Debug for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.repository_id)
    }
}

impl Expected {
    pub(super) fn of<T: ValueType + ?Sized>() -> Self {
        Self { repository_id: T::REPOSITORY_ID, known: T::known, accepts: |entry| entry.cast::<T>().is_some() }
    }

    pub(super) fn check(self, entry: &Entry) -> Result<(), CdrError> {
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
    pub(super) fn is_open(&self, place: &Place) -> bool {
        self.depth > 0 && Arc::ptr_eq(&place.anchor, &self.open.anchor)
    }

    /// Begins a value.
    pub(super) fn enter(&mut self, at: usize, limits: crate::Limits) -> Result<Place, CdrError> {
        if self.depth >= limits.value_nesting {
            return Err(CdrError::TooDeep { limit: limits.value_nesting });
        }
        if self.places.len() >= limits.values as usize {
            return Err(CdrError::TooManyValues { limit: limits.values });
        }
        let index = u32::try_from(self.open.entries.len()).expect("the limit is such a number");
        self.depth += 1;
        self.open.entries.push(None);
        let place = Place { anchor: Arc::clone(&self.open.anchor), index };
        self.places.insert(at, place.clone());
        Ok(place)
    }

    /// Completes a value; with the outermost one its graph is finished.
    pub(super) fn leave(&mut self, index: u32, entry: Entry) -> Result<(), CdrError> {
        self.open.entries[index as usize] = Some(entry);
        self.depth -= 1;
        if self.depth == 0 {
            let graph = mem::take(&mut self.open).finish()?;
            self.finished.push(graph);
        }
        Ok(())
    }

    /// Refuses a value that is known already and not of the type that another position needs.
    pub(super) fn check(&mut self, place: &Place, expected: Expected) -> Result<(), CdrError> {
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

    /// Notes where a value stands that was passed over, so many chunked values deep.
    pub(super) fn note_passed(&mut self, at: usize, level: u32) {
        self.passed.insert(at, level);
    }
}
