//! Reading values: which factory makes them, how they are tied into one graph, and which are there already.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use super::chunk::Chunks;
use super::graph::{Anchor, Graph, Place};
use super::header::{Header, Ids};
use super::{Entry, INDIRECTION, LAST_VALUE_TAG, VALUE_TAG, ValueFactory, ValueRef, ValueType};
use crate::{CdrError, Decoder};

/// What a decoder remembers of the values that it has read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadValues {
    /// The value whose tag is at a position.
    places: HashMap<usize, Place>,
    /// The tags of values that were passed over with what a derived type adds to its base, and how many chunked values
    /// are around each.
    pub(super) passed: HashMap<usize, u32>,
    /// How many octets have been passed over so.
    pub(super) passed_octets: usize,
    /// The strings of headers, and lists of them, by where their lengths stand.
    pub(super) strings: HashMap<usize, Arc<str>>,
    pub(super) lists: HashMap<usize, Ids>,
    /// The graph that is being read: one for each value at the top.
    open: OpenGraph,
    /// How many values are around this place.
    depth: u16,
    /// Those that are complete. Later values of the message may refer to theirs.
    finished: Vec<Arc<Graph>>,
    pub(super) chunks: Chunks,
}

/// What a decoder remembers, as the decoder has it: programs that read no values are without the code that these need.
pub(crate) trait Remembered: std::fmt::Debug + Send + Sync {
    fn values(&self) -> &ReadValues;
    fn values_mut(&mut self) -> &mut ReadValues;
    /// The same once more.
    fn copy(&self) -> Box<dyn Remembered>;
    /// Where in chunks the decoder is, and nothing else.
    fn place(&self) -> Box<dyn Remembered>;
    /// What goes on in the next chunk.
    fn next_chunk(&self) -> NextChunk;
}

/// [`Decoder::next_chunk`].
pub(super) type NextChunk = for<'m> fn(&mut Decoder<'m>, usize) -> Result<(), CdrError>;

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

    fn next_chunk(&self) -> NextChunk {
        |input, padding| input.find_chunk(padding)
    }
}

impl Clone for Box<dyn Remembered> {
    fn clone(&self) -> Self {
        self.copy()
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
struct Expected {
    repository_id: &'static str,
    known: fn(&str) -> Option<&'static dyn ValueFactory>,
    accepts: fn(&Entry) -> bool,
}

impl std::fmt::Debug for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.repository_id)
    }
}

impl Expected {
    fn of<T: ValueType + ?Sized>() -> Self {
        Self { repository_id: T::REPOSITORY_ID, known: T::known, accepts: |entry| entry.cast::<T>().is_some() }
    }

    fn check(self, entry: &Entry) -> Result<(), CdrError> {
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

/// A factory that was registered, or one that generated code has.
enum Factory {
    Registered(Arc<dyn ValueFactory>),
    Known(&'static dyn ValueFactory),
}

/// State to be read.
struct State {
    factory: Factory,
    is_chunked: bool,
}

impl Factory {
    fn read(&self, input: &mut Decoder<'_>) -> Result<Entry, CdrError> {
        match self {
            Self::Registered(factory) => factory.read(input),
            Self::Known(factory) => factory.read(input),
        }
    }
}

impl Decoder<'_> {
    /// Reads a value or nil.
    pub(super) fn value<T: ValueType + ?Sized>(&mut self) -> Result<Option<ValueRef<T>>, CdrError> {
        let expected = Expected::of::<T>();
        let Some(place) = self.value_place(expected)? else { return Ok(None) };
        let values = self.read_values();
        if values.is_open(&place) {
            return Ok(Some(ValueRef::link(place)));
        }
        let graph = place.anchor.graph().expect("finished graphs are kept for the rest of the message");
        let found = graph.entry(place.index).about().ids[0];
        let value = ValueRef::kept(graph, place.index);
        value.map(Some).ok_or(CdrError::WrongValue { expected: expected.repository_id, found })
    }

    pub(super) fn read_values(&mut self) -> &mut ReadValues {
        self.values.get_or_insert_with(|| Box::new(ReadValues::default())).values_mut()
    }

    fn value_place(&mut self, expected: Expected) -> Result<Option<Place>, CdrError> {
        match self.value_tag()? {
            0 => Ok(None),
            INDIRECTION => self.known_value(expected).map(Some),
            tag @ VALUE_TAG..=LAST_VALUE_TAG => self.new_value(tag, expected).map(Some),
            _ => Err(CdrError::Malformed("where a value should be there is none")),
        }
    }

    /// The value that an indirection means.
    fn known_value(&mut self, expected: Expected) -> Result<Place, CdrError> {
        let target = self.indirection_target()?;
        let values = self.read_values();
        if let Some(place) = values.places.get(&target).cloned() {
            values.check(&place, expected)?;
            return Ok(place);
        }
        // What was passed over is needed after all.
        let level =
            *values.passed.get(&target).ok_or(CdrError::Malformed("an indirection to where no value begins"))?;
        self.return_to(target, level, |input| {
            let tag = input.u32()?;
            input.new_value(tag, expected)
        })
    }

    // What calls itself has little in its own frame: values nest to a depth of hundreds.
    fn new_value(&mut self, tag: u32, expected: Expected) -> Result<Place, CdrError> {
        let (place, state) = self.open_value(tag, expected)?;
        if let Some(state) = state {
            let entry = state.factory.read(self)?;
            self.close_value(place.index, entry, state.is_chunked, expected)?;
        }
        Ok(place)
    }

    /// Reads up to a value's state; there is none left to read if the value is known.
    fn open_value(&mut self, tag: u32, expected: Expected) -> Result<(Place, Option<State>), CdrError> {
        let at = self.position() - 4;
        let header = self.value_header(tag)?;
        if let Some(place) = self.read_values().places.get(&at).cloned() {
            // It was passed over with what is around it, then needed alone, and now with what is around it.
            self.read_values().check(&place, expected)?;
            self.begin_state(header.is_chunked)?;
            return self.end_state().map(|()| (place, None));
        }
        let factory = self.factory(&header, expected)?;
        let limits = self.wire().limits;
        let place = self.read_values().enter(at, limits)?;
        self.begin_state(header.is_chunked)?;
        Ok((place, Some(State { factory, is_chunked: header.is_chunked })))
    }

    fn close_value(&mut self, index: u32, entry: Entry, is_chunked: bool, expected: Expected) -> Result<(), CdrError> {
        if is_chunked {
            self.end_state()?;
        }
        expected.check(&entry)?;
        self.read_values().leave(index, entry)
    }

    /// The first of a value's types that is known here. All but the most derived one have state behind theirs, which must
    /// then be possible to pass over (9.3.4.3).
    fn factory(&self, header: &Header, expected: Expected) -> Result<Factory, CdrError> {
        let binder = self.binder();
        let find = |id: &str| {
            let registered = binder.and_then(|binder| binder.value_factory(id)).map(Factory::Registered);
            registered.or_else(|| (expected.known)(id).map(Factory::Known))
        };
        let found = match &*header.ids {
            [] => find(expected.repository_id),
            [first, bases @ ..] => {
                find(first).or_else(|| bases.iter().filter(|_| header.is_chunked).find_map(|id| find(id)))
            }
        };
        let id = || header.ids.first().map_or(expected.repository_id, |id| id);
        found.ok_or_else(|| CdrError::UnknownValue { repository_id: id().into() })
    }
}

impl ReadValues {
    fn is_open(&self, place: &Place) -> bool {
        self.depth > 0 && Arc::ptr_eq(&place.anchor, &self.open.anchor)
    }

    /// Begins a value.
    fn enter(&mut self, at: usize, limits: crate::Limits) -> Result<Place, CdrError> {
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
    fn leave(&mut self, index: u32, entry: Entry) -> Result<(), CdrError> {
        self.open.entries[index as usize] = Some(entry);
        self.depth -= 1;
        if self.depth == 0 {
            let graph = mem::take(&mut self.open).finish()?;
            self.finished.push(graph);
        }
        Ok(())
    }

    /// Refuses a value that is known already and not of the type that another position needs.
    fn check(&mut self, place: &Place, expected: Expected) -> Result<(), CdrError> {
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
}
