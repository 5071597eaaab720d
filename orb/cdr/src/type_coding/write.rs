//! Encoding of type codes (CORBA 3.3 Part 2, 9.3.5.1).
//!
//! A named type that was encoded before is an indirection: so recursion ends, and repeated use of a type
//! stays short.

use std::collections::HashMap;

use super::INDIRECTION;
use crate::type_code::{
    Leaf, View, has_members,
    node::{Mark, Member, Node},
};
use crate::{CdrError, Char, Encode, Encoder, Label, TcKind, TypeCode};

/// Limit of nested encapsulations.
const MAX_NESTING: u16 = 256;

impl Encode for TypeCode {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.write(out)
    }
}

impl TypeCode {
    /// Encodes the type code without lending.
    pub(crate) fn write(&self, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        if self.is_open() {
            return Err(CdrError::Malformed("a type code mentions a type that is not defined around it"));
        }
        Writer::default().write(self.view(), out)
    }
}

#[derive(Default)]
struct Writer {
    /// The positions of the kinds of named types.
    written: HashMap<(usize, u32), usize>,
    depth: u16,
}

impl Writer {
    fn write(&mut self, view: View<'_>, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        let (node, identity) = match (view, view.node(), view.identity()) {
            (View::Leaf(leaf), ..) => {
                leaf_to(leaf, out);
                return Ok(());
            }
            (_, Some(node), Some(identity)) => (node, identity),
            _ => unreachable!("a node has itself and an identity"),
        };
        if let Some(start) = self.written.get(&identity) {
            return indirection(*start, out);
        }
        out.align(4);
        let start = out.position();
        out.u32(node.kind as u32);
        if node.kind.can_recur() {
            self.written.insert(identity, start);
        }
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(CdrError::TooDeep { limit: MAX_NESTING });
        }
        out.encapsulation(|out| self.node(view, node, out))?;
        self.depth -= 1;
        if node.kind.is_named() {
            self.written.insert(identity, start);
        }
        Ok(())
    }

    fn node(&mut self, view: View<'_>, node: &Node, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        if node.kind.is_named() {
            out.short_str(&node.id)?;
            out.short_str(&node.name)?;
        }
        if node.kind.is_value() {
            out.i16(i16::try_from(node.number).expect("a modifier"));
        }
        match view.content() {
            Some(content) => self.write(content, out)?,
            None if node.kind.is_value() => out.u32(TcKind::Null as u32),
            None => {}
        }
        match node.kind {
            TcKind::Sequence | TcKind::Array => out.u32(u32::try_from(node.number).expect("created from a u32")),
            TcKind::Union => out.i32(i32::try_from(node.number).expect("a member or -1")),
            _ => {}
        }
        if has_members(node.kind) {
            out.len(node.members.len())?;
        }
        let labels = view.content().map_or(TcKind::Null, |content| content.resolved().kind());
        view.members().try_for_each(|(member, member_view)| self.member(node.kind, labels, member, member_view, out))
    }

    fn member(
        &mut self,
        kind: TcKind,
        labels: TcKind,
        member: &Member,
        member_view: View<'_>,
        out: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        if let Mark::Label(label) = member.mark {
            // The default member's label has no meaning; a zero takes its place.
            write_discriminator(labels, if let Label::Value(value) = label { value } else { 0 }, out)?;
        }
        out.short_str(&member.name)?;
        if kind != TcKind::Enum {
            self.write(member_view, out)?;
        }
        if let Mark::Visibility(visibility) = member.mark {
            out.i16(visibility as i16);
        }
        Ok(())
    }
}

fn leaf_to(leaf: Leaf, out: &mut Encoder<'_>) {
    out.u32(leaf.kind() as u32);
    match leaf {
        Leaf::Simple(_) => {}
        Leaf::String(bound) | Leaf::WString(bound) => out.u32(bound),
        Leaf::Fixed { digits, scale } => {
            out.u16(digits);
            out.i16(scale);
        }
    }
}

fn indirection(start: usize, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    out.u32(INDIRECTION);
    let back = out.position() - start;
    let back = i32::try_from(back).map_err(|_| CdrError::TooLong { len: back })?;
    out.i32(-back);
    Ok(())
}

/// Encodes a discriminator of a union.
pub(crate) fn write_discriminator(kind: TcKind, value: i128, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    // Labels were checked against the range of the type on creation: these conversions are lossless.
    match kind {
        TcKind::Boolean | TcKind::Octet => out.u8(value as u8),
        TcKind::Char => Char(value as u8).write(out)?,
        TcKind::Short | TcKind::UShort => out.u16(value as u16),
        TcKind::Long | TcKind::ULong | TcKind::Enum => out.u32(value as u32),
        TcKind::WChar => {
            let character = u32::try_from(value).ok().and_then(char::from_u32);
            return out.wchar(character.ok_or(CdrError::Malformed("a label is no character"))?);
        }
        TcKind::LongLong | TcKind::ULongLong => out.u64(value as u64),
        _ => return Err(CdrError::Malformed("a union cannot have a discriminator of this type")),
    }
    Ok(())
}
