//! What only unions can do (16.2.7): the discriminator decides which member there is.

use std::ops::RangeInclusive;

use spandrel_cdr::{Char, Label, TcKind, TypeCode};

use crate::{DynAny, DynAnyError, basic::Leaf, dyn_any::Value, octets::Meter};

/// A union: IDL `DynUnion`. Its first component is the discriminator, the second the active member, if there is one.
#[derive(Debug)]
pub struct DynUnion<'d>(&'d mut DynAny);

impl DynAny {
    /// The value as a union.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if it is none.
    pub fn as_union(&mut self) -> Result<DynUnion<'_>, DynAnyError> {
        if self.kind() == TcKind::Union { Ok(DynUnion(self)) } else { Err(DynAnyError::TypeMismatch) }
    }
}

/// The discriminator's value as labels have it.
pub(crate) fn label_of(discriminator: &DynAny) -> Result<i128, DynAnyError> {
    let Value::Leaf(leaf) = &discriminator.value else { return Err(DynAnyError::TypeMismatch) };
    Ok(match leaf {
        Leaf::Boolean(value) => i128::from(*value),
        Leaf::Octet(value) => i128::from(*value),
        Leaf::Char(value) => i128::from(value.0),
        Leaf::WChar(value) => i128::from(u32::from(*value)),
        Leaf::Short(value) => i128::from(*value),
        Leaf::UShort(value) => i128::from(*value),
        Leaf::Long(value) => i128::from(*value),
        Leaf::ULong(value) | Leaf::Enum(value) => i128::from(*value),
        Leaf::LongLong(value) => i128::from(*value),
        Leaf::ULongLong(value) => i128::from(*value),
        _ => return Err(DynAnyError::TypeMismatch),
    })
}

/// The discriminator with this value.
fn discriminator_with(of: &TypeCode, label: i128) -> Result<DynAny, DynAnyError> {
    const RANGE: DynAnyError = DynAnyError::InvalidValue("the discriminator cannot have this value");
    let leaf = match of.without_aliases().kind() {
        TcKind::Boolean => Leaf::Boolean(label != 0),
        TcKind::Octet => Leaf::Octet(label.try_into().map_err(|_| RANGE)?),
        TcKind::Char => Leaf::Char(Char(label.try_into().map_err(|_| RANGE)?)),
        TcKind::WChar => Leaf::WChar(u32::try_from(label).ok().and_then(char::from_u32).ok_or(RANGE)?),
        TcKind::Short => Leaf::Short(label.try_into().map_err(|_| RANGE)?),
        TcKind::UShort => Leaf::UShort(label.try_into().map_err(|_| RANGE)?),
        TcKind::Long => Leaf::Long(label.try_into().map_err(|_| RANGE)?),
        TcKind::ULong => Leaf::ULong(label.try_into().map_err(|_| RANGE)?),
        TcKind::Enum => Leaf::Enum(label.try_into().map_err(|_| RANGE)?),
        TcKind::LongLong => Leaf::LongLong(label.try_into().map_err(|_| RANGE)?),
        TcKind::ULongLong => Leaf::ULongLong(label.try_into().map_err(|_| RANGE)?),
        _ => return Err(DynAnyError::TypeMismatch),
    };
    Ok(DynAny::made_of(of, Value::Leaf(leaf)))
}

/// All values that the discriminator can have.
fn range(of: &TypeCode) -> Result<RangeInclusive<i128>, DynAnyError> {
    let of = of.without_aliases();
    Ok(match of.kind() {
        TcKind::Boolean => 0..=1,
        TcKind::Octet | TcKind::Char => 0..=0xff,
        TcKind::WChar => 0..=i128::from(u32::from(char::MAX)),
        TcKind::Short => i16::MIN.into()..=i16::MAX.into(),
        TcKind::UShort => 0..=u16::MAX.into(),
        TcKind::Long => i32::MIN.into()..=i32::MAX.into(),
        TcKind::ULong => 0..=u32::MAX.into(),
        TcKind::LongLong => i64::MIN.into()..=i64::MAX.into(),
        TcKind::ULongLong => 0..=u64::MAX.into(),
        TcKind::Enum => 0..=i128::try_from(of.member_count()?).unwrap_or(0) - 1,
        _ => return Err(DynAnyError::TypeMismatch),
    })
}

/// A value of the discriminator that no member has as its label: the least from zero on, or else the greatest below.
/// `None` if labels take up all.
pub(crate) fn unclaimed(of: &TypeCode) -> Result<Option<i128>, DynAnyError> {
    let range = range(&of.discriminator_type()?)?;
    let mut claimed = Vec::new();
    for index in 0..of.member_count()? {
        if let Label::Value(value) = of.member_label(index)? {
            claimed.push(value);
        }
    }
    claimed.sort_unstable();
    let is_free = |value: &i128| range.contains(value) && claimed.binary_search(value).is_err();
    // Among one more candidate than there are labels, one is free, unless the range ends.
    let candidates = i128::try_from(claimed.len()).unwrap_or(i128::MAX);
    Ok((0..=candidates).find(is_free).or_else(|| (1..=candidates + 1).map(|value| -value).find(is_free)))
}

/// The components for this value of the discriminator; the member has its default value.
pub(crate) fn parts_for(of: &TypeCode, label: i128, meter: &mut Meter) -> Result<Value, DynAnyError> {
    let mut parts = vec![discriminator_with(&of.discriminator_type()?, label)?];
    if let Some(index) = of.selected_member(label)? {
        parts.push(DynAny::default_of(&of.member_type(index)?, meter)?);
    }
    Ok(Value::Parts(parts))
}

impl DynUnion<'_> {
    /// The discriminator (`get_discriminator`).
    #[must_use]
    pub fn discriminator(&self) -> &DynAny {
        &self.0.components()[0]
    }

    /// Sets the discriminator. The active member stays if it is the one for this value too; otherwise the one for it, if
    /// there is one, becomes active with its default value. The member becomes the current component, or the discriminator
    /// if there is none.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for a value of another type.
    pub fn set_discriminator(&mut self, discriminator: &DynAny) -> Result<(), DynAnyError> {
        let of = self.0.resolved();
        let discriminator = discriminator.retyped(&of.discriminator_type()?)?;
        self.set_label(label_of(&discriminator)?)
    }

    fn set_label(&mut self, label: i128) -> Result<(), DynAnyError> {
        let of = self.0.resolved();
        let discriminator = discriminator_with(&of.discriminator_type()?, label)?;
        let (old, new) = (self.active()?, of.selected_member(label)?);
        let stays = match (old, new) {
            (Some(old), Some(new)) => is_same_member(&of, old, new)?,
            (old, new) => old == new,
        };
        if stays {
            self.0.components_mut()[0] = discriminator;
        } else {
            self.0.value = parts_for(&of, label, &mut Meter::new(DynAny::COMPONENTS))?;
        }
        self.0.at = Some(usize::from(new.is_some()));
        Ok(())
    }

    /// Which member is active, by its first label.
    fn active(&self) -> Result<Option<usize>, DynAnyError> {
        Ok(self.0.resolved().selected_member(label_of(self.discriminator())?)?)
    }

    /// Makes the member of the `default` case active; the discriminator becomes the current component.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if the union has no such case.
    pub fn set_to_default_member(&mut self) -> Result<(), DynAnyError> {
        let of = self.0.resolved();
        let (Some(_), Some(label)) = (of.default_index()?, unclaimed(&of)?) else {
            return Err(DynAnyError::TypeMismatch);
        };
        self.set_label(label)?;
        self.0.rewind();
        Ok(())
    }

    /// Sets the discriminator to a value for which there is no member; it becomes the current component.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if there is a member for every value.
    pub fn set_to_no_active_member(&mut self) -> Result<(), DynAnyError> {
        let of = self.0.resolved();
        let (None, Some(label)) = (of.default_index()?, unclaimed(&of)?) else {
            return Err(DynAnyError::TypeMismatch);
        };
        self.set_label(label)
    }

    /// True if there is only the discriminator, with a value for which there is no member.
    #[must_use]
    pub fn has_no_active_member(&self) -> bool {
        self.0.component_count() < 2
    }

    /// The kind of the discriminator.
    ///
    /// # Errors
    /// None for type codes that IDL allows.
    pub fn discriminator_kind(&self) -> Result<TcKind, DynAnyError> {
        Ok(self.0.resolved().discriminator_type()?.kind())
    }

    /// The active member.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] if there is none.
    pub fn member(&self) -> Result<&DynAny, DynAnyError> {
        self.0.components().get(1).ok_or(NO_MEMBER)
    }

    /// The active member, to be changed.
    ///
    /// # Errors
    /// As [`DynUnion::member`].
    pub fn member_mut(&mut self) -> Result<&mut DynAny, DynAnyError> {
        self.0.components_mut().get_mut(1).ok_or(NO_MEMBER)
    }

    /// The name of the active member.
    ///
    /// # Errors
    /// As [`DynUnion::member`].
    pub fn member_name(&self) -> Result<String, DynAnyError> {
        let active = self.active()?.ok_or(NO_MEMBER)?;
        Ok(self.0.resolved().member_name(active)?.to_owned())
    }

    /// The kind of the active member.
    ///
    /// # Errors
    /// As [`DynUnion::member`].
    pub fn member_kind(&self) -> Result<TcKind, DynAnyError> {
        self.member().map(|member| member.type_code().kind())
    }
}

const NO_MEMBER: DynAnyError = DynAnyError::InvalidValue("the union has no active member");

/// A member with several labels stands in the type code once for each of them, in a row and by the same name.
fn is_same_member(of: &TypeCode, a: usize, b: usize) -> Result<bool, DynAnyError> {
    if a == b {
        return Ok(true);
    }
    let name = of.member_name(a)?;
    for between in a.min(b)..=a.max(b) {
        if name.is_empty() || of.member_name(between)? != name {
            return Ok(false);
        }
    }
    Ok(true)
}
