//! Passing over values whose Rust types are not there: what a description of the type can tell is enough.

use super::{INDIRECTION, LAST_VALUE_TAG, VALUE_TAG};
use crate::{CdrError, Decoder};

/// Passes over the state of a value, given the repository id of its most derived type if it came with one.
pub type SkipState<'f> = dyn FnMut(&mut Decoder<'_>, Option<&str>) -> Result<(), CdrError> + 'f;

impl Decoder<'_> {
    /// Passes over a value, nil or an indirection.
    ///
    /// State in chunks says itself where it ends. Other state is passed over by `state`, which is given the most derived
    /// repository id, or `None` if the value is of the type that its position has; it calls this function again for values
    /// in the state.
    ///
    /// # Errors
    /// Octets that are no value; [`CdrError::TooDeep`]; those of `state`.
    pub fn skip_value(&mut self, state: &mut SkipState<'_>) -> Result<(), CdrError> {
        match self.value_tag()? {
            0 => Ok(()),
            INDIRECTION => self.indirection_target().map(drop),
            tag @ VALUE_TAG..=LAST_VALUE_TAG => {
                let header = self.value_header(tag)?;
                self.begin_state(header.is_chunked)?;
                if header.is_chunked {
                    return self.end_state();
                }
                self.nested(|input| state(input, header.ids.first().map(|id| &**id)))
            }
            _ => Err(CdrError::Malformed("where a value should be there is none")),
        }
    }
}
