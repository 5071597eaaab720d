//! Which values a parameter takes.

use std::borrow::Cow;

use spandrel_cdr::{Any, TcKind, TypeCode};

/// The value as one of the type that is wanted; nothing if it is not one.
///
/// A value of any type is an `any`; a reference to any object may be one to an object of the interface, which the server finds
/// out; a value of a value type is one of those that its type derives from.
pub(super) fn fitted<'v>(value: &'v Any, wanted: &TypeCode) -> Option<Cow<'v, Any>> {
    let (found, wanted) = (value.type_code(), wanted.without_aliases());
    if found.equivalent(&wanted) {
        return Some(Cow::Borrowed(value));
    }
    let kind = found.without_aliases().kind();
    match wanted.kind() {
        TcKind::Any => Any::new(value).ok().map(Cow::Owned),
        TcKind::ObjRef | TcKind::Component | TcKind::Home => {
            matches!(kind, TcKind::ObjRef | TcKind::Component | TcKind::Home).then_some(Cow::Borrowed(value))
        }
        TcKind::Value | TcKind::Event => derives(found, &wanted).then_some(Cow::Borrowed(value)),
        TcKind::Void => (kind == TcKind::Null).then_some(Cow::Borrowed(value)),
        _ => None,
    }
}

/// True if a value type inherits state from another.
fn derives(found: &TypeCode, wanted: &TypeCode) -> bool {
    /// Received type codes may inherit from themselves.
    const GENERATIONS: usize = 256;
    let base_of = |of: &TypeCode| of.without_aliases().concrete_base_type().ok().flatten();
    let bases = std::iter::successors(base_of(found), |of| base_of(of)).take(GENERATIONS);
    let is_any_value = wanted.id().is_ok_and(|id| id == "IDL:omg.org/CORBA/ValueBase:1.0");
    let is_value = matches!(found.without_aliases().kind(), TcKind::Value | TcKind::Event | TcKind::ValueBox);
    (is_value && is_any_value) || bases.into_iter().any(|base| base.equivalent(wanted))
}
