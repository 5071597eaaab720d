//! Reading values: which factory makes them, how they are tied into one graph, and which are there already.

use std::sync::Arc;

use super::graph::Place;
use super::header::Header;
use super::remembered::Expected;
use super::{Entry, INDIRECTION, LAST_VALUE_TAG, VALUE_TAG, ValueFactory, ValueRef, ValueType};
use crate::{CdrError, Decoder};

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
