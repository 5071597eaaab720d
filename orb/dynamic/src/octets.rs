//! From octets to components and back.
//!
//! An `Any` has checked its octets when it came into being. What is bounded here is what they grow into.

use spandrel_cdr::{CdrError, Decimal, Decode, Decoder, Encode, Encoder, TcKind, TypeCode};

use crate::{
    DynAny, DynAnyError,
    basic::Leaf,
    dyn_any::Value,
    value::{read_box, read_value, write_value},
};

/// How deep components may nest; types that contain themselves without a sequence between would never end.
const DEPTH: u16 = 128;

/// How many components may still be made, and how deep.
#[derive(Debug)]
pub(crate) struct Meter {
    left: usize,
    limit: usize,
    depth: u16,
}

impl Meter {
    pub(crate) fn new(limit: usize) -> Self {
        Self { left: limit, limit, depth: 0 }
    }

    /// Makes one component, and what it consists of.
    pub(crate) fn nested<T>(
        &mut self,
        make: impl FnOnce(&mut Self) -> Result<T, DynAnyError>,
    ) -> Result<T, DynAnyError> {
        let too_large = DynAnyError::TooLarge { limit: self.limit };
        self.left = self.left.checked_sub(1).ok_or(too_large.clone())?;
        if self.depth >= DEPTH {
            return Err(too_large);
        }
        self.depth += 1;
        let made = make(self);
        self.depth -= 1;
        made
    }
}

impl DynAny {
    /// Reads a value of this type.
    pub(crate) fn read(of: &TypeCode, input: &mut Decoder<'_>, meter: &mut Meter) -> Result<Self, DynAnyError> {
        meter.nested(|meter| {
            let resolved = of.without_aliases();
            let value = match resolved.kind() {
                TcKind::Null | TcKind::Void => Value::Nothing,
                TcKind::Struct => Value::Parts(read_members(&resolved, input, meter)?),
                TcKind::Except => {
                    // Its id should stand here (CORBA 3.3 Part 2, 9.3.5.5), but omniORB writes none within an `any`.
                    let ahead = input.clone().str();
                    if ahead.is_ok_and(|id| !id.is_empty() && resolved.id() == Ok(&*id)) {
                        input.str()?;
                    }
                    Value::Parts(read_members(&resolved, input, meter)?)
                }
                TcKind::Sequence => {
                    let len = input.sequence_len(1)?;
                    Value::Parts(read_elements(&resolved, len, input, meter)?)
                }
                TcKind::Array => Value::Parts(read_elements(&resolved, resolved.length()? as usize, input, meter)?),
                TcKind::Union => {
                    let discriminator = Self::read(&resolved.discriminator_type()?, input, meter)?;
                    let label = crate::union::label_of(&discriminator)?;
                    let mut parts = vec![discriminator];
                    if let Some(index) = resolved.selected_member(label)? {
                        parts.push(Self::read(&resolved.member_type(index)?, input, meter)?);
                    }
                    Value::Parts(parts)
                }
                TcKind::Value | TcKind::Event => read_value(&resolved, input, meter)?,
                TcKind::ValueBox => read_box(&resolved, input, meter)?,
                _ => Value::Leaf(read_leaf(&resolved, input)?),
            };
            Ok(Self::made_of(of, value))
        })
    }

    /// Writes the value without its type code; that of an exception begins with its id.
    pub(crate) fn write<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        let resolved = self.resolved();
        match (&self.value, resolved.kind()) {
            (Value::Leaf(leaf), _) => write_leaf(leaf, &resolved, out),
            (value, TcKind::Value | TcKind::Event | TcKind::ValueBox) => write_value(value, &resolved, out),
            (Value::Nothing, _) => Ok(()),
            (Value::Parts(parts), kind) => {
                match kind {
                    TcKind::Sequence => out.len(parts.len())?,
                    TcKind::Except => out.short_str(resolved.id().unwrap_or_default())?,
                    _ => {}
                }
                parts.iter().try_for_each(|part| part.write(out))
            }
        }
    }
}

pub(crate) fn read_members(
    of: &TypeCode,
    input: &mut Decoder<'_>,
    meter: &mut Meter,
) -> Result<Vec<DynAny>, DynAnyError> {
    (0..of.member_count()?).map(|index| DynAny::read(&of.member_type(index)?, input, meter)).collect()
}

fn read_elements(
    of: &TypeCode,
    len: usize,
    input: &mut Decoder<'_>,
    meter: &mut Meter,
) -> Result<Vec<DynAny>, DynAnyError> {
    let element = of.content_type()?;
    // Collected without a hint of the length, which nobody has vouched for yet.
    let mut elements = Vec::new();
    for _ in 0..len {
        elements.push(DynAny::read(&element, input, meter)?);
    }
    Ok(elements)
}

fn read_leaf(of: &TypeCode, input: &mut Decoder<'_>) -> Result<Leaf, DynAnyError> {
    Ok(match of.kind() {
        TcKind::Boolean => Leaf::Boolean(input.bool()?),
        TcKind::Octet => Leaf::Octet(input.u8()?),
        TcKind::Char => Leaf::Char(input.u8()?.into()),
        TcKind::WChar => Leaf::WChar(input.wchar()?),
        TcKind::Short => Leaf::Short(input.i16()?),
        TcKind::UShort => Leaf::UShort(input.u16()?),
        TcKind::Long => Leaf::Long(input.i32()?),
        TcKind::ULong => Leaf::ULong(input.u32()?),
        TcKind::LongLong => Leaf::LongLong(input.i64()?),
        TcKind::ULongLong => Leaf::ULongLong(input.u64()?),
        TcKind::Float => Leaf::Float(input.f32()?),
        TcKind::Double => Leaf::Double(input.f64()?),
        TcKind::LongDouble => Leaf::LongDouble(Decode::decode(input)?),
        TcKind::String => Leaf::String(Decode::decode(input)?),
        TcKind::WString => Leaf::WString(Decode::decode(input)?),
        TcKind::Any => Leaf::Any(Decode::decode(input)?),
        TcKind::TypeCode => Leaf::TypeCode(Decode::decode(input)?),
        TcKind::ObjRef | TcKind::Component | TcKind::Home => Leaf::Reference(Decode::decode(input)?),
        TcKind::Enum => Leaf::Enum(input.u32()?),
        TcKind::Fixed => {
            let (digits, scale) = digits_and_scale(of)?;
            Leaf::Fixed(Decimal::decode_as(digits, scale, input)?)
        }
        kind => return Err(DynAnyError::InconsistentTypeCode(kind)),
    })
}

fn write_leaf<'a>(leaf: &'a Leaf, of: &TypeCode, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    match leaf {
        Leaf::Boolean(value) => value.encode(out),
        Leaf::Octet(value) => value.encode(out),
        Leaf::Char(value) => value.encode(out),
        Leaf::WChar(value) => value.encode(out),
        Leaf::Short(value) => value.encode(out),
        Leaf::UShort(value) => value.encode(out),
        Leaf::Long(value) => value.encode(out),
        Leaf::ULong(value) | Leaf::Enum(value) => value.encode(out),
        Leaf::LongLong(value) => value.encode(out),
        Leaf::ULongLong(value) => value.encode(out),
        Leaf::Float(value) => value.encode(out),
        Leaf::Double(value) => value.encode(out),
        Leaf::LongDouble(value) => value.encode(out),
        Leaf::String(value) => value.encode(out),
        Leaf::WString(value) => value.encode(out),
        Leaf::Any(value) => value.encode(out),
        Leaf::TypeCode(value) => value.encode(out),
        Leaf::Reference(value) => value.encode(out),
        Leaf::Fixed(value) => {
            let (digits, scale) = digits_and_scale(of).map_err(|_| CdrError::Malformed("its type is no fixed"))?;
            value.encode_as(digits, scale, out)
        }
    }
}

/// Of a `fixed` type. A negative scale, which IDL cannot say but a type code can, has no values here.
pub(crate) fn digits_and_scale(of: &TypeCode) -> Result<(u16, u16), DynAnyError> {
    let scale = u16::try_from(of.fixed_scale()?).map_err(|_| DynAnyError::InconsistentTypeCode(TcKind::Fixed))?;
    Ok((of.fixed_digits()?, scale))
}
