//! Values whose Rust types are not needed: what a walk by type codes finds between their states, and writes there.

use std::sync::Arc;

use super::{ID_LIST, INDIRECTION, IS_CHUNKED, LAST_VALUE_TAG, SINGLE_ID, VALUE_TAG};
use crate::decoder::values::Ids;
use crate::{CdrError, Decoder, Encoder};

/// What stands where a value may.
#[derive(Debug)]
pub enum Met {
    /// Null.
    Nil,
    /// The value whose tag is at this position.
    Again(usize),
    /// A value; its state follows.
    New(Coming),
}

/// A value whose state follows.
#[derive(Debug)]
pub struct Coming {
    /// Where its tag is.
    pub(crate) at: usize,
    /// Its repository ids, most derived first; none if it is of the type that its position has.
    pub(crate) ids: Ids,
    /// Its state is in chunks, and can be passed over.
    pub(crate) is_chunked: bool,
}

impl Coming {
    /// Where its tag is: [`Met::Again`] says this for the same value.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Its repository ids, most derived first; none if it is of the type that its position has.
    #[must_use]
    pub fn ids(&self) -> &[Arc<str>] {
        &self.ids
    }

    /// True if its state is in chunks: [`Decoder::leave_value`] then passes over what was not read of it.
    #[must_use]
    pub fn is_chunked(&self) -> bool {
        self.is_chunked
    }
}

impl Decoder<'_> {
    /// Reads up to the state of a value, for those who know its type from elsewhere; [`Decoder::leave_value`] ends it.
    ///
    /// # Errors
    /// Octets that are no value.
    pub fn meet_value(&mut self) -> Result<Met, CdrError> {
        match self.value_tag()? {
            0 => Ok(Met::Nil),
            INDIRECTION => self.indirection_target().map(Met::Again),
            tag @ VALUE_TAG..=LAST_VALUE_TAG => {
                let at = self.position() - 4;
                let header = self.value_header(tag)?;
                let limits = self.wire().limits;
                let values = self.read_values();
                values.note(at, values.chunks.level, limits)?;
                self.begin_state(header.is_chunked)?;
                Ok(Met::New(Coming { at, ids: header.ids, is_chunked: header.is_chunked }))
            }
            _ => Err(CdrError::Malformed("where a value should be there is none")),
        }
    }

    /// Notes of a value in an `any`, whose header has no repository id, that it is of the type with this one.
    pub(crate) fn note_formal_type(&mut self, coming: &Coming, id: &str) {
        if let Some(known) = self.read_values().known.get_mut(&coming.at) {
            known.formal_id.get_or_insert_with(|| id.into());
        }
    }

    /// Notes where the state ends of a value that was passed over by its type code.
    pub(crate) fn note_end(&mut self, coming: &Coming) {
        let here = self.position();
        if let Some(known) = self.read_values().known.get_mut(&coming.at) {
            known.end = Some(here);
        }
    }

    /// Which was the earliest repository id or type code, by its position, that indirections have meant since this was asked last.
    pub(crate) fn take_reach(&mut self) -> Option<usize> {
        self.values.as_deref_mut()?.values_mut().reach.take()
    }

    /// Reads with `read` the value at this position, which was passed over with the state around it, and comes back here.
    ///
    /// # Errors
    /// Those of `read`; a position where no value was passed over.
    pub fn read_passed_value<T>(
        &mut self,
        at: usize,
        read: impl FnOnce(&mut Self) -> Result<T, CdrError>,
    ) -> Result<T, CdrError> {
        if !self.read_values().known.contains_key(&at) {
            return Err(CdrError::Malformed("an indirection to where no value begins"));
        }
        self.return_to(at, read)
    }

    /// Reads what follows a value's state; what is left of that is passed over.
    ///
    /// # Errors
    /// Chunks that do not end.
    pub fn leave_value(&mut self, coming: &Coming) -> Result<(), CdrError> {
        if coming.is_chunked { self.end_state() } else { Ok(()) }
    }
}

impl Encoder<'_> {
    /// Writes up to the state of a value, for those who know its type from elsewhere, and returns where its tag is;
    /// [`Encoder::end_copy`] ends it. A value in a chunked one is chunked. Ids are written in full each time, since what is
    /// known of earlier ones belongs to values with Rust types.
    ///
    /// # Errors
    /// An id that the wire cannot say.
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
