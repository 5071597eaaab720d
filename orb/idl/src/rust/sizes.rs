//! How large and how deep Rust types become, as far as clippy minds.

use std::collections::HashMap;

use super::types::Context;
use crate::model::{DefId, DefinitionKind, Model, Primitive, Struct, Type};

/// Clippy's threshold for errors is 128 octets; the estimate here may be a few too low.
pub(super) const LARGE_ERROR: u64 = 96;

/// Above this many levels a type may trip `clippy::type_complexity`.
const DEEP: u32 = 4;

/// About how many octets structs and exceptions take in memory.
#[derive(Debug, Default)]
pub(super) struct SizeTable {
    structs: HashMap<DefId, u64>,
}

impl SizeTable {
    pub(super) fn new(model: &Model) -> Self {
        let mut table = Self::default();
        for definition in model.definitions() {
            if let DefinitionKind::Struct(body) | DefinitionKind::Exception(body) = &definition.kind {
                table.of_struct(model, definition.id, body);
            }
        }
        table
    }

    /// Allows what clippy says of large errors. Nobody can box what the IDL made large.
    pub(super) fn allow_large_errors(&self, cx: &Context<'_>, raises: &[DefId]) {
        if raises.iter().any(|id| self.structs.get(id).is_some_and(|&octets| octets >= LARGE_ERROR)) {
            cx.allow("clippy::large_enum_variant");
            cx.allow("clippy::result_large_err");
        }
    }

    fn of_struct(&mut self, model: &Model, id: DefId, body: &Struct) -> u64 {
        if let Some(&known) = self.structs.get(&id) {
            return known;
        }
        let sum = body.members.iter().fold(0, |sum: u64, member| sum.saturating_add(self.of(model, &member.ty)));
        self.structs.insert(id, sum);
        sum
    }

    fn of(&mut self, model: &Model, ty: &Type) -> u64 {
        match model.resolve(ty) {
            Type::Primitive(Primitive::LongDouble) => 16,
            Type::Primitive(_) => 8,
            Type::Array { element, dimensions } => {
                let element = self.of(model, element);
                dimensions.iter().fold(element, |product, &len| product.saturating_mul(len.into()))
            }
            Type::Named(id) => match &model[*id].kind {
                DefinitionKind::Struct(body) => self.of_struct(model, *id, body),
                _ => 16,
            },
            _ => 24,
        }
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
