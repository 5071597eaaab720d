//! The values of a union's discriminator, and their conversion to the labels of a type code.

use std::ops::RangeInclusive;

use spandrel_cdr::{Char, Label, TcKind, TypeCode};

use super::{DynAny, DynAnyError, dyn_any::Value, error::mismatch, leaf::Leaf};

/// The values that a discriminator may have, for errors.
const DISCRIMINATOR: &str = "an integer, a character, a boolean or an enumerator";

/// The discriminator's value as a label.
pub(crate) fn label_of(discriminator: &DynAny) -> Result<i128, DynAnyError> {
    let not_discriminator = || discriminator.mismatch(DISCRIMINATOR);
    let Value::Leaf(leaf) = &discriminator.value else { return Err(not_discriminator()) };
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
        _ => return Err(not_discriminator()),
    })
}

/// The discriminator with this value.
pub(crate) fn discriminator_with(type_code: &TypeCode, label: i128) -> Result<DynAny, DynAnyError> {
    const RANGE: DynAnyError = DynAnyError::InvalidValue("the discriminator cannot have this value");
    let leaf = match type_code.without_aliases().kind() {
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
        _ => return Err(mismatch(DISCRIMINATOR, type_code)),
    };
    Ok(DynAny::made_of(type_code, Value::Leaf(leaf)))
}

/// All possible values of the discriminator.
fn range(type_code: &TypeCode) -> Result<RangeInclusive<i128>, DynAnyError> {
    let type_code = type_code.without_aliases();
    Ok(match type_code.kind() {
        TcKind::Boolean => 0..=1,
        TcKind::Octet | TcKind::Char => 0..=0xff,
        TcKind::WChar => 0..=i128::from(u32::from(char::MAX)),
        TcKind::Short => i16::MIN.into()..=i16::MAX.into(),
        TcKind::UShort => 0..=u16::MAX.into(),
        TcKind::Long => i32::MIN.into()..=i32::MAX.into(),
        TcKind::ULong => 0..=u32::MAX.into(),
        TcKind::LongLong => i64::MIN.into()..=i64::MAX.into(),
        TcKind::ULongLong => 0..=u64::MAX.into(),
        TcKind::Enum => 0..=i128::try_from(type_code.member_count()?).unwrap_or(0) - 1,
        _ => return Err(mismatch(DISCRIMINATOR, &type_code)),
    })
}

/// A discriminator value without a member: the least from zero on, or else the greatest below zero. `None` if
/// labels cover all values.
pub(crate) fn value_without_member(type_code: &TypeCode) -> Result<Option<i128>, DynAnyError> {
    let range = range(&type_code.discriminator_type()?)?;
    let mut claimed = Vec::new();
    for index in 0..type_code.member_count()? {
        if let Label::Value(value) = type_code.member_label(index)? {
            claimed.push(value);
        }
    }
    claimed.sort_unstable();
    let is_free = |value: &i128| range.contains(value) && claimed.binary_search(value).is_err();
    // Among one more candidate than there are labels, one is free, unless the range ends before.
    let candidates = i128::try_from(claimed.len()).unwrap_or(i128::MAX);
    Ok((0..=candidates).find(is_free).or_else(|| (1..=candidates + 1).map(|value| -value).find(is_free)))
}
