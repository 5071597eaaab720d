//! Which values a parameter takes.

use std::borrow::Cow;

use spandrel_cdr::{Any, CdrError, Decode, Decoder, Encoder, Ior, MetValue, TcKind, TypeCode};

use crate::{DynAny, ValueTypes, value_types::TypedBinder};

/// The value as one that a parameter of this type takes; nothing if it takes none such.
///
/// A value of any type is an `any`; a reference to any object may be one to an object of the interface, which the server finds
/// out; else as [`derived`].
pub(crate) fn fitted<'v>(value: &'v Any, wanted: &TypeCode) -> Option<Cow<'v, Any>> {
    let wanted_kind = wanted.without_aliases().kind();
    let kind = value.type_code().without_aliases().kind();
    derived(value, wanted).or_else(|| match wanted_kind {
        TcKind::Any => Any::new(value).ok().map(Cow::Owned),
        TcKind::ObjRef | TcKind::Component | TcKind::Home => is_reference(kind).then_some(Cow::Borrowed(value)),
        TcKind::Void => (kind == TcKind::Null).then_some(Cow::Borrowed(value)),
        _ => None,
    })
}

/// The value as one of the declared type; nothing if it is not one. A value of a value type is one of those that its type derives from,
/// and an abstract interface has references and values.
pub(crate) fn derived<'v>(value: &'v Any, declared: &TypeCode) -> Option<Cow<'v, Any>> {
    let found = value.type_code();
    if found.equivalent(declared) {
        return Some(Cow::Borrowed(value));
    }
    let kind = found.without_aliases().kind();
    let fits = match declared.without_aliases().kind() {
        TcKind::Value | TcKind::Event | TcKind::ValueBox => found.derives_from(declared),
        TcKind::AbstractInterface => {
            is_reference(kind) || kind == TcKind::AbstractInterface || found.derives_from(declared)
        }
        _ => false,
    };
    if fits { declared_as(value, declared).ok().map(Cow::Owned) } else { None }
}

fn is_reference(kind: TcKind) -> bool {
    matches!(kind, TcKind::ObjRef | TcKind::Component | TcKind::Home)
}

/// The value where another type is declared: a base of its own, or an abstract interface. The `Any` knows which type it is of.
fn declared_as(value: &Any, declared: &TypeCode) -> Result<Any, CdrError> {
    let found = value.type_code().without_aliases();
    if matches!(value.value().meet_value(), Ok(MetValue::New(coming)) if coming.ids().is_empty()) {
        // It says nothing of its type, which another position would say wrongly (CORBA 3.3 Part 2, 9.3.4.1).
        let written = DynAny::new(value).and_then(|value| value.retyped(declared)?.to_any());
        return written.map_err(|_| CdrError::Malformed("the value cannot be taken apart"));
    }
    let types = TypedBinder::new(&ValueTypes::from_iter([&found]), value.value().binder());
    if declared.without_aliases().kind() != TcKind::AbstractInterface || found.kind() == TcKind::AbstractInterface {
        return Any::read(declared.clone(), &mut value.value().with_binder(&types));
    }
    // A boolean says whether a reference follows or a value (9.3.7).
    let mut out = Encoder::new(value.value().wire());
    let is_object = is_reference(found.kind());
    if is_object && Ior::decode(&mut value.value())?.is_nil() {
        out.bool(false);
        out.u32(0);
    } else {
        out.bool(is_object);
        value.write_value(&mut out)?;
    }
    Any::read(declared.clone(), &mut Decoder::new(&out.to_vec(), out.wire()).with_binder(&types))
}
