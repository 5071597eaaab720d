//! The CDR offsets of the parts of a fixed-size value, computed once here instead of for each value at run
//! time.
//!
//! CDR aligns primitives to their own size, counted from the start of the message, and structs not at all
//! (CORBA 3.3 Part 2, 9.3.1 and 9.3.2.1). So a value that starts at a multiple of its largest alignment always
//! has the same layout, which is computed here. A value at another offset is coded member by member at run time.

use std::collections::HashMap;

use proc_macro2::Ident;

use crate::model::{DefId, DefinitionKind, Model, Primitive, Type};

/// The maximum number of primitives for straight-line code; types with more are coded member by member.
pub(super) const MAX_LEAVES: u64 = 64;

/// The structure of a fixed-size type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape<Id> {
    /// A primitive or an enum of this many octets, aligned to as many.
    Leaf(usize),
    /// A `fixed` of this many octets, without alignment.
    Digits(usize),
    /// An array of so many elements.
    Array(Box<Shape<Id>>, usize),
    /// A struct, and its members.
    Struct(Id, Vec<(Ident, Shape<Id>)>),
}

/// A [`Shape`] with offsets of its leaves.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Placed<Id> {
    /// `size` octets at `offset`.
    Leaf { offset: usize, size: usize },
    /// The elements of an array.
    Array(Vec<Placed<Id>>),
    /// A struct, and its members.
    Struct(Id, Vec<(Ident, Placed<Id>)>),
}

/// The offsets of all leaves of a value that starts at a multiple of `align`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout<Id> {
    /// Alignment of the first leaf.
    pub(super) first_align: usize,
    /// The largest alignment of a leaf, in octets.
    pub(super) align: usize,
    /// The octets from the start to the end of the last leaf.
    pub(super) size: usize,
    /// The value, with the offset of each leaf.
    pub(super) root: Placed<Id>,
}

impl<Id: Clone> Shape<Id> {
    /// The number of leaves; saturating, because an array may have 2³² elements.
    pub(super) fn leaves(&self) -> u64 {
        match self {
            Self::Leaf(_) | Self::Digits(_) => 1,
            Self::Array(element, len) => element.leaves().saturating_mul(*len as u64),
            Self::Struct(_, members) => {
                members.iter().fold(0, |sum: u64, (_, member)| sum.saturating_add(member.leaves()))
            }
        }
    }

    /// Whether it contains a `fixed`, whose memory is not its encoding.
    pub(super) fn has_digits(&self) -> bool {
        match self {
            Self::Leaf(_) => false,
            Self::Digits(_) => true,
            Self::Array(element, _) => element.has_digits(),
            Self::Struct(_, members) => members.iter().any(|(_, member)| member.has_digits()),
        }
    }

    /// The offsets of its leaves, unless there are too many or none.
    pub(super) fn layout(&self) -> Option<Layout<Id>> {
        if !(1..=MAX_LEAVES).contains(&self.leaves()) {
            return None;
        }
        let mut placing = Placing { end: 0, align: 1, first_align: None };
        let root = placing.place(self);
        Some(Layout { first_align: placing.first_align?, align: placing.align, size: placing.end, root })
    }
}

struct Placing {
    end: usize,
    align: usize,
    first_align: Option<usize>,
}

impl Placing {
    fn place<Id: Clone>(&mut self, shape: &Shape<Id>) -> Placed<Id> {
        match shape {
            Shape::Leaf(size) => self.place_leaf(*size, *size),
            Shape::Digits(size) => self.place_leaf(*size, 1),
            Shape::Array(element, len) => Placed::Array((0..*len).map(|_| self.place(element)).collect()),
            Shape::Struct(id, members) => Placed::Struct(
                id.clone(),
                members.iter().map(|(name, member)| (name.clone(), self.place(member))).collect(),
            ),
        }
    }
}

impl Placing {
    fn place_leaf<Id>(&mut self, size: usize, align: usize) -> Placed<Id> {
        let offset = self.end.next_multiple_of(align);
        self.end = offset + size;
        self.align = self.align.max(align);
        self.first_align.get_or_insert(align);
        Placed::Leaf { offset, size }
    }
}

/// The number of leaves of each struct of fixed size, computed before any [`Shape`], because a few lines of
/// IDL can nest structs with 2⁶⁴ leaves.
#[derive(Debug, Default)]
pub(super) struct LeafCounts {
    structs: HashMap<DefId, Option<u64>>,
}

impl LeafCounts {
    pub(super) fn new(model: &Model) -> Self {
        let mut counts = Self::default();
        for definition in model.definitions() {
            if definition.as_struct().is_some() {
                counts.leaves(model, &Type::Named(definition.id));
            }
        }
        counts
    }

    /// Whether the struct is fixed-size and small enough for straight-line code.
    pub(super) fn is_small(&self, id: DefId) -> bool {
        matches!(self.structs.get(&id), Some(Some(1..=MAX_LEAVES)))
    }

    fn leaves(&mut self, model: &Model, ty: &Type) -> Option<u64> {
        match model.resolve(ty) {
            Type::Primitive(primitive) => leaf_size(*primitive).map(|_| 1),
            Type::Fixed { .. } => Some(1),
            Type::Array { element, dimensions } => {
                let element = self.leaves(model, element)?;
                Some(dimensions.iter().fold(element, |product, &len| product.saturating_mul(len.into())))
            }
            Type::Named(id) => match &model[*id].kind {
                DefinitionKind::Enum(_) => Some(1),
                DefinitionKind::Struct(body) => {
                    if let Some(layout) = self.structs.get(id) {
                        return *layout;
                    }
                    let members = body.members.iter().map(|member| self.leaves(model, &member.ty));
                    let sum =
                        members.collect::<Option<Vec<u64>>>().map(|all| all.into_iter().fold(0, u64::saturating_add));
                    self.structs.insert(*id, sum);
                    sum
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// The size of a primitive in octets, for those whose alignment is their size.
pub(super) fn leaf_size(primitive: Primitive) -> Option<usize> {
    Some(match primitive {
        Primitive::Octet | Primitive::Boolean | Primitive::Char => 1,
        Primitive::Short | Primitive::UnsignedShort => 2,
        Primitive::Long | Primitive::UnsignedLong | Primitive::Float => 4,
        Primitive::LongLong | Primitive::UnsignedLongLong | Primitive::Double => 8,
        // `long double` is 16 octets aligned to eight (table 9.1), `wchar` has a length in GIOP 1.2: no leaves.
        Primitive::LongDouble | Primitive::WChar => return None,
    })
}

/// The shape of a fixed-size type, `None` for others; `names` returns the Rust names of a struct's fields.
pub(super) fn shape<Id>(model: &Model, ty: &Type, names: &dyn Fn(DefId) -> (Id, Vec<Ident>)) -> Option<Shape<Id>> {
    match model.resolve(ty) {
        Type::Primitive(primitive) => leaf_size(*primitive).map(Shape::Leaf),
        // Two digits to an octet, and the sign (CORBA 3.3 Part 2, 9.3.2.8).
        Type::Fixed { digits, .. } => Some(Shape::Digits(usize::from(*digits) / 2 + 1)),
        Type::Array { element, dimensions } => {
            let element = shape(model, element, names)?;
            Some(dimensions.iter().rev().fold(element, |inner, &len| Shape::Array(Box::new(inner), len as usize)))
        }
        Type::Named(id) => match &model[*id].kind {
            DefinitionKind::Enum(_) => Some(Shape::Leaf(4)),
            DefinitionKind::Struct(body) => {
                let (name, fields) = names(*id);
                let members = fields.into_iter().zip(&body.members);
                let members = members.map(|(field, member)| Some((field, shape(model, &member.ty, names)?)));
                Some(Shape::Struct(name, members.collect::<Option<_>>()?))
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quote::format_ident;

    use super::*;

    /// Computes the offsets of leaves as an encoder does: pads to the leaf's size, then writes.
    fn write(shape: &Shape<()>, message: &mut Vec<Option<usize>>, next_leaf: &mut usize) {
        match shape {
            Shape::Leaf(size) | Shape::Digits(size) => {
                let align = if matches!(shape, Shape::Leaf(_)) { *size } else { 1 };
                while !message.len().is_multiple_of(align) {
                    message.push(None);
                }
                message.extend(std::iter::repeat_n(Some(*next_leaf), *size));
                *next_leaf += 1;
            }
            Shape::Array(element, len) => (0..*len).for_each(|_| write(element, message, next_leaf)),
            Shape::Struct((), members) => members.iter().for_each(|(_, member)| write(member, message, next_leaf)),
        }
    }

    fn leaves(placed: &Placed<()>, leaves_in_order: &mut Vec<(usize, usize)>) {
        match placed {
            Placed::Leaf { offset, size } => leaves_in_order.push((*offset, *size)),
            Placed::Array(elements) => elements.iter().for_each(|element| leaves(element, leaves_in_order)),
            Placed::Struct((), members) => members.iter().for_each(|(_, member)| leaves(member, leaves_in_order)),
        }
    }

    fn alignments(shape: &Shape<()>, alignments_in_order: &mut Vec<usize>) {
        match shape {
            Shape::Leaf(size) => alignments_in_order.push(*size),
            Shape::Digits(_) => alignments_in_order.push(1),
            Shape::Array(element, _) => alignments(element, alignments_in_order),
            Shape::Struct((), members) => {
                members.iter().for_each(|(_, member)| alignments(member, alignments_in_order))
            }
        }
    }

    fn shapes() -> impl Strategy<Value = Shape<()>> {
        let leaf = prop_oneof![
            4 => prop::sample::select(vec![1usize, 2, 4, 8]).prop_map(Shape::Leaf),
            1 => (1usize..=16).prop_map(Shape::Digits),
        ];
        leaf.prop_recursive(3, 24, 5, |inner| {
            prop_oneof![
                (inner.clone(), 1usize..4).prop_map(|(element, len)| Shape::Array(Box::new(element), len)),
                prop::collection::vec(inner, 1..5).prop_map(|members| {
                    let named = members.into_iter().map(|member| (format_ident!("m"), member));
                    Shape::Struct((), named.collect())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_layout_equals_the_encoding_from_an_aligned_start(shape in shapes(), blocks in 0usize..3) {
            let Some(layout) = shape.layout() else {
                prop_assert!(shape.leaves() > MAX_LEAVES);
                return Ok(());
            };
            let start = blocks * layout.align;
            let mut message = vec![None; start];
            write(&shape, &mut message, &mut 0);
            prop_assert_eq!(message.len() - start, layout.size);
            let mut placed = Vec::new();
            leaves(&layout.root, &mut placed);
            for (leaf, (offset, size)) in placed.iter().enumerate() {
                let octets: Vec<usize> = (0..message.len()).filter(|&at| message[at] == Some(leaf)).collect();
                let expected: Vec<usize> = (start + offset..start + offset + size).collect();
                prop_assert_eq!(octets, expected);
            }
            let mut aligns = Vec::new();
            alignments(&shape, &mut aligns);
            prop_assert_eq!(layout.first_align, aligns[0]);
            prop_assert_eq!(Some(layout.align), aligns.iter().copied().max());
        }
    }

    #[test]
    fn bin_struct_takes_24_octets() {
        let sizes = [2, 1, 4, 1, 8];
        let members = sizes.map(|size| (format_ident!("m"), Shape::Leaf(size)));
        let layout = Shape::Struct((), members.to_vec()).layout().expect("five leaves");
        let mut places = Vec::new();
        leaves(&layout.root, &mut places);
        assert_eq!(places, [(0, 2), (2, 1), (4, 4), (8, 1), (16, 8)]);
        assert_eq!((layout.first_align, layout.align, layout.size), (2, 8, 24));
    }

    #[test]
    fn a_type_with_countless_leaves_has_no_layout() {
        let inner = Shape::Array(Box::new(Shape::<()>::Leaf(1)), u32::MAX as usize);
        let outer = Shape::Array(Box::new(Shape::Array(Box::new(inner), u32::MAX as usize)), u32::MAX as usize);
        assert_eq!(outer.leaves(), u64::MAX);
        assert_eq!(outer.layout(), None);
    }
}
