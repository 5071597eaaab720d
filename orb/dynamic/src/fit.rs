//! The values that a parameter accepts.

use std::borrow::Cow;

use spandrel_cdr::{Any, CdrError, Decode, Decoder, Encoder, Ior, TcKind, TypeCode, ValueStart};

use crate::{DynAny, ValueTypes, value_types::TypedBinder};

/// The value as one that a parameter of this type accepts; `None` if it is not accepted.
///
/// An `any` accepts a value of any type. A parameter of an interface accepts a reference to any object, whose
/// type the server checks. Other parameters as in [`derived`].
pub(crate) fn fitted<'v>(value: &'v Any, expected: &TypeCode) -> Option<Cow<'v, Any>> {
    let wanted_kind = expected.without_aliases().kind();
    let kind = value.type_code().without_aliases().kind();
    derived(value, expected).or_else(|| match wanted_kind {
        TcKind::Any => Any::new(value).ok().map(Cow::Owned),
        TcKind::ObjRef | TcKind::Component | TcKind::Home => is_reference(kind).then_some(Cow::Borrowed(value)),
        TcKind::Void => (kind == TcKind::Null).then_some(Cow::Borrowed(value)),
        _ => None,
    })
}

/// The value as one of the declared type; `None` if it is not one. A value type accepts values of derived
/// types, and an abstract interface references and values.
pub(crate) fn derived<'v>(value: &'v Any, declared: &TypeCode) -> Option<Cow<'v, Any>> {
    let actual = value.type_code();
    if actual.equivalent(declared) {
        return Some(Cow::Borrowed(value));
    }
    let kind = actual.without_aliases().kind();
    let fits = match declared.without_aliases().kind() {
        TcKind::Value | TcKind::Event | TcKind::ValueBox => actual.derives_from(declared),
        TcKind::AbstractInterface => {
            is_reference(kind) || kind == TcKind::AbstractInterface || actual.derives_from(declared)
        }
        _ => false,
    };
    if fits { declared_as(value, declared).ok().map(Cow::Owned) } else { None }
}

fn is_reference(kind: TcKind) -> bool {
    matches!(kind, TcKind::ObjRef | TcKind::Component | TcKind::Home)
}

/// The value with another declared type: a base of its own, or an abstract interface. The `Any` records its
/// type.
fn declared_as(value: &Any, declared: &TypeCode) -> Result<Any, CdrError> {
    let actual = value.type_code().without_aliases();
    if matches!(value.value().start_value(), Ok(ValueStart::New(started)) if started.ids().is_empty()) {
        // Its header has no type, which another position would give wrongly (CORBA 3.3 Part 2, 9.3.4.1).
        let written = DynAny::new(value).and_then(|value| value.retyped(declared)?.to_any());
        return written.map_err(|_| CdrError::Malformed("the value cannot be converted to components"));
    }
    let types = TypedBinder::new(&ValueTypes::from_iter([&actual]), value.value().binder());
    if declared.without_aliases().kind() != TcKind::AbstractInterface || actual.kind() == TcKind::AbstractInterface {
        return Any::read(declared.clone(), &mut value.value().with_binder(&types));
    }
    // A boolean distinguishes references from values (9.3.7).
    let mut out = Encoder::new(value.value().wire());
    let is_object = is_reference(actual.kind());
    if is_object && Ior::decode(&mut value.value())?.is_nil() {
        out.bool(false);
        out.u32(0);
    } else {
        out.bool(is_object);
        value.write_value(&mut out)?;
    }
    Any::read(declared.clone(), &mut Decoder::new(&out.to_vec(), out.wire()).with_binder(&types))
}
