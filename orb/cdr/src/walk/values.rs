//! Walks over values of value types, by the type codes of their states (CORBA 3.3 Part 2, 9.3.4).
//!
//! A skipped value needs a type code for its state unless the state is in chunks; a copied one always needs
//! it. The type code is that of the position, or comes from the decoder's [`Binder`](crate::Binder) if the
//! value is of a derived type. If the binder does not know a truncatable value's type, the base's part is
//! copied, and the copy is of the base's type. Sharing and cycles are preserved within the walk.

use std::sync::OnceLock;

use super::{LENGTH, Walk};
use crate::{
    CdrError, Decoder, Encoder, TcKind, TypeCode, ValueModifier,
    type_code::View,
    value_type::{StartedValue, ValueStart},
};

impl Walk<'_, '_> {
    /// Walks a value; `of` is the type of its position, if that is more specific than a value.
    pub(super) fn value_type(&mut self, view: Option<View<'_>>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        let Some((actual, started)) = self.begin_value(view, input)? else { return Ok(()) };
        if let Some(view) = actual.as_ref().map(|actual| actual.view().resolved()).or(view) {
            self.state(view, input)?;
        }
        self.end_value(&started, input)
    }

    /// Walks a value's header, and returns the type code for its state: the binder's, or that of the
    /// position. `None` if there is no state, or it has been skipped.
    fn begin_value(
        &mut self,
        view: Option<View<'_>>,
        input: &mut Decoder<'_>,
    ) -> Result<Option<(Option<TypeCode>, StartedValue)>, CdrError> {
        self.octets += LENGTH;
        let started = match input.start_value()? {
            ValueStart::Nil => {
                self.to(|out| {
                    out.copy_nil();
                    Ok(())
                })?;
                return Ok(None);
            }
            ValueStart::Indirection(at) => return self.value_again(at, view, input).map(|()| None),
            ValueStart::New(started) => started,
        };
        if let (Some(id), true) = (view.and_then(View::id), started.ids.is_empty()) {
            input.record_formal_type(&started, id);
        }
        let limit = input.wire().limits.value_nesting;
        if self.values >= limit {
            return Err(CdrError::TooDeep { limit });
        }
        if self.out.is_none() && started.is_chunked {
            input.leave_value(&started)?;
            return Ok(None);
        }
        let Some((nth, actual)) = known_type(view, &started, input) else {
            let id = started.ids.first().map(|id| &**id).or(view.and_then(View::id));
            return Err(CdrError::UnknownValue { repository_id: id.unwrap_or_default().into() });
        };
        if let Some(out) = self.out.as_deref_mut() {
            let at = out.copy_header(&started.ids[nth..], started.is_chunked)?;
            self.copied.insert(started.at, at);
        }
        self.values += 1;
        Ok(Some((actual, started)))
    }

    fn end_value(&mut self, started: &StartedValue, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        self.values -= 1;
        self.to(|out| out.end_copy())?;
        if !started.is_chunked {
            input.record_end(started);
        }
        input.leave_value(started)
    }

    fn value_again(&mut self, at: usize, view: Option<View<'_>>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        let original = self.copied.get(&at).copied();
        match &mut self.out {
            None => {
                self.has_outer_indirection |= at < self.start;
                Ok(())
            }
            Some(out) => match original {
                Some(at) => out.copy_indirection(at),
                // All values that the walk has visited are known.
                None => self.value_before(at, view, input),
            },
        }
    }

    /// Copies a value before the start of the walk: an argument or a part of another `any` of the message, as
    /// omniORB shares them. The copies are counted, since many anys may refer to one value.
    #[inline(never)]
    fn value_before(&mut self, at: usize, view: Option<View<'_>>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        let (start, steps, octets) = (self.start, self.steps, self.octets);
        (self.start, self.steps, self.octets) = (at, 0, 0);
        input.return_to(at, |there| self.value_type(view, there))?;
        (self.start, self.steps, self.octets) = (start, steps, octets);
        Ok(())
    }

    /// Walks the content of a box; or the states of the bases, and then the type's own.
    fn state(&mut self, view: View<'_>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        if let Some(content) = view.content() {
            if view.kind() == TcKind::ValueBox {
                return self.value(content, input);
            }
            self.enter(input)?;
            self.state(content.resolved(), input)?;
            self.depth -= 1;
        }
        if view.modifier() == Some(ValueModifier::Custom) {
            return Err(CdrError::Malformed("the state of a custom value type can be decoded by its own code only"));
        }
        self.members(view, input)
    }
}

/// The box of a `wstring` (CORBA 3.3 Part 1, 9.3). Java's ORBs send a `java.lang.String` in an `any` with the type code
/// of a box of `string`, but with the id and the octets of this type. So this id decides, whatever box the type code
/// describes.
const WSTRING_VALUE: &str = "IDL:omg.org/CORBA/WStringValue:1.0";

fn wstring_value() -> &'static TypeCode {
    static WSTRING_BOX: OnceLock<TypeCode> = OnceLock::new();
    WSTRING_BOX.get_or_init(|| {
        TypeCode::value_box(WSTRING_VALUE, "WStringValue", &TypeCode::WSTRING).expect("its id and name are valid")
    })
}

/// The octets of a value with the repository id of its type added, if its header has none: it is of its
/// position's type (9.3.4.1), and is requested as another.
pub(crate) fn named_value(type_code: &TypeCode, input: &Decoder<'_>) -> Result<Option<Vec<u8>>, CdrError> {
    let (view, mut input) = (type_code.view().resolved(), input.clone());
    let is_value = matches!(view.kind(), TcKind::Value | TcKind::Event | TcKind::ValueBox);
    let started = match input.start_value() {
        Ok(ValueStart::New(started)) if is_value && started.ids.is_empty() => started,
        _ => return Ok(None),
    };
    let mut out = Encoder::new(input.wire());
    let at = out.copy_header(&[view.id().unwrap_or_default().into()], started.is_chunked)?;
    let mut walk = Walk::new(&input, Some(&mut out));
    walk.copied.insert(started.at, at);
    walk.values = 1;
    let actual = known_type(Some(view), &started, &input).and_then(|(_, actual)| actual);
    walk.state(actual.as_ref().map_or(view, |actual| actual.view().resolved()), &mut input)?;
    walk.end_value(&started, &mut input)?;
    Ok(Some(out.to_vec()))
}

impl StartedValue {
    /// The type code for the value's state, and the index of the type in [`ids`](Self::ids): beyond the
    /// first, the additions of derived types have to be skipped. `None` if none of its types is known.
    ///
    /// The type is the `declared` one, or one that derives from it and is known to the
    /// [`Binder`](crate::Binder) of `input`.
    #[must_use]
    pub fn state_type(&self, declared: &TypeCode, input: &Decoder<'_>) -> Option<(usize, TypeCode)> {
        // An abstract interface has no state.
        let view = Some(declared.view().resolved()).filter(|view| view.kind() != TcKind::AbstractInterface);
        let (nth, actual) = known_type(view, self, input)?;
        Some((nth, actual.unwrap_or_else(|| declared.clone()).without_aliases()))
    }
}

/// The index of the first of the value's ids with a known type, and its type code if that is not the
/// position's. Beyond the first id only if additions can be skipped.
fn known_type(
    view: Option<View<'_>>,
    started: &StartedValue,
    input: &Decoder<'_>,
) -> Option<(usize, Option<TypeCode>)> {
    let own_id = started.ids.first().map(|id| &**id).or(view.and_then(View::id));
    if own_id == Some(WSTRING_VALUE) {
        let actual = wstring_value();
        if view.is_none_or(|view| view.kind() == TcKind::ValueBox || actual.view().derives_from(view)) {
            return Some((0, Some(actual.clone())));
        }
    }
    let Some(first) = started.ids.first() else { return view.map(|_| (0, None)) };
    let usable = if started.is_chunked { &started.ids[..] } else { std::slice::from_ref(first) };
    usable.iter().enumerate().find_map(|(nth, id)| {
        if view.is_some_and(|view| view.id() == Some(id)) {
            return Some((nth, None));
        }
        let actual = input.binder()?.value_type(id)?;
        view.is_none_or(|view| actual.view().derives_from(view)).then_some((nth, Some(actual)))
    })
}
