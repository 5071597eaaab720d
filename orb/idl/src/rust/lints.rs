//! Lints that generated code trips because of its IDL, and that its readers cannot avoid.

use super::derives::Traits;
use super::types::Context;
use crate::model::{DefId, DefinitionKind, Type, Union};

/// Lints against lists in docs whose items continue at another column. The lists of IDL comments are seldom Markdown's.
pub(super) const AGAINST_LISTS: [&str; 2] = ["clippy::doc_lazy_continuation", "clippy::doc_overindented_list_items"];

/// Above this many levels a type may trip `clippy::type_complexity`.
const MAX_DEPTH: u32 = 4;

/// Allows the lint against large errors, whose size is given by the IDL.
pub(super) fn allow_large_errors(cx: &Context<'_>, raises: &[DefId]) {
    if cx.sizes.has_large(raises) {
        cx.allow("clippy::large_enum_variant");
        cx.allow("clippy::result_large_err");
    }
}

/// Allows the lint if a type is deeply nested, or used at a deep level.
pub(super) fn allow_complex(cx: &Context<'_>, ty: &Type, around: u32) {
    if around + depth(cx, ty) > MAX_DEPTH {
        cx.allow("clippy::type_complexity");
    }
}

fn depth(cx: &Context<'_>, ty: &Type) -> u32 {
    match ty {
        Type::Sequence { element, .. } => 1 + depth(cx, element),
        Type::Array { element, dimensions } => dimensions.len() as u32 + depth(cx, element),
        Type::Named(id) => match &cx.model[*id].kind {
            DefinitionKind::ValueType(_) | DefinitionKind::ValueBox(_) => 2,
            DefinitionKind::Interface(body) if body.is_abstract => 3,
            _ => 1,
        },
        Type::ValueBase | Type::AbstractBase => 3,
        Type::Object => 1,
        _ => 0,
    }
}

/// Allows the lint against unions whose members differ much in size.
pub(super) fn allow_large_variants(cx: &Context<'_>, body: &Union) {
    if body.branches.iter().any(|branch| cx.sizes.is_large(cx.model, &branch.member.ty)) {
        cx.allow("clippy::large_enum_variant");
    }
}

/// Allows types without `Debug`, because they contain types of the program.
pub(super) fn allow_no_debug(cx: &Context<'_>, traits: Traits) {
    if !traits.has_debug() {
        cx.allow("missing_debug_implementations");
    }
}

/// Allows a lint that is tripped by variants with a common beginning or end.
pub(super) fn allow_variants(cx: &Context<'_>, count: usize) {
    if count >= 3 {
        cx.allow("clippy::enum_variant_names");
    }
}

/// Whether lines of a doc comment may trip the lints [`AGAINST_LISTS`]: a list item, and text behind it.
pub(super) fn has_continued_list<'l>(doc: impl IntoIterator<Item = &'l str>) -> bool {
    let mut lines = doc.into_iter().map(str::trim_start).filter(|line| !line.is_empty());
    lines.any(is_list_item) && lines.any(|line| !is_list_item(line))
}

/// Whether Markdown may take a line for the beginning of a list item, such as `- text` or `1. text`.
fn is_list_item(line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    let number = word.strip_suffix(['.', ')']).unwrap_or_default();
    matches!(word, "-" | "*" | "+") || (!number.is_empty() && number.bytes().all(|octet| octet.is_ascii_digit()))
}
