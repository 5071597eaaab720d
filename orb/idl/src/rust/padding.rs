//! Structs with explicit padding: their memory is their encoding, so that sequences of them are sent from where they lie.
//!
//! That holds where `repr(C)` puts every primitive where CDR puts it in a struct that starts at a multiple of its largest
//! alignment, and where the next element of a sequence starts there too. Gaps between members become fields of type `Pad`,
//! which holds zeros and nothing else; generated code lets the compiler check where each member lies.

use std::collections::{HashMap, HashSet};

use proc_macro2::Ident;

use super::layout::{self, LeafCounts, Placed, Shape};
use super::{names, scope};
use crate::model::{DefId, Definition, DefinitionKind, Model, Type};

/// Which structs are to have their padding explicit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Chosen {
    #[default]
    None,
    All,
    /// Those of these scoped names, without a leading `::`.
    Named(Vec<String>),
}

impl Chosen {
    fn has(&self, definition: &Definition) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.contains(&definition.scoped_name),
        }
    }
}

/// What a type is to explicit padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has fields for its gaps.
    Struct,
    /// It is a member of such a struct.
    Enum,
}

/// A gap in a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    /// The member behind it; as many as there are members for the one at the end.
    before: usize,
    offset: usize,
    octets: usize,
}

/// The padding of a struct.
#[derive(Debug)]
struct Padding {
    gaps: Vec<Gap>,
    /// Whether the next of several starts where it does in memory. It need not within another struct, whose next member may
    /// be aligned more than the first one of this.
    is_block: bool,
}

/// What the padding of each struct looks like.
#[derive(Debug, Default)]
pub(super) struct PaddingTable {
    structs: HashMap<DefId, Padding>,
    /// Those that are members of such structs.
    enums: HashSet<DefId>,
    /// Chosen by name, and in vain.
    refused: Vec<String>,
}

impl PaddingTable {
    pub(super) fn new(model: &Model, chosen: &Chosen, leaf_counts: &LeafCounts) -> Self {
        let mut table = Self::default();
        let structs = model.definitions().filter(|definition| definition.as_struct().is_some());
        for definition in structs.filter(|definition| chosen.has(definition)) {
            let shape = leaf_counts.is_small(definition.id).then(|| struct_shape(model, definition.id)).flatten();
            match shape.filter(is_block) {
                Some(shape) => table.add(model, &shape),
                None if matches!(chosen, Chosen::Named(_)) => table.refused.push(definition.scoped_name.clone()),
                None => {}
            }
        }
        table
    }

    /// The struct, and all that it is made of.
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

    /// Whether sequences of the struct are sent from where they lie.
    pub(super) fn is_block(&self, id: DefId) -> bool {
        self.structs.get(&id).is_some_and(|padding| padding.is_block)
    }

    /// Structs that were chosen by name, and whose memory cannot be their encoding.
    pub(super) fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Whether it is such a struct, or an enum in one; and which of both.
    pub(super) fn has(&self, id: DefId) -> Option<Kind> {
        let is_enum = self.enums.contains(&id).then_some(Kind::Enum);
        self.is_padded(id).then_some(Kind::Struct).or(is_enum)
    }

    /// The fields that are gaps: each with the number of the member that it stands before.
    pub(super) fn fields(&self, id: DefId, members: &[Ident]) -> Vec<(usize, Ident, usize)> {
        let Some(Padding { gaps, .. }) = self.structs.get(&id) else { return Vec::new() };
        let mut taken = scope::Scope::default();
        members.iter().for_each(|member| taken.reserve(member));
        gaps.iter().map(|gap| (gap.before, taken.take(&format!("pad_{}", gap.offset)), gap.octets)).collect()
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

/// Whether memory and CDR agree on the places of all primitives, and the next element of a sequence starts where the next of
/// an array does.
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

/// Where `repr(C)` puts the leaves of a value at `start`.
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

/// What `repr(C)` makes of a type.
pub(super) fn size_and_alignment(shape: &Shape<DefId>) -> (usize, usize) {
    match shape {
        Shape::Leaf(size) => (*size, *size),
        // A whole number in memory.
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
