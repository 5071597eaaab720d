//! How large and how deep Rust types become, as far as clippy minds.

use super::types::Context;
use crate::model::{DefId, DefinitionKind, Primitive, Struct, Type};

/// Clippy's threshold for errors is 128 octets; the estimate here may be a few too low.
pub(super) const LARGE_ERROR: u64 = 96;

/// Above this many levels a type may trip `clippy::type_complexity`.
const DEEP: u32 = 4;

/// About how many octets a struct takes in memory.
pub(super) fn estimate(cx: &Context<'_>, body: &Struct) -> u64 {
    body.members.iter().fold(0, |sum: u64, member| sum.saturating_add(octets(cx, &member.ty)))
}

fn octets(cx: &Context<'_>, ty: &Type) -> u64 {
    match cx.model.resolve(ty) {
        Type::Primitive(Primitive::LongDouble) => 16,
        Type::Primitive(_) => 8,
        Type::Array { element, dimensions } => {
            let len = dimensions.iter().fold(1, |product: u64, &len| product.saturating_mul(len.into()));
            octets(cx, element).saturating_mul(len)
        }
        Type::Named(id) => match &cx.model[*id].kind {
            DefinitionKind::Struct(body) => estimate(cx, body),
            _ => 16,
        },
        _ => 24,
    }
}

/// Allows the lint if a type stands deep, or is deep itself.
pub(super) fn allow_complex(cx: &Context<'_>, ty: &Type, around: u32) {
    if around + depth(ty) > DEEP {
        cx.allow("clippy::type_complexity");
    }
}

fn depth(ty: &Type) -> u32 {
    match ty {
        Type::Sequence { element, .. } => 1 + depth(element),
        Type::Array { element, dimensions } => dimensions.len() as u32 + depth(element),
        Type::Named(_) | Type::Object => 1,
        _ => 0,
    }
}

/// Allows a lint that enumerators with a common beginning or end trip.
pub(super) fn allow_enum(cx: &Context<'_>, enumerators: &[DefId]) {
    if enumerators.len() >= 3 {
        cx.allow("clippy::enum_variant_names");
    }
}
