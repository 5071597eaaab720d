//! Shapes: the properties of a type's values that determine where the type may be used, and whether it is too
//! large.
//!
//! The shape of each named type is computed once, at the end of its definition, so that no walk over types
//! repeats or recurses.

use super::checker::{Checker, Shape};
use crate::model::{DefId, DefinitionKind, Primitive, Type};

/// Maximum depth of types built from each other; back ends and generated code recurse over them.
pub(super) const DEEPEST: u32 = 128;

/// The limit of the smallest encoding: beyond it, no value fits into a GIOP message, whose size is an
/// `unsigned long`.
pub(super) const LARGEST: u64 = u32::MAX as u64;

impl Checker<'_> {
    pub(super) fn shape(&self, ty: &Type) -> Shape {
        match ty {
            Type::Primitive(primitive) => Shape {
                octets: primitive_octets(*primitive),
                fixed: *primitive != Primitive::WChar,
                ..Shape::default()
            },
            Type::String { .. } | Type::WString { .. } => Shape { octets: 5, ..Shape::default() },
            // An object reference: an empty type id and no profiles.
            Type::Object => Shape { octets: 9, ..Shape::default() },
            Type::Fixed { digits, .. } => {
                Shape { octets: (u64::from(*digits) + 2) / 2, fixed: true, ..Shape::default() }
            }
            // `tk_null`: the kind alone, and no value.
            Type::Any | Type::TypeCode => Shape { octets: 4, ..Shape::default() },
            // Nil.
            Type::ValueBase => Shape { octets: 4, ..Shape::default() },
            // A boolean, and nil.
            Type::AbstractBase => Shape { octets: 5, ..Shape::default() },
            Type::Sequence { element, .. } => {
                let element = self.shape(element);
                Shape { depth: element.depth + 1, octets: 4, fixed: false, by_sequence: true, ..element }
            }
            Type::Array { element, dimensions } => {
                let element = self.shape(element);
                let count = dimensions.iter().fold(1u64, |count, &it| count.saturating_mul(u64::from(it)));
                Shape { depth: element.depth + 1, octets: element.octets.saturating_mul(count), ..element }
            }
            Type::Named(id) => self.named_shape(*id),
        }
    }

    fn named_shape(&self, id: DefId) -> Shape {
        let shape = self.facts[id.index()].shape;
        match self[id].kind {
            DefinitionKind::Struct(_) | DefinitionKind::Union(_) => {
                Shape { heart: Some(id), by_sequence: false, ..shape }
            }
            DefinitionKind::Interface(_) => self.shape(&Type::Object),
            // Nil is the smallest value, also of a declared type.
            DefinitionKind::ValueType(_) => Shape { octets: 4, ..shape },
            _ => shape,
        }
    }

    /// The shape of a type with members of these shapes.
    pub(super) fn composed(&self, members: &[Shape]) -> Shape {
        let octets = members.iter().fold(0u64, |octets, it| octets.saturating_add(it.octets));
        Shape {
            depth: 1 + members.iter().map(|it| it.depth).max().unwrap_or(0),
            octets,
            fixed: members.iter().all(|it| it.fixed),
            heart: None,
            by_sequence: false,
        }
    }
}

fn primitive_octets(primitive: Primitive) -> u64 {
    match primitive {
        Primitive::Boolean | Primitive::Octet | Primitive::Char | Primitive::WChar => 1,
        Primitive::Short | Primitive::UnsignedShort => 2,
        Primitive::Long | Primitive::UnsignedLong | Primitive::Float => 4,
        Primitive::LongLong | Primitive::UnsignedLongLong | Primitive::Double => 8,
        Primitive::LongDouble => 16,
    }
}
