//! Structs with explicit padding: their memory is their encoding, so that sequences of them are sent without
//! a copy.
//!
//! The condition: `repr(C)` and CDR agree on the offset of every primitive in a struct that starts at a
//! multiple of its largest alignment, and on the start of the next element of a sequence. Gaps between
//! members become fields of type `Pad`, which holds only zeros; generated code contains a compile-time check
//! of each member's offset.

use std::collections::{HashMap, HashSet};

use proc_macro2::Ident;

use super::layout::{self, LeafCounts, Placed, Shape};
use super::{names, scope};
use crate::model::{DefId, Definition, DefinitionKind, Model, Type};

/// The structs selected for explicit padding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum PaddingSelection {
    #[default]
    None,
    All,
    /// The structs of these scoped names, without a leading `::`.
    Named(Vec<String>),
}

impl PaddingSelection {
    fn has(&self, definition: &Definition) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.contains(&definition.scoped_name),
        }
    }
}

/// The role of a type in explicit padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has fields for its gaps.
    Struct,
    /// It is a member of such a struct.
    Enum,
}

/// Octets of a struct that no member covers, before a member or at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    /// The index of the member after it; the number of members for the gap at the end.
    before: usize,
    offset: usize,
    octets: usize,
}

/// The gaps of a struct, which its Rust form fills with members of their own.
#[derive(Debug)]
struct Padding {
    gaps: Vec<Gap>,
    /// Whether the next element of a sequence starts at the same offset as in memory. That need not be so
    /// within another struct, whose next member may have a larger alignment than this struct's first one.
    is_block: bool,
}

/// The padding of each struct.
#[derive(Debug, Default)]
pub(super) struct PaddingTable {
    structs: HashMap<DefId, Padding>,
    /// The enums that are members of such structs.
    enums: HashSet<DefId>,
    /// Selected by name and not possible.
    refused: Vec<String>,
}

impl PaddingTable {
    pub(super) fn new(model: &Model, chosen: &PaddingSelection, leaf_counts: &LeafCounts) -> Self {
        let mut table = Self::default();
        let structs = model.definitions().filter(|definition| definition.as_struct().is_some());
        for definition in structs.filter(|definition| chosen.has(definition)) {
            let shape = leaf_counts.is_small(definition.id).then(|| struct_shape(model, definition.id)).flatten();
            match shape.filter(is_block) {
                Some(shape) => table.add(model, &shape),
                None if matches!(chosen, PaddingSelection::Named(_)) => {
                    table.refused.push(definition.scoped_name.clone())
                }
                None => {}
            }
        }
        table
    }

    /// Adds the struct, and the structs and enums in it.
    fn add(&mut self, model: &Model, shape: &Shape<DefId>) {
        match shape {
            Shape::Leaf(_) | Shape::Digits(_) => {}
            Shape::Array(element, _) => self.add(model, element),
            Shape::Struct(id, members) => {
                self.structs.insert(*id, Padding { gaps: gaps(members), is_block: is_block(shape) });
                members.iter().for_each(|(_, member)| self.add(model, member));
                let body = model[*id].as_struct().map_or(&[][..], |body| &body.members);
                self.enums.extend(body.iter().filter_map(|member| enum_within(model, &member.ty)));
            }
        }
    }

    pub(super) fn is_padded(&self, id: DefId) -> bool {
        self.structs.contains_key(&id)
    }

    /// Whether sequences of the struct are sent without a copy.
    pub(super) fn is_block(&self, id: DefId) -> bool {
        self.structs.get(&id).is_some_and(|padding| padding.is_block)
    }

    /// Structs that were selected by name, and whose memory cannot be their encoding.
    pub(super) fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Whether the type has explicit padding: as such a struct, or as an enum in one.
    pub(super) fn has(&self, id: DefId) -> Option<Kind> {
        let is_enum = self.enums.contains(&id).then_some(Kind::Enum);
        self.is_padded(id).then_some(Kind::Struct).or(is_enum)
    }

    /// The gap fields: each with the index of the member after it.
    pub(super) fn fields(&self, id: DefId, members: &[Ident]) -> Vec<(usize, Ident, usize)> {
        let Some(Padding { gaps, .. }) = self.structs.get(&id) else { return Vec::new() };
        let mut field_names = scope::Scope::default();
        members.iter().for_each(|member| field_names.reserve(member));
        gaps.iter().map(|gap| (gap.before, field_names.take(&format!("pad_{}", gap.offset)), gap.octets)).collect()
    }
}

pub(super) fn struct_shape(model: &Model, id: DefId) -> Option<Shape<DefId>> {
    let fields = |id: DefId| (id, names::fields(model[id].as_struct().map_or(&[][..], |body| &body.members)));
    layout::shape(model, &Type::Named(id), &fields)
}

fn enum_within(model: &Model, ty: &Type) -> Option<DefId> {
    match model.resolve(ty) {
        Type::Array { element, .. } => enum_within(model, element),
        Type::Named(id) => matches!(model[*id].kind, DefinitionKind::Enum(_)).then_some(*id),
        _ => None,
    }
}

/// Whether memory and CDR agree on the offsets of all primitives and on the start of the next element.
fn is_block(shape: &Shape<DefId>) -> bool {
    let Some(layout) = shape.layout() else { return false };
    let mut places = Vec::new();
    leaf_places(&layout.root, &mut places);
    let mut memory = Vec::new();
    in_memory(shape, 0, &mut memory);
    let uniform = layout.size.next_multiple_of(layout.first_align).is_multiple_of(layout.align);
    uniform && !shape.has_digits() && places == memory
}

fn leaf_places(placed: &Placed<DefId>, places: &mut Vec<usize>) {
    match placed {
        Placed::Leaf { offset, .. } => places.push(*offset),
        Placed::Array(elements) => elements.iter().for_each(|element| leaf_places(element, places)),
        Placed::Struct(_, members) => members.iter().for_each(|(_, member)| leaf_places(member, places)),
    }
}

/// The offsets of the leaves of a value at `start` under `repr(C)`.
fn in_memory(shape: &Shape<DefId>, start: usize, places: &mut Vec<usize>) {
    match shape {
        Shape::Leaf(_) | Shape::Digits(_) => places.push(start),
        Shape::Array(element, len) => {
            let (size, _) = size_and_alignment(element);
            (0..*len).for_each(|nth| in_memory(element, start + nth * size, places));
        }
        Shape::Struct(_, members) => {
            let mut end = start;
            for (_, member) in members {
                let (size, align) = size_and_alignment(member);
                end = end.next_multiple_of(align);
                in_memory(member, end, places);
                end += size;
            }
        }
    }
}

/// The size and alignment of a type under `repr(C)`.
pub(super) fn size_and_alignment(shape: &Shape<DefId>) -> (usize, usize) {
    match shape {
        Shape::Leaf(size) => (*size, *size),
        // A `fixed` is an integer in memory.
        Shape::Digits(_) => (size_of::<i128>(), align_of::<i128>()),
        Shape::Array(element, len) => {
            let (size, align) = size_and_alignment(element);
            (size * len, align)
        }
        Shape::Struct(_, members) => {
            let (end, most) = members.iter().fold((0usize, 1), |(end, most), (_, member)| {
                let (size, align) = size_and_alignment(member);
                (end.next_multiple_of(align) + size, most.max(align))
            });
            (end.next_multiple_of(most), most)
        }
    }
}

fn gaps(members: &[(Ident, Shape<DefId>)]) -> Vec<Gap> {
    let (mut end, mut most, mut gaps) = (0usize, 1, Vec::new());
    for (before, (_, member)) in members.iter().enumerate() {
        let (size, align) = size_and_alignment(member);
        let offset = end.next_multiple_of(align);
        if offset > end {
            gaps.push(Gap { before, offset: end, octets: offset - end });
        }
        end = offset + size;
        most = most.max(align);
    }
    let whole = end.next_multiple_of(most);
    if whole > end {
        gaps.push(Gap { before: members.len(), offset: end, octets: whole - end });
    }
    gaps
}
