//! Lints that the code being written would trip because of what the IDL asks for, and that its reader cannot help.

use super::types::Context;
use crate::model::{DefId, Type};

/// Above this many levels a type may trip `clippy::type_complexity`.
const DEEP: u32 = 4;

/// Allows what clippy says of large errors. Nobody can box what the IDL made large.
pub(super) fn allow_large_errors(cx: &Context<'_>, raises: &[DefId]) {
    if cx.sizes.has_large(raises) {
        cx.allow("clippy::large_enum_variant");
        cx.allow("clippy::result_large_err");
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
