//! Walks over values by their type codes: to find a value's end, and to encode it again in another order,
//! version or position.
//!
//! A walk validates as decoding does: counts, bounds, booleans, enumerators, texts. It allocates nothing for
//! that. The work is bounded by the octets: types with many steps and no octets, such as nested empty
//! structs, exhaust a budget, and recursive types a depth. Only octets count that the value has in every
//! encoding, so that what was decoded and is written again can be decoded: not those between numbers, nor
//! the parts of type codes. Values of value types are handled by `values`.

mod plain;
mod values;

use std::collections::HashMap;

use plain::{Plain, Unit};
pub(crate) use values::named_value;

use crate::{
    CdrError, CharSet, Decimal, Decode, Decoder, Encoder, TcKind, TypeCode, Wire,
    type_code::{Leaf, View},
    type_coding::{read_discriminator, write_discriminator},
};

/// Steps of a walk independent of the octets, and additional ones for each octet.
const FREE_STEPS: usize = 1 << 10;
const STEPS_PER_OCTET: usize = 32;

/// The octets of a length, or of another number that begins a value: all that counts of it where the rest may differ.
const LENGTH: usize = 4;

/// The permitted depth of nested structs and arrays per level of the limit on sequences.
const LEVELS: u32 = 4;

/// Decodes a value of this type and encodes it into `out`, in its order, version and code sets.
///
/// # Errors
/// Octets that are not a value of the type, nesting beyond the limit, or a value that `out` cannot encode.
pub fn copy(type_code: &TypeCode, input: &mut Decoder<'_>, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    Walk::new(input, Some(out)).value(type_code.view(), input)
}

/// Moves the decoder behind a value of this type, which is checked on the way.
///
/// # Errors
/// Octets that are not a value of the type, or nesting beyond the limit.
pub fn skip(type_code: &TypeCode, input: &mut Decoder<'_>) -> Result<(), CdrError> {
    find_end(type_code, input).map(drop)
}

/// Skips a value of this type, and returns whether it is self-contained: no indirection leads to a value, or
/// the repository id of one, before it.
pub(crate) fn find_end(type_code: &TypeCode, input: &mut Decoder<'_>) -> Result<bool, CdrError> {
    input.take_earliest_target();
    let mut walk = Walk::new(input, None);
    walk.value(type_code.view(), input)?;
    let has_outer_id = input.take_earliest_target().is_some_and(|target| target < walk.start);
    Ok(!walk.has_outer_indirection && !has_outer_id)
}

/// The number of values from which on the check for plain types pays off.
const MANY: usize = 8;

struct Walk<'o, 'e> {
    out: Option<&'o mut Encoder<'e>>,
    start: usize,
    steps: usize,
    /// The octets that count for the budget of steps.
    octets: usize,
    depth: u32,
    /// The number of enclosing values.
    values: u16,
    /// Whether an indirection leads to a value before the walk's start.
    has_outer_indirection: bool,
    /// The positions of values in `out`, by their positions in the input.
    copied: HashMap<usize, usize>,
}

impl<'o, 'e> Walk<'o, 'e> {
    fn new(input: &Decoder<'_>, out: Option<&'o mut Encoder<'e>>) -> Self {
        Self {
            out,
            start: input.position(),
            steps: 0,
            octets: 0,
            depth: 0,
            values: 0,
            has_outer_indirection: false,
            copied: HashMap::new(),
        }
    }

    fn value(&mut self, view: View<'_>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        self.step(1)?;
        match view.resolved() {
            View::Leaf(leaf) => self.leaf(leaf, input),
            node => {
                self.enter(input)?;
                self.node(node, input)?;
                self.depth -= 1;
                Ok(())
            }
        }
    }

    fn step(&mut self, steps: usize) -> Result<(), CdrError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.octets.saturating_mul(STEPS_PER_OCTET).saturating_add(FREE_STEPS) {
            return Err(CdrError::Malformed("a type has far more parts than its value has octets"));
        }
        Ok(())
    }

    /// Bounds the nesting of structs, which the limit on sequences does not cover.
    fn enter(&mut self, input: &Decoder<'_>) -> Result<(), CdrError> {
        let limit = input.wire().limits.nesting;
        if self.depth >= u32::from(limit) * LEVELS + u32::from(self.values) {
            return Err(CdrError::TooDeep { limit });
        }
        self.depth += 1;
        Ok(())
    }

    fn leaf(&mut self, leaf: Leaf, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        match leaf {
            Leaf::String(bound) => {
                let text = input.str()?;
                check_bound(&text, bound)?;
                self.octets += LENGTH;
                self.to(|out| out.short_str(&text))
            }
            Leaf::WString(bound) => {
                let text = input.wstr()?;
                check_bound(&text, bound)?;
                self.octets += LENGTH;
                self.to(|out| out.wstr(&text))
            }
            Leaf::Fixed { digits, .. } => {
                // The scale belongs to the type; the octets are the digits, and a sign.
                let value = Decimal::decode_as(digits, 0, input)?;
                self.octets += usize::from(digits) / 2 + 1;
                self.to(|out| value.encode_as(digits, 0, out))
            }
            Leaf::Simple(kind) => self.simple(kind, input),
        }
    }

    fn to(&mut self, write: impl FnOnce(&mut Encoder<'e>) -> Result<(), CdrError>) -> Result<(), CdrError> {
        self.out.as_deref_mut().map_or(Ok(()), write)
    }

    fn simple(&mut self, kind: TcKind, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        if let Some(unit) = Unit::of(kind) {
            // A number directly after a joint is aligned by its offset in the fragment, which a block is not.
            return if input.has_joints() { self.number(unit, input) } else { self.block(unit, 1, input) };
        }
        match kind {
            TcKind::Null | TcKind::Void => Ok(()),
            TcKind::WChar => {
                let value = input.wchar()?;
                self.octets += 1;
                self.to(|out| out.wchar(value))
            }
            TcKind::Principal => {
                let octets = input.octet_sequence()?;
                self.octets += LENGTH;
                self.to(|out| out.octet_sequence(octets))
            }
            TcKind::TypeCode => self.type_code(input).map(drop),
            TcKind::Any => {
                let type_code = self.type_code(input)?;
                input.nested(|input| self.value(type_code.view(), input))
            }
            _ => Err(CdrError::Malformed("this type has no values")),
        }
    }

    fn type_code(&mut self, input: &mut Decoder<'_>) -> Result<TypeCode, CdrError> {
        let type_code = TypeCode::decode(input)?;
        self.octets += LENGTH;
        self.to(|out| type_code.write(out))?;
        Ok(type_code)
    }

    /// Consecutive primitives of one type, aligned once. Without elements there is no gap.
    fn block(&mut self, unit: Unit, len: usize, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        if len == 0 {
            return Ok(());
        }
        if unit.size == 16 && input.has_joints() {
            // `LongDouble` is read one by one.
            return (0..len).try_for_each(|_| self.number(unit, input));
        }
        input.align(unit.alignment)?;
        let octets = input.take(len.checked_mul(unit.size).ok_or(CdrError::TooLong { len })?)?;
        self.octets += octets.len();
        if let Some(bad) = octets.iter().find(|octet| unit.boolean && **octet > 1) {
            return Err(CdrError::BadBoolean(*bad));
        }
        let Wire { order, char_set, .. } = input.wire();
        self.to(|out| {
            if unit.character && char_set != out.wire().char_set {
                return characters(octets, char_set, out);
            }
            out.align(unit.alignment);
            let swapped = out.wire().order != order;
            let room = out.room(octets.len());
            room.copy_from_slice(octets);
            if swapped && unit.size > 1 {
                room.chunks_exact_mut(unit.size).for_each(<[u8]>::reverse);
            }
            Ok(())
        })
    }

    /// One primitive, by itself.
    fn number(&mut self, unit: Unit, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        macro_rules! number {
            ($type:ident) => {{
                let value = input.$type()?;
                self.octets += unit.size;
                self.to(|out| {
                    out.$type(value);
                    Ok(())
                })
            }};
        }
        match unit.size {
            2 => number!(u16),
            4 => number!(u32),
            8 => number!(u64),
            16 => {
                let mut octets = input.long_double()?;
                self.octets += unit.size;
                let order = input.wire().order;
                self.to(|out| {
                    if out.wire().order != order {
                        octets.reverse();
                    }
                    out.align(unit.alignment);
                    out.octets(&octets);
                    Ok(())
                })
            }
            _ => self.block(unit, 1, input),
        }
    }

    // A recursive function with a small frame: a list of values is walked to a depth of hundreds.
    fn node(&mut self, view: View<'_>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        match view.kind() {
            TcKind::Struct => self.members(view, input),
            TcKind::Except => self.exception(view, input),
            TcKind::Sequence => self.sequence(view, input),
            TcKind::Array => self.array(view, input),
            TcKind::Enum => self.enumerator(view, input),
            TcKind::Union => self.union(view, input),
            TcKind::ObjRef | TcKind::Component | TcKind::Home => self.reference(input),
            TcKind::AbstractInterface => self.abstract_interface(input),
            TcKind::Value | TcKind::Event | TcKind::ValueBox => self.value_type(Some(view), input),
            _ => Err(CdrError::Malformed("values of this type cannot be sent")),
        }
    }

    fn exception(&mut self, view: View<'_>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        if has_exception_id(view, input) {
            self.leaf(Leaf::String(0), input)?;
        }
        self.members(view, input)
    }

    fn abstract_interface(&mut self, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        let is_reference = input.bool()?;
        self.octets += 1;
        self.to(|out| {
            out.bool(is_reference);
            Ok(())
        })?;
        if is_reference { self.reference(input) } else { self.value_type(None, input) }
    }

    /// Reads an enumerator of this type.
    fn enumerator(&mut self, view: View<'_>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        let value = input.u32()?;
        if value as usize >= view.member_count() {
            return Err(CdrError::Malformed("a number is not an enumerator"));
        }
        self.octets += LENGTH;
        self.to(|out| {
            out.u32(value);
            Ok(())
        })
    }

    fn members(&mut self, view: View<'_>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        for (_, member) in view.members() {
            self.value(member, input)?;
        }
        Ok(())
    }

    fn sequence(&mut self, view: View<'_>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        let (bound, content) = (view.number(), view.content_or_null().resolved());
        let unit = Unit::of_view(content);
        let len = match unit {
            Some(unit) => input.sequence_len(unit.size)?,
            // Elements may have no octets; their steps are counted, and nothing is allocated for them.
            None => input.u32()? as usize,
        };
        self.octets += LENGTH;
        let bound = bound as usize;
        if bound > 0 && len > bound {
            return Err(CdrError::OverBound { len, bound });
        }
        self.to(|out| out.len(len))?;
        match unit {
            Some(unit) => self.block(unit, len, input),
            None => input.nested(|input| self.values(content, len, input)),
        }
    }

    /// Consecutive values of one type that is not a primitive.
    fn values(&mut self, content: View<'_>, len: usize, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        if len >= MANY && self.out.is_none() && !input.has_joints() {
            let plain = Plain::of(content).and_then(|plain| Some((plain.extent(8 - input.gap(8), len)?, plain)));
            if let Some((extent, plain)) = plain {
                input.take(extent)?;
                self.octets = self.octets.saturating_add(plain.octets.saturating_mul(len));
                return self.step(plain.steps.saturating_mul(len));
            }
        }
        (0..len).try_for_each(|_| self.value(content, input))
    }

    /// The innermost elements of all dimensions are contiguous.
    fn array(&mut self, view: View<'_>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        let (mut len, mut content) = (view.number() as usize, view.content_or_null().resolved());
        while let (TcKind::Array, Some(inner)) = (content.kind(), content.content()) {
            len = len.checked_mul(content.number() as usize).ok_or(CdrError::TooLong { len })?;
            content = inner.resolved();
        }
        match Unit::of_view(content) {
            Some(unit) => self.block(unit, len, input),
            None => self.values(content, len, input),
        }
    }

    fn union(&mut self, view: View<'_>, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        let discriminator = view.content_or_null().resolved();
        let value = read_discriminator(discriminator.kind(), input)?;
        if discriminator.kind() == TcKind::Enum && value >= i128::try_from(discriminator.member_count()).unwrap_or(0) {
            return Err(CdrError::Malformed("a number is not an enumerator"));
        }
        self.octets += 1;
        self.to(|out| write_discriminator(discriminator.kind(), value, out))?;
        match view.selected(value) {
            Some(member) => self.value(member, input),
            None => Ok(()),
        }
    }

    /// A type id and tagged profiles (CORBA 3.3 Part 2, 7.6.2).
    fn reference(&mut self, input: &mut Decoder<'_>) -> Result<(), CdrError> {
        self.leaf(Leaf::String(0), input)?;
        let profiles = input.sequence_len(8)?;
        self.octets += LENGTH + profiles * 2 * LENGTH;
        self.to(|out| out.len(profiles))?;
        for _ in 0..profiles {
            let (tag, data) = (input.u32()?, input.octet_sequence()?);
            self.to(|out| {
                out.u32(tag);
                out.octet_sequence(data)
            })?;
        }
        Ok(())
    }
}

/// Encodes characters that were read in another code set.
fn characters(octets: &[u8], from: CharSet, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    octets.iter().try_for_each(|octet| {
        let octet = out.wire().char_set.octet_of(from.char_of(*octet)?)?;
        out.u8(octet);
        Ok(())
    })
}

/// Whether the exception's id precedes its members.
///
/// It should (CORBA 3.3 Part 2, 9.3.5.5), and other ORBs write it; omniORB does not within an `any`.
pub(crate) fn has_exception_id(view: View<'_>, input: &Decoder<'_>) -> bool {
    input.ahead().str().is_ok_and(|id| !id.is_empty() && view.id() == Some(&*id))
}

fn check_bound(text: &str, bound: u32) -> Result<(), CdrError> {
    let bound = bound as usize;
    // A character has at least one octet, so most texts need not be counted.
    if bound == 0 || text.len() <= bound {
        return Ok(());
    }
    let len = text.chars().count();
    if len > bound { Err(CdrError::OverBound { len, bound }) } else { Ok(()) }
}
