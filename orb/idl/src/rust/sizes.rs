//! How large Rust types become, as far as clippy minds.

use std::collections::HashMap;

use crate::model::{DefId, DefinitionKind, Model, Primitive, Struct, Type};

/// Clippy's threshold for errors is 128 octets; the estimate here may be a few too low.
pub(super) const LARGE_ERROR: u64 = 96;

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

    /// True if one of the exceptions is so large that clippy minds it in a `Result`.
    pub(super) fn has_large(&self, raises: &[DefId]) -> bool {
        raises.iter().any(|id| self.structs.get(id).is_some_and(|&octets| octets >= LARGE_ERROR))
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
