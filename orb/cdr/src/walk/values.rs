//! Values of value types, by the type codes that say what their states are (CORBA 3.3 Part 2, 9.3.4).
//!
//! A value that is only passed over needs a type code for its state unless that is in chunks. To be written once more, its
//! state must be known: if the value is of a derived type and truncatable, what the base has of it is written, and it is
//! of the base's type from there on. Sharing and circles stay what they are, within what is walked.

use super::Walk;
use crate::{
    CdrError, Decoder, TcKind, ValueModifier,
    type_code::View,
    value_type::{Coming, Met},
};

impl Walk<'_, '_> {
    /// Walks a value; `of` is what its position says, if it is more than that values stand there.
    pub(super) fn value_type(&mut self, of: Option<View<'_>>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        let Some((of, coming)) = self.begin_value(of, input)? else { return Ok(()) };
        self.state(of, input)?;
        self.end_value(&coming, input)
    }

    /// What stands before a value's state, which then is to be walked; `None` if there is none, or it has been passed over.
    fn begin_value<'t>(
        &mut self,
        of: Option<View<'t>>,
        input: &mut Decoder<'_>,
    ) -> Result<Option<(View<'t>, Coming)>, CdrError> {
        let coming = match input.meet_value()? {
            Met::Nil => {
                self.to(|out| {
                    out.copy_nil();
                    Ok(())
                })?;
                return Ok(None);
            }
            Met::Again(at) => return self.value_again(at, of, input).map(|()| None),
            Met::New(coming) => coming,
        };
        if let (Some(id), true) = (of.and_then(View::id), coming.ids.is_empty()) {
            input.note_formal_type(&coming, id);
        }
        let limit = input.wire().limits.value_nesting;
        if self.values >= limit {
            return Err(CdrError::TooDeep { limit });
        }
        if self.out.is_none() && coming.is_chunked {
            input.leave_value(&coming)?;
            return Ok(None);
        }
        let known = of.and_then(|of| known_from(of, &coming).map(|nth| (of, nth)));
        let Some((of, nth)) = known else {
            let id = coming.ids.first().map(|id| &**id).or(of.and_then(View::id));
            return Err(CdrError::UnknownValue { repository_id: id.unwrap_or_default().into() });
        };
        if let Some(out) = self.out.as_deref_mut() {
            let at = out.copy_header(&coming.ids[nth..], coming.is_chunked)?;
            self.copied.insert(coming.at, at);
        }
        self.values += 1;
        Ok(Some((of, coming)))
    }

    fn end_value(&mut self, coming: &Coming, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        self.values -= 1;
        self.to(|out| out.end_copy())?;
        if !coming.is_chunked {
            input.note_end(coming);
        }
        input.leave_value(coming)
    }

    fn value_again(&mut self, at: usize, of: Option<View<'_>>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        let known = self.copied.get(&at).copied();
        match &mut self.out {
            None => {
                self.leads_out |= at < self.start;
                Ok(())
            }
            Some(out) => match known {
                Some(at) => out.copy_again(at),
                // All that the walk has met is known.
                None => self.value_before(at, of, input),
            },
        }
    }

    /// Writes a value that stands before what is walked: an argument or in another `any` of the message, as omniORB shares
    /// them. What is written so is counted, since many anys may mean one value.
    #[inline(never)]
    fn value_before(&mut self, at: usize, of: Option<View<'_>>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        let (start, steps) = (self.start, self.steps);
        (self.start, self.steps) = (at, 0);
        input.return_to(at, |there| self.value_type(of, there))?;
        (self.start, self.steps) = (start, steps);
        Ok(())
    }

    /// What a value boxes; or what its bases have, and then what its own type has.
    fn state(&mut self, of: View<'_>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        if let Some(content) = of.content() {
            if of.kind() == TcKind::ValueBox {
                return self.value(content, input);
            }
            self.enter(input)?;
            self.state(content.resolved(), input)?;
            self.depth -= 1;
        }
        if of.modifier() == Some(ValueModifier::Custom) {
            return Err(CdrError::Malformed("the state of a custom value type is known to its own code only"));
        }
        self.members(of, input)
    }
}

/// Which of the value's ids is that of the type code: beyond the first only if what others add can be passed over.
fn known_from(of: View<'_>, coming: &Coming) -> Option<usize> {
    if coming.ids.is_empty() {
        return Some(0);
    }
    let nth = coming.ids.iter().position(|id| of.id() == Some(id))?;
    (nth == 0 || coming.is_chunked).then_some(nth)
}
