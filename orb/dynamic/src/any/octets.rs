//! From octets to components and back.
//!
//! An `Any` has checked its octets when it came into being. What is bounded here is what they grow into.
//!
//! A value of a value type that is taken apart is a tree: one that is reached twice in a graph becomes two, and one that
//! contains itself is refused.

use spandrel_cdr::{Any, CdrError, Decoder, Encoder, MetValue, TcKind, TypeCode};

use super::{
    DynAny, DynAnyError, discriminator::label_of, dyn_any::Value, leaf::Leaf, members::members_of, meter::Meter,
};

impl DynAny {
    /// Takes a value apart (16.2.2, `create_dyn_any`).
    ///
    /// # Errors
    /// [`DynAnyError::InconsistentTypeCode`] for types that have no dynamic values; [`DynAnyError::TooLarge`].
    pub fn new(any: &Any) -> Result<Self, DynAnyError> {
        Self::with_limit(any, Self::COMPONENTS)
    }

    /// As [`DynAny::new`], where nothing may be lost (`create_dyn_any_without_truncation`): a value of a type that derives from
    /// what the type code knows is not cut to that.
    ///
    /// # Errors
    /// As [`DynAny::new`]; [`DynAnyError::MustTruncate`].
    pub fn without_truncation(any: &Any) -> Result<Self, DynAnyError> {
        Self::read(any.type_code(), &mut any.value(), &mut Meter::without_truncation(Self::COMPONENTS))
    }

    /// Takes apart a value of at most so many components.
    ///
    /// # Errors
    /// As [`DynAny::new`].
    pub fn with_limit(any: &Any, components: usize) -> Result<Self, DynAnyError> {
        Self::read(any.type_code(), &mut any.value(), &mut Meter::new(components))
    }

    /// Takes over the value of an `Any` (16.2.3.3); the current position begins anew.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if its type is not equivalent; [`DynAnyError::TooLarge`].
    pub fn from_any(&mut self, any: &Any) -> Result<(), DynAnyError> {
        self.check_type(any.type_code())?;
        self.assign(&Self::new(any)?)
    }

    /// Puts the value together (16.2.3.4).
    ///
    /// # Errors
    /// A value that has no CDR form, such as a string with NUL inside.
    pub fn to_any(&self) -> Result<Any, DynAnyError> {
        Ok(Any::write(self.type_code().clone(), |out| self.write(out))?)
    }

    /// Reads a value of this type.
    fn read(of: &TypeCode, input: &mut Decoder<'_>, meter: &mut Meter) -> Result<Self, DynAnyError> {
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
                    let label = label_of(&discriminator)?;
                    let mut parts = vec![discriminator];
                    if let Some(index) = resolved.selected_member(label)? {
                        parts.push(Self::read(&resolved.member_type(index)?, input, meter)?);
                    }
                    Value::Parts(parts)
                }
                TcKind::Value | TcKind::Event => read_value(&resolved, input, meter)?,
                TcKind::ValueBox => read_box(&resolved, input, meter)?,
                _ => Value::Leaf(Leaf::read(&resolved, input)?),
            };
            Ok(Self::made_of(of, value))
        })
    }

    /// Writes the value without its type code; that of an exception begins with its id.
    fn write<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        let resolved = self.resolved();
        match (&self.value, resolved.kind()) {
            (Value::Leaf(leaf), _) => leaf.write(&resolved, out),
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

fn read_members(of: &TypeCode, input: &mut Decoder<'_>, meter: &mut Meter) -> Result<Vec<DynAny>, DynAnyError> {
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

/// Reads up to the state of a value, which `read` reads; null has none.
fn read_state(
    of: &TypeCode,
    input: &mut Decoder<'_>,
    meter: &mut Meter,
    read: impl FnOnce(&mut Decoder<'_>, &mut Meter) -> Result<Vec<DynAny>, DynAnyError>,
) -> Result<Value, DynAnyError> {
    let coming = match input.meet_value()? {
        MetValue::Nil => return Ok(Value::Nothing),
        MetValue::Again(_) => {
            return Err(CdrError::Malformed("a value that is shared cannot be taken apart").into());
        }
        MetValue::New(coming) => coming,
    };
    let id = of.id()?;
    if !coming.ids().is_empty() && !coming.ids().iter().any(|known| **known == *id) {
        return Err(CdrError::Malformed("a value is not of the type that its type code says").into());
    }
    // A derived value is cut to what the type knows, which only chunks allow (9.3.4.3).
    let is_derived = coming.ids().first().is_some_and(|first| **first != *id);
    if is_derived && !meter.truncates {
        return Err(DynAnyError::MustTruncate);
    }
    if is_derived && !coming.is_chunked() {
        return Err(CdrError::Malformed("a derived value cannot be cut to its base").into());
    }
    let state = read(input, meter)?;
    input.leave_value(&coming)?;
    Ok(Value::Parts(state))
}

fn read_value(of: &TypeCode, input: &mut Decoder<'_>, meter: &mut Meter) -> Result<Value, DynAnyError> {
    read_state(of, input, meter, |input, meter| {
        members_of(of)?.iter().map(|(_, member)| DynAny::read(member, input, meter)).collect()
    })
}

fn read_box(of: &TypeCode, input: &mut Decoder<'_>, meter: &mut Meter) -> Result<Value, DynAnyError> {
    read_state(of, input, meter, |input, meter| Ok(vec![DynAny::read(&of.content_type()?, input, meter)?]))
}

fn write_value<'a>(value: &'a Value, of: &TypeCode, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    let Value::Parts(state) = value else {
        out.u32(0);
        return Ok(());
    };
    out.u32(SINGLE_ID_TAG);
    out.short_str(of.id().unwrap_or_default())?;
    state.iter().try_for_each(|part| part.write(out))
}

/// The tag of a value with one repository id and no chunks (CORBA 3.3 Part 2, 9.3.4.2).
const SINGLE_ID_TAG: u32 = 0x7fff_ff02;
