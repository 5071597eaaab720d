//! Decoding of type codes (CORBA 3.3 Part 2, 9.3.5.1).
//!
//! Kinds with more parameters than a bound are encapsulated. A repeated type code, recursive or not, is an
//! indirection: an offset back to its kind, across encapsulations. Types that contain themselves through
//! aliases, sequences and arrays only are rejected. One pass decodes everything into one group of nodes, in
//! time and memory proportional to the octets.
//!
//! In the standard an indirection stays within the outermost type code (9.3.5.1.3), as in the output of
//! Spandrel, omniORB, JacORB and the JDK's ORB. TAO also accepts one to an earlier type code of the message,
//! such as that of another `any`, which its test Bug_2678_Regression sends. Such a type code is decoded again
//! from its position; the octets decoded so are limited per message.

use std::{mem, sync::Arc};

use super::{INDIRECTION, recent};
use crate::type_code::{
    Leaf,
    composer::index_of,
    node::{Child, Group, Mark, Member, Node, Repr},
    validity::label_range,
};
use crate::{CdrError, Char, Decode, Decoder, Label, TcKind, TypeCode, ValueModifier, Visibility};

/// Limit of type codes and members inside one received type code: far more than any IDL type has.
const MAX_PARTS: usize = 1 << 16;

impl Decode for TypeCode {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let octets = if input.has_joints() || input.is_confined() { None } else { recent::octets(input) };
        if let Some(octets) = octets
            && let Some(type_code) = recent::find(octets, input)
        {
            input.align(4)?;
            input.take(octets.len())?;
            return Ok(type_code);
        }
        let start = input.position() + input.gap(4);
        let mut reader = Reader::new(input, input.all_len());
        let type_code = reader.outermost(input)?;
        if let Some(octets) = octets
            && reader.earliest_target.is_none()
            && input.position() - start == octets.len()
        {
            recent::hold(octets, (input.wire(), input.depth()), &type_code);
        }
        if let Some(earliest_target) = reader.earliest_target {
            input.record_indirection_target(earliest_target);
            input.count_skipped_octets(input.all_len() - reader.budget)?;
        }
        Ok(type_code)
    }
}

struct Reader<'m> {
    /// The decoder before the outermost type code.
    before: Decoder<'m>,
    /// Octets before it that may still be decoded.
    budget: usize,
    /// The earliest of them that is the target of an indirection.
    earliest_target: Option<usize>,
    nodes: Vec<Node>,
    /// The nesting depth of types in each node; 0 while it is being decoded.
    heights: Vec<u16>,
    /// The position of each type code, in ascending order.
    starts: Vec<(usize, Child)>,
    /// Type codes and members so far.
    parts: usize,
}

impl<'m> Reader<'m> {
    fn new(input: &Decoder<'m>, budget: usize) -> Self {
        let before = input.with_values(None);
        Self {
            before,
            budget,
            earliest_target: None,
            nodes: Vec::new(),
            heights: Vec::new(),
            starts: Vec::new(),
            parts: 0,
        }
    }

    fn outermost(&mut self, input: &mut Decoder<'_>) -> Result<TypeCode, CdrError> {
        Ok(match self.read(input, 0)? {
            Child::Other(complete) => complete,
            Child::Local(index) => {
                let height = self.heights.iter().copied().max().unwrap_or(0);
                let nodes = mem::take(&mut self.nodes).into();
                TypeCode(Repr::Node(Arc::new(Group { nodes, open: false, height }), index))
            }
        })
    }

    /// Decodes a type code; `base` is the difference between positions in `input` and those in the outermost
    /// octets.
    fn read(&mut self, input: &mut Decoder<'_>, base: usize) -> Result<Child, CdrError> {
        let number = input.u32()?;
        // After the number: before it a fragment may end, where alignment is different.
        let start = base + input.position() - 4;
        if number == INDIRECTION {
            return self.indirection(input, base);
        }
        self.count()?;
        let kind = TcKind::from_number(number).ok_or(CdrError::Malformed("a type code is of an unknown kind"))?;
        let leaf = match kind {
            TcKind::String => Leaf::String(input.u32()?),
            TcKind::WString => Leaf::WString(input.u32()?),
            TcKind::Fixed => fixed(input)?,
            simple if simple.is_simple() => Leaf::Simple(simple),
            _ => return self.encapsulated(kind, input, base, start),
        };
        let child = Child::Other(TypeCode(Repr::Leaf(leaf)));
        self.starts.push((start, child.clone()));
        Ok(child)
    }

    fn count(&mut self) -> Result<(), CdrError> {
        self.parts += 1;
        if self.parts > MAX_PARTS { Err(CdrError::Malformed("a type code has too many parts")) } else { Ok(()) }
    }

    /// The offset counts from itself to the kind of the target type code.
    fn indirection(&mut self, input: &mut Decoder<'_>, base: usize) -> Result<Child, CdrError> {
        let bad = CdrError::Malformed("an indirection does not point to a type code");
        let offset = input.i32()?;
        let from = base + input.position() - 4;
        let target = usize::try_from(offset.unsigned_abs()).ok().and_then(|back| from.checked_sub(back));
        let target = target.filter(|_| offset < 0).ok_or(bad.clone())?;
        let Ok(index) = self.starts.binary_search_by_key(&target, |(start, _)| *start) else {
            return if target < self.before.position() { self.earlier(target) } else { Err(bad) };
        };
        let child = self.starts[index].1.clone();
        match child {
            Child::Local(index) if self.is_unfinished(index) && !self.nodes[index as usize].kind.can_recur() => {
                Err(CdrError::Malformed("a type contains itself without a constructed type in between"))
            }
            _ => Ok(child),
        }
    }

    /// Decodes a type code before the outermost one.
    fn earlier(&mut self, target: usize) -> Result<Child, CdrError> {
        self.earliest_target = Some(self.earliest_target.map_or(target, |earliest_target| earliest_target.min(target)));
        let mut input = self.before.clone().at(target);
        if input.gap(4) > 0 {
            return Err(CdrError::Malformed("an indirection does not point to a type code"));
        }
        // Each may refer further back.
        let (type_code, budget) = input.nested(|input| {
            let mut reader = Reader::new(input, self.budget);
            reader.outermost(input).map(|type_code| (type_code, reader.budget))
        })?;
        self.budget = budget
            .checked_sub(input.position() - target)
            .ok_or(CdrError::Malformed("earlier type codes are decoded too often"))?;
        Ok(Child::Other(type_code))
    }

    fn is_unfinished(&self, index: u32) -> bool {
        self.heights[index as usize] == 0
    }

    fn encapsulated(
        &mut self,
        kind: TcKind,
        input: &mut Decoder<'_>,
        base: usize,
        start: usize,
    ) -> Result<Child, CdrError> {
        let mut inner = input.encapsulation()?;
        let base = base + input.position() - inner.position() - inner.remaining();
        let index = index_of(self.nodes.len());
        self.nodes.push(Node::new(kind, String::new().into(), String::new().into()));
        self.heights.push(0);
        self.starts.push((start, Child::Local(index)));
        let node = self.node(kind, &mut inner, base, index)?;
        let height = node.children().map(|child| self.height(child)).max().unwrap_or(0) + 1;
        let limit = input.wire().limits.nesting;
        if height > limit {
            return Err(CdrError::TooDeep { limit });
        }
        self.nodes[index as usize] = node;
        self.heights[index as usize] = height;
        Ok(Child::Local(index))
    }

    fn height(&self, child: &Child) -> u16 {
        match child {
            Child::Local(index) => self.heights[*index as usize],
            Child::Other(complete) => complete.height(),
        }
    }

    fn node(&mut self, kind: TcKind, input: &mut Decoder<'_>, base: usize, index: u32) -> Result<Node, CdrError> {
        let mut node = Node::new(kind, String::new().into(), String::new().into());
        if kind.is_named() {
            node.id = String::decode(input)?.into();
            node.name = String::decode(input)?.into();
            // Others refer to it before it is complete.
            self.nodes[index as usize].id = node.id.clone();
        }
        match kind {
            TcKind::Sequence | TcKind::Array => {
                node.content = Some(self.read(input, base)?);
                node.number = i64::from(input.u32()?);
            }
            TcKind::Alias | TcKind::ValueBox => node.content = Some(self.read(input, base)?),
            TcKind::Struct | TcKind::Except => {
                node.members = self.members(input, 8, |reader, input| {
                    let name = String::decode(input)?.into();
                    Ok(Member { name, child: reader.read(input, base)?, mark: Mark::Plain })
                })?;
            }
            TcKind::Enum => {
                node.members = self.members(input, 4, |_, input| {
                    let name = String::decode(input)?.into();
                    Ok(Member { name, child: Child::Other(TypeCode::ULONG), mark: Mark::Plain })
                })?;
            }
            TcKind::Union => self.union(&mut node, input, base)?,
            TcKind::Value | TcKind::Event => self.value(&mut node, input, base)?,
            bare if bare.is_bare() => {}
            _ => return Err(CdrError::Malformed("a type code is of an unknown kind")),
        }
        Ok(node)
    }

    fn members(
        &mut self,
        input: &mut Decoder<'_>,
        min_octets: usize,
        mut read: impl FnMut(&mut Self, &mut Decoder<'_>) -> Result<Member, CdrError>,
    ) -> Result<Box<[Member]>, CdrError> {
        let count = input.sequence_len(min_octets)?;
        let mut members = Vec::new();
        for _ in 0..count {
            self.count()?;
            members.push(read(self, input)?);
        }
        Ok(members.into())
    }

    fn union(&mut self, node: &mut Node, input: &mut Decoder<'_>, base: usize) -> Result<(), CdrError> {
        let discriminator = self.read(input, base)?;
        let kind = self.discriminator_kind(&discriminator)?;
        node.content = Some(discriminator);
        let default = input.i32()?;
        let mut nth = 0;
        node.members = self.members(input, 9, |reader, input| {
            let value = read_discriminator(kind, input)?;
            let label = if nth == default { Label::Default } else { Label::Value(value) };
            nth += 1;
            let name = String::decode(input)?.into();
            Ok(Member { name, child: reader.read(input, base)?, mark: Mark::Label(label) })
        })?;
        if default >= nth {
            return Err(CdrError::Malformed("a union's default member does not exist"));
        }
        // -1 means that there is none; omniORB writes -2 if the labels cover all values.
        node.number = i64::from(default.max(-1));
        if !node.sort_labels() {
            return Err(CdrError::Malformed("a union has a label twice"));
        }
        Ok(())
    }

    /// The kind as which a discriminator of this type is encoded.
    fn discriminator_kind(&self, child: &Child) -> Result<TcKind, CdrError> {
        let bad = CdrError::Malformed("a union cannot have a discriminator of this type");
        let mut child = child;
        loop {
            match child {
                Child::Other(type_code) => {
                    return label_range(type_code).map(|_| type_code.view().resolved().kind()).ok_or(bad);
                }
                Child::Local(index) => match &self.nodes[*index as usize] {
                    node if node.kind == TcKind::Enum => return Ok(TcKind::Enum),
                    node if node.kind == TcKind::Alias => child = node.content.as_ref().ok_or(bad.clone())?,
                    _ => return Err(bad),
                },
            }
        }
    }

    fn value(&mut self, node: &mut Node, input: &mut Decoder<'_>, base: usize) -> Result<(), CdrError> {
        node.number = i64::from(input.i16()?);
        if ValueModifier::from_number(node.number).is_none() {
            return Err(CdrError::Malformed("a value type has an unknown modifier"));
        }
        node.content = match self.read(input, base)? {
            // `tk_null` means no base.
            Child::Other(leaf) if leaf.kind() == TcKind::Null => None,
            base => Some(self.checked_base(base)?),
        };
        node.members = self.members(input, 10, |reader, input| {
            let name = String::decode(input)?.into();
            let child = reader.read(input, base)?;
            let visibility = match input.i16()? {
                0 => Visibility::Private,
                1 => Visibility::Public,
                _ => return Err(CdrError::Malformed("a member is neither public nor private")),
            };
            Ok(Member { name, child, mark: Mark::Visibility(visibility) })
        })?;
        Ok(())
    }

    /// A base is complete before its derived types, so that no type inherits from itself.
    fn checked_base(&self, base: Child) -> Result<Child, CdrError> {
        if matches!(&base, Child::Other(type_code) if type_code.view().resolved().kind().is_value()) {
            return Ok(base);
        }
        let mut at = &base;
        while let Child::Local(index) = at {
            let node = &self.nodes[*index as usize];
            match (node.kind, &node.content) {
                (TcKind::Alias, Some(content)) => at = content,
                (kind, _) if kind.is_value() && !self.is_unfinished(*index) => return Ok(base),
                _ => break,
            }
        }
        Err(CdrError::Malformed("a value type inherits from a type of another kind"))
    }
}

fn fixed(input: &mut Decoder<'_>) -> Result<Leaf, CdrError> {
    let (digits, scale) = (input.u16()?, input.i16()?);
    if !(1..=31).contains(&digits) {
        return Err(CdrError::Malformed("a fixed has 1 to 31 digits"));
    }
    Ok(Leaf::Fixed { digits, scale })
}

/// Decodes a discriminator of a union.
pub(crate) fn read_discriminator(kind: TcKind, input: &mut Decoder<'_>) -> Result<i128, CdrError> {
    Ok(match kind {
        TcKind::Boolean => i128::from(input.bool()?),
        TcKind::Octet => i128::from(input.u8()?),
        TcKind::Char => i128::from(Char::decode(input)?.0),
        TcKind::Short => i128::from(input.i16()?),
        TcKind::UShort => i128::from(input.u16()?),
        TcKind::Long => i128::from(input.i32()?),
        TcKind::ULong | TcKind::Enum => i128::from(input.u32()?),
        TcKind::WChar => i128::from(u32::from(input.wchar()?)),
        TcKind::LongLong => i128::from(input.i64()?),
        TcKind::ULongLong => i128::from(input.u64()?),
        _ => return Err(CdrError::Malformed("a union cannot have a discriminator of this type")),
    })
}
