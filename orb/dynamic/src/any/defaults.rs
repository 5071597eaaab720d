//! Default values of all types (`create_dyn_any_from_type_code`).

use spandrel_cdr::{Label, TcKind, TypeCode};

use super::{
    DynAny, DynAnyError,
    discriminator::{discriminator_with, value_without_member},
    dyn_any::Value,
    error::mismatch,
    leaf::Leaf,
    limits::Meter,
};

impl DynAny {
    /// The default value of a type (16.2.2, `create_dyn_any_from_type_code`): zero, false, empty, nil, null,
    /// the first enumerator, the first member of a union.
    ///
    /// # Errors
    /// As [`DynAny::new`].
    pub fn of_type(type_code: &TypeCode) -> Result<Self, DynAnyError> {
        Self::default_of(type_code, &mut Meter::new(Self::COMPONENTS))
    }

    pub(crate) fn default_of(type_code: &TypeCode, meter: &mut Meter) -> Result<Self, DynAnyError> {
        meter.nested(|meter| {
            let resolved = type_code.without_aliases();
            let value = match resolved.kind() {
                TcKind::Null | TcKind::Void | TcKind::Value | TcKind::ValueBox | TcKind::Event => Value::Nothing,
                TcKind::Struct | TcKind::Except => Value::Parts(defaults_of_members(&resolved, meter)?),
                TcKind::Sequence => Value::Parts(Vec::new()),
                TcKind::Array => {
                    let element = resolved.content_type()?;
                    let elements = (0..resolved.length()?).map(|_| Self::default_of(&element, meter));
                    Value::Parts(elements.collect::<Result<_, _>>()?)
                }
                TcKind::Union => {
                    let first = match resolved.member_label(0) {
                        Ok(Label::Value(value)) => Some(value),
                        Ok(Label::Default) => value_without_member(&resolved)?,
                        Err(_) => Some(0),
                    };
                    parts_for(
                        &resolved,
                        first.ok_or_else(|| mismatch("a union with a member for a value", &resolved))?,
                        meter,
                    )?
                }
                kind => Value::Leaf(Leaf::default_of(&resolved).ok_or(DynAnyError::InconsistentTypeCode(kind))?),
            };
            Ok(Self::made_of(type_code, value))
        })
    }
}

fn defaults_of_members(type_code: &TypeCode, meter: &mut Meter) -> Result<Vec<DynAny>, DynAnyError> {
    (0..type_code.member_count()?).map(|index| DynAny::default_of(&type_code.member_type(index)?, meter)).collect()
}

/// The components for this value of the discriminator; the member has its default value.
pub(crate) fn parts_for(type_code: &TypeCode, label: i128, meter: &mut Meter) -> Result<Value, DynAnyError> {
    let mut parts = vec![discriminator_with(&type_code.discriminator_type()?, label)?];
    if let Some(index) = type_code.selected_member(label)? {
        parts.push(DynAny::default_of(&type_code.member_type(index)?, meter)?);
    }
    Ok(Value::Parts(parts))
}
