//! Decoding of values: the choice of a factory, the assembly of the graph, and indirections to known values.

use std::sync::Arc;

use super::header::Header;
use super::{INDIRECTION, LAST_VALUE_TAG, VALUE_TAG, ValueRef, ValueType};
use crate::decoder::values::{RequiredType, VALUE_MEMORY};
use crate::encoder::values::{Entry, GraphPosition};
use crate::{CdrError, Decoder, ValueFactory};

/// A registered factory, or one of generated code.
enum Factory {
    Registered(Arc<dyn ValueFactory>),
    Known(&'static dyn ValueFactory),
}

/// A state to be decoded.
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

/// The type of a position.
#[derive(Clone, Copy)]
struct ExpectedType {
    required: RequiredType,
    /// The factory in generated code for a repository id.
    known: fn(&str) -> Option<&'static dyn ValueFactory>,
}

impl ExpectedType {
    fn of<T: ValueType + ?Sized>() -> Self {
        let accepts = |entry: &Entry| entry.cast::<T>().is_some();
        Self { required: RequiredType { repository_id: T::REPOSITORY_ID, accepts }, known: T::known }
    }
}

impl Decoder<'_> {
    /// Decodes a value or nil.
    pub(super) fn value<T: ValueType + ?Sized>(&mut self) -> Result<Option<ValueRef<T>>, CdrError> {
        let expected = ExpectedType::of::<T>();
        let Some(graph_position) = self.value_place(expected)? else { return Ok(None) };
        let values = self.read_values();
        if values.is_open(&graph_position) {
            // Outside of a `Linked` it would stay a link, which cannot be followed.
            return if values.takes_links {
                Ok(Some(ValueRef::link(graph_position)))
            } else {
                Err(CdrError::UnlinkedValue)
            };
        }
        let graph = graph_position.anchor.graph().expect("complete graphs are kept for the rest of the message");
        let repository_id = graph.entry(graph_position.index).vtable().ids[0];
        let value = ValueRef::owned(graph, graph_position.index);
        value.map(Some).ok_or(CdrError::WrongValue { expected: expected.required.repository_id, found: repository_id })
    }

    fn value_place(&mut self, expected: ExpectedType) -> Result<Option<GraphPosition>, CdrError> {
        match self.value_tag()? {
            0 => Ok(None),
            INDIRECTION => self.known_value(expected).map(Some),
            tag @ VALUE_TAG..=LAST_VALUE_TAG => self.new_value(tag, expected).map(Some),
            _ => Err(CdrError::Malformed("expected a value")),
        }
    }

    /// The target of an indirection.
    fn known_value(&mut self, expected: ExpectedType) -> Result<GraphPosition, CdrError> {
        let target = self.indirection_target()?;
        let values = self.read_values();
        let value =
            values.by_position.get(&target).ok_or(CdrError::Malformed("an indirection does not lead to a value"))?;
        match value.graph_position.clone() {
            Some(graph_position) => values.check(&graph_position, expected.required).map(|()| graph_position),
            // It was skipped before, and is needed now.
            None => self.return_to(target, |input| {
                let tag = input.u32()?;
                input.new_value(tag, expected)
            }),
        }
    }

    // A recursive function with a small frame: values nest to a depth of hundreds.
    fn new_value(&mut self, tag: u32, expected: ExpectedType) -> Result<GraphPosition, CdrError> {
        let (graph_position, state) = self.open_value(tag, expected)?;
        if let Some(state) = state {
            let outer = std::mem::take(&mut self.read_values().takes_links);
            let entry = state.factory.read(self)?;
            self.read_values().takes_links = outer;
            self.close_value(graph_position.index, entry, state.is_chunked, expected)?;
        }
        Ok(graph_position)
    }

    /// Decodes up to a value's state; a known value has no state left to decode.
    fn open_value(&mut self, tag: u32, expected: ExpectedType) -> Result<(GraphPosition, Option<State>), CdrError> {
        let at = self.position() - 4;
        let header = self.value_header(tag)?;
        let state = self.read_values().by_position.get(&at).cloned().unwrap_or_default();
        if let Some(graph_position) = state.graph_position {
            // It was skipped with its surroundings, then read alone, and is now read with its surroundings.
            self.read_values().check(&graph_position, expected.required)?;
            self.begin_state(header.is_chunked)?;
            return self.skip_known(state.end, header.is_chunked).map(|()| (graph_position, None));
        }
        let factory = self.factory(&header, state.formal_id.as_deref(), expected)?;
        let limits = self.wire().limits;
        self.count_memory(VALUE_MEMORY)?;
        let graph_position = self.read_values().enter(at, limits)?;
        self.begin_state(header.is_chunked)?;
        Ok((graph_position, Some(State { factory, is_chunked: header.is_chunked })))
    }

    /// Skips the state of a value that has been decoded already; it counts as skipped only.
    fn skip_known(&mut self, end: Option<usize>, is_chunked: bool) -> Result<(), CdrError> {
        let start = self.position();
        if is_chunked {
            self.end_state()?;
        } else {
            self.go_to(end.ok_or(CdrError::Malformed("a value begins inside the state of another"))?);
        }
        let passed = self.position().saturating_sub(start);
        if let Some(from) = &mut self.read_values().uncounted_from {
            *from += passed;
        }
        Ok(())
    }

    fn close_value(
        &mut self,
        index: u32,
        entry: Entry,
        is_chunked: bool,
        expected: ExpectedType,
    ) -> Result<(), CdrError> {
        if is_chunked {
            self.end_state()?;
        }
        expected.required.check(&entry)?;
        self.read_values().leave(index, entry)
    }

    /// The factory of the first known type of a value. All but the most derived type leave additional state,
    /// which then must be possible to skip (9.3.4.3).
    ///
    /// A value without ids is of its position's type (9.3.4.1), which for one in an `any` is `formal_id`.
    fn factory(&self, header: &Header, formal_id: Option<&str>, expected: ExpectedType) -> Result<Factory, CdrError> {
        let formal_id = formal_id.unwrap_or(expected.required.repository_id);
        let binder = self.binder();
        let find = |id: &str| {
            let registered = binder.and_then(|binder| binder.value_factory(id)).map(Factory::Registered);
            registered.or_else(|| (expected.known)(id).map(Factory::Known))
        };
        let factory = match &*header.ids {
            [] => find(formal_id),
            [first, bases @ ..] => {
                find(first).or_else(|| bases.iter().filter(|_| header.is_chunked).find_map(|id| find(id)))
            }
        };
        let id = || header.ids.first().map_or(formal_id, |id| id);
        factory.ok_or_else(|| CdrError::UnknownValue { repository_id: id().into() })
    }
}
