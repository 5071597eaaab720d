//! Values without their Rust types: a walk by type codes reads and writes their headers and ends here.

use std::sync::Arc;

use super::{ID_LIST, INDIRECTION, IS_CHUNKED, LAST_VALUE_TAG, SINGLE_ID, VALUE_TAG};
use crate::decoder::values::{Ids, VALUE_MEMORY};
use crate::{CdrError, Decoder, Encoder};

/// The start of a value, or what replaces it.
#[derive(Debug)]
pub enum ValueStart {
    /// No value: the null tag (9.3.4.1).
    Nil,
    /// An indirection to the value whose tag is at this position.
    Indirection(usize),
    /// A value; its state follows.
    New(StartedValue),
}

/// A value whose state follows.
#[derive(Debug)]
pub struct StartedValue {
    /// The position of its tag.
    pub(crate) at: usize,
    /// Its repository ids, most derived first; empty if it is of its position's type.
    pub(crate) ids: Ids,
    /// Whether its state is in chunks, and can be skipped.
    pub(crate) is_chunked: bool,
}

impl StartedValue {
    /// The position of its tag, as in a later [`ValueStart::Indirection`] to it.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Its repository ids, most derived first; empty if it is of its position's type.
    #[must_use]
    pub fn ids(&self) -> &[Arc<str>] {
        &self.ids
    }

    /// Whether its state is in chunks: [`Decoder::leave_value`] then skips the unread rest.
    #[must_use]
    pub fn is_chunked(&self) -> bool {
        self.is_chunked
    }
}

impl Decoder<'_> {
    /// Reads up to the state of a value, for callers that know its type; [`Decoder::leave_value`] ends it.
    ///
    /// # Errors
    /// Octets that are not a value.
    pub fn start_value(&mut self) -> Result<ValueStart, CdrError> {
        match self.value_tag()? {
            0 => Ok(ValueStart::Nil),
            INDIRECTION => self.indirection_target().map(ValueStart::Indirection),
            tag @ VALUE_TAG..=LAST_VALUE_TAG => {
                let at = self.position() - 4;
                let header = self.value_header(tag)?;
                let limits = self.wire().limits;
                self.count_memory(VALUE_MEMORY)?;
                let values = self.read_values();
                values.note(at, values.chunks.level, limits)?;
                self.begin_state(header.is_chunked)?;
                Ok(ValueStart::New(StartedValue { at, ids: header.ids, is_chunked: header.is_chunked }))
            }
            _ => Err(CdrError::Malformed("expected a value")),
        }
    }

    /// Records the type of a value in an `any` whose header has no repository id.
    pub(crate) fn record_formal_type(&mut self, started: &StartedValue, id: &str) {
        if let Some(value) = self.read_values().by_position.get_mut(&started.at) {
            value.formal_id.get_or_insert_with(|| id.into());
        }
    }

    /// Records the end of the state of a value that was skipped by its type code.
    pub(crate) fn record_end(&mut self, started: &StartedValue) {
        let here = self.position();
        if let Some(value) = self.read_values().by_position.get_mut(&started.at) {
            value.end = Some(here);
        }
    }

    /// The position of the earliest repository id or type code that was the target of an indirection since
    /// the last call.
    pub(crate) fn take_earliest_target(&mut self) -> Option<usize> {
        self.values.as_deref_mut()?.values_mut().earliest_target.take()
    }

    /// Calls `read` for the skipped value at this position, and restores the position.
    ///
    /// # Errors
    /// The errors of `read`; a position without a skipped value.
    pub fn read_skipped_value<T>(
        &mut self,
        at: usize,
        read: impl FnOnce(&mut Self) -> Result<T, CdrError>,
    ) -> Result<T, CdrError> {
        if !self.read_values().by_position.contains_key(&at) {
            return Err(CdrError::Malformed("an indirection does not lead to a value"));
        }
        self.return_to(at, read)
    }

    /// Reads the end of a value after its state; the unread rest of the state is skipped.
    ///
    /// # Errors
    /// Chunks without an end.
    pub fn leave_value(&mut self, started: &StartedValue) -> Result<(), CdrError> {
        if started.is_chunked { self.end_state() } else { Ok(()) }
    }
}

impl Encoder<'_> {
    /// Writes up to the state of a value, for callers that know its type, and returns the position of its
    /// tag; [`Encoder::end_copy`] ends it. A value inside a chunked one is chunked. Ids are written in full
    /// each time, since indirections to ids are recorded for values with Rust types only.
    ///
    /// # Errors
    /// An id that cannot be encoded.
    pub fn copy_header(&mut self, ids: &[Arc<str>], is_chunked: bool) -> Result<usize, CdrError> {
        let is_chunked = self.begin_copy(is_chunked)?;
        let at = self.position();
        let chunked = if is_chunked { IS_CHUNKED } else { 0 };
        match ids {
            [] => self.u32(VALUE_TAG | chunked),
            [id] => {
                self.u32(VALUE_TAG | SINGLE_ID | chunked);
                self.short_str(id)?;
            }
            ids => {
                self.u32(VALUE_TAG | ID_LIST | chunked);
                self.len(ids.len())?;
                ids.iter().try_for_each(|id| self.short_str(id))?;
            }
        }
        self.begin_copied_state(is_chunked);
        Ok(at)
    }
}
