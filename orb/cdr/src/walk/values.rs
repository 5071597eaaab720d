//! Values of value types, by the type codes that say what their states are (CORBA 3.3 Part 2, 9.3.4).
//!
//! A value that is only passed over needs a type code for its state unless that is in chunks. To be written once more, its
//! state must be known. The type code is that of the position, or comes from the decoder's [`Binder`](crate::Binder) if the value is
//! of a derived type. If the binder does not know that type and the value is truncatable, what the base has of it is written, and it
//! is of the base's type from there on. Sharing and circles stay what they are, within what is walked.

use super::Walk;
use crate::{
    CdrError, Decoder, Encoder, TcKind, TypeCode, ValueModifier,
    type_code::View,
    value_type::{Coming, Met},
};

impl Walk<'_, '_> {
    /// Walks a value; `of` is what its position says, if it is more than that values stand there.
    pub(super) fn value_type(&mut self, of: Option<View<'_>>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        let Some((found, coming)) = self.begin_value(of, input)? else { return Ok(()) };
        if let Some(of) = found.as_ref().map(|found| found.view().resolved()).or(of) {
            self.state(of, input)?;
        }
        self.end_value(&coming, input)
    }

    /// What stands before a value's state, which then is to be walked: by the type code that was found, or by that of the position.
    /// `None` if there is no state, or it has been passed over.
    fn begin_value(
        &mut self,
        of: Option<View<'_>>,
        input: &mut Decoder<'_>,
    ) -> Result<Option<(Option<TypeCode>, Coming)>, CdrError> {
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
        let Some((nth, found)) = known_type(of, &coming, input) else {
            let id = coming.ids.first().map(|id| &**id).or(of.and_then(View::id));
            return Err(CdrError::UnknownValue { repository_id: id.unwrap_or_default().into() });
        };
        if let Some(out) = self.out.as_deref_mut() {
            let at = out.copy_header(&coming.ids[nth..], coming.is_chunked)?;
            self.copied.insert(coming.at, at);
        }
        self.values += 1;
        Ok(Some((found, coming)))
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

/// The octets of a value with the repository id of its type, if it says none: it is of that which its position declares (9.3.4.1), and
/// is wanted where another is declared.
pub(crate) fn named_value(of: &TypeCode, input: &Decoder<'_>) -> Result<Option<Vec<u8>>, CdrError> {
    let (of, mut input) = (of.view().resolved(), input.clone());
    let is_value = matches!(of.kind(), TcKind::Value | TcKind::Event | TcKind::ValueBox);
    let coming = match input.meet_value() {
        Ok(Met::New(coming)) if is_value && coming.ids.is_empty() => coming,
        _ => return Ok(None),
    };
    let mut out = Encoder::new(input.wire());
    let at = out.copy_header(&[of.id().unwrap_or_default().into()], coming.is_chunked)?;
    let mut walk = Walk::new(&input, Some(&mut out));
    walk.copied.insert(coming.at, at);
    walk.values = 1;
    walk.state(of, &mut input)?;
    walk.end_value(&coming, &mut input)?;
    Ok(Some(out.to_vec()))
}

impl Coming {
    /// The type code by which the value's state is to be read, and which of [`ids`](Self::ids) is that of the type: beyond the first, what
    /// its derived types add has to be passed over. `None` if no type of it is known.
    ///
    /// The type is the `declared` one, or one that derives from it and is known to the [`Binder`](crate::Binder) of `input`.
    #[must_use]
    pub fn state_type(&self, declared: &TypeCode, input: &Decoder<'_>) -> Option<(usize, TypeCode)> {
        // An abstract interface has no state.
        let of = Some(declared.view().resolved()).filter(|of| of.kind() != TcKind::AbstractInterface);
        let (nth, found) = known_type(of, self, input)?;
        Some((nth, found.unwrap_or_else(|| declared.clone()).without_aliases()))
    }
}

/// Which of the value's ids is that of a type whose state is known, and its type code if that is not the position's. Beyond the first
/// only if what others add can be passed over.
fn known_type(of: Option<View<'_>>, coming: &Coming, input: &Decoder<'_>) -> Option<(usize, Option<TypeCode>)> {
    let Some(first) = coming.ids.first() else { return of.map(|_| (0, None)) };
    let usable = if coming.is_chunked { &coming.ids[..] } else { std::slice::from_ref(first) };
    usable.iter().enumerate().find_map(|(nth, id)| {
        if of.is_some_and(|of| of.id() == Some(id)) {
            return Some((nth, None));
        }
        let found = input.binder()?.value_type(id)?;
        of.is_none_or(|of| found.view().derives_from(of)).then_some((nth, Some(found)))
    })
}
