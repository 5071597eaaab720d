//! Estimates of the size of Rust types, for clippy's lints on size.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::model::{DefId, DefinitionKind, Model, Primitive, Type};

/// Clippy's threshold for errors is 128 octets; the estimate here may be a few too low.
pub(super) const LARGE_ERROR: u64 = 96;

/// The approximate size in octets of structs, unions and exceptions in memory.
#[derive(Debug, Default)]
pub(super) struct SizeTable {
    octets_by_definition: RefCell<HashMap<DefId, u64>>,
}

impl SizeTable {
    pub(super) fn new(model: &Model) -> Self {
        let table = Self::default();
        for definition in model.definitions() {
            table.of_definition(model, definition.id);
        }
        table
    }

    /// Whether one of the exceptions exceeds clippy's limit for the error of a `Result`.
    pub(super) fn has_large(&self, raises: &[DefId]) -> bool {
        raises.iter().any(|id| self.octets_by_definition.borrow().get(id).is_some_and(|&octets| octets >= LARGE_ERROR))
    }

    /// Whether the type exceeds clippy's limit for one variant of an enum.
    pub(super) fn is_large(&self, model: &Model, ty: &Type) -> bool {
        self.of(model, ty) >= LARGE_ERROR
    }

    fn of_definition(&self, model: &Model, id: DefId) -> u64 {
        let computed = self.octets_by_definition.borrow().get(&id).copied();
        if let Some(octets) = computed {
            return octets;
        }
        let octets = match &model[id].kind {
            DefinitionKind::Struct(body) | DefinitionKind::Exception(body) => {
                body.members.iter().fold(0, |sum: u64, member| sum.saturating_add(self.of(model, &member.ty)))
            }
            DefinitionKind::Union(body) => {
                let largest = body.branches.iter().map(|branch| self.of(model, &branch.member.ty)).max();
                largest.unwrap_or(0).saturating_add(8)
            }
            _ => 16,
        };
        self.octets_by_definition.borrow_mut().insert(id, octets);
        octets
    }

    fn of(&self, model: &Model, ty: &Type) -> u64 {
        match model.resolve(ty) {
            Type::Primitive(Primitive::LongDouble) | Type::Fixed { .. } => 16,
            Type::Any => 64,
            Type::Primitive(_) => 8,
            Type::Array { element, dimensions } => {
                let element = self.of(model, element);
                dimensions.iter().fold(element, |product, &len| product.saturating_mul(len.into()))
            }
            Type::Named(id) => self.of_definition(model, *id),
            _ => 24,
        }
    }
}
