//! The operations of decimals and enums (16.2.4, 16.2.5).

use spandrel_cdr::{Decimal, FixedError, TcKind, TypeCode};

use super::{DynAny, DynAnyError, dyn_any::Value, leaf::Leaf, leaf::digits_and_scale};

/// A value of a `fixed` type: IDL `DynFixed`.
#[derive(Debug)]
pub struct DynFixed<'d>(&'d mut DynAny);

/// A value of an enum: IDL `DynEnum`.
#[derive(Debug)]
pub struct DynEnum<'d>(&'d mut DynAny);

impl DynAny {
    /// Views the value as a `fixed`.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for another type.
    pub fn as_fixed(&mut self) -> Result<DynFixed<'_>, DynAnyError> {
        if self.kind() == TcKind::Fixed { Ok(DynFixed(self)) } else { Err(self.mismatch("a fixed-point number")) }
    }

    /// Views the value as an enumerator.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for another type.
    pub fn as_enum(&mut self) -> Result<DynEnum<'_>, DynAnyError> {
        if self.kind() == TcKind::Enum { Ok(DynEnum(self)) } else { Err(self.mismatch("an enum")) }
    }
}

impl DynFixed<'_> {
    /// The number with its digits and scale.
    #[must_use]
    pub fn decimal(&self) -> Decimal {
        match &self.0.value {
            Value::Leaf(Leaf::Fixed(value)) => *value,
            _ => Decimal::ZERO,
        }
    }

    /// The number as IDL text (`get_value`).
    #[must_use]
    pub fn value(&self) -> String {
        self.decimal().to_string()
    }

    /// Sets the number from IDL text. Returns false if digits beyond the scale of the type were truncated.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for text that is not a number; [`DynAnyError::InvalidValue`] if the type
    /// has too few digits before the point. The value is unchanged then.
    pub fn set_value(&mut self, text: &str) -> Result<bool, DynAnyError> {
        let text = text.trim();
        match text.parse() {
            Ok(value) => self.set_decimal(value),
            Err(FixedError::NotANumber) => {
                let (expected, found) = ("a decimal number".to_owned(), format!("the text `{text}`"));
                Err(DynAnyError::TypeMismatch { expected, found })
            }
            Err(_) => self.set_long(text),
        }
    }

    /// Sets the number from text of more than 31 digits: excess digits after the point are truncated.
    fn set_long(&mut self, text: &str) -> Result<bool, DynAnyError> {
        let scale = usize::from(digits_and_scale(&self.0.resolved())?.1);
        let point = text.find('.').ok_or(TOO_MANY_DIGITS)?;
        let truncated = &text[..text.len().min(point + 1 + scale)];
        self.set_decimal(truncated.parse().map_err(|_| TOO_MANY_DIGITS)?).map(|_| false)
    }

    /// Sets the number; as [`DynFixed::set_value`].
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] if the type has too few digits before the point.
    pub fn set_decimal(&mut self, value: Decimal) -> Result<bool, DynAnyError> {
        let (digits, scale) = digits_and_scale(&self.0.resolved())?;
        let truncated = value.truncate(scale);
        if truncated.digits().saturating_sub(truncated.scale()) > digits - scale {
            return Err(TOO_MANY_DIGITS);
        }
        self.0.value = Value::Leaf(Leaf::Fixed(truncated));
        Ok(truncated == value)
    }
}

const TOO_MANY_DIGITS: DynAnyError = DynAnyError::InvalidValue("the number has too many digits before the point");

impl DynEnum<'_> {
    /// The index of the enumerator (`get_as_ulong`).
    #[must_use]
    pub fn as_ulong(&self) -> u32 {
        match &self.0.value {
            Value::Leaf(Leaf::Enum(value)) => *value,
            _ => 0,
        }
    }

    /// The name of the enumerator (`get_as_string`); empty if the type code has no names.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] for an enum without enumerators, possible in a hostile type code only.
    pub fn as_string(&self) -> Result<String, DynAnyError> {
        let resolved = self.0.resolved();
        resolved.member_name(self.as_ulong() as usize).map(str::to_owned).map_err(|_| NO_ENUMERATOR)
    }

    /// Sets the enumerator by its index.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] if it does not exist.
    pub fn set_as_ulong(&mut self, value: u32) -> Result<(), DynAnyError> {
        if value as usize >= self.0.resolved().member_count()? {
            return Err(NO_ENUMERATOR);
        }
        self.0.value = Value::Leaf(Leaf::Enum(value));
        Ok(())
    }

    /// Sets the enumerator by its name.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] if it does not exist.
    pub fn set_as_string(&mut self, name: &str) -> Result<(), DynAnyError> {
        let index = enumerators(&self.0.resolved())?.iter().position(|enumerator| enumerator == name);
        let value = index.and_then(|index| u32::try_from(index).ok()).ok_or(NO_ENUMERATOR)?;
        self.set_as_ulong(value)
    }
}

const NO_ENUMERATOR: DynAnyError = DynAnyError::InvalidValue("the enum has no such enumerator");

fn enumerators(type_code: &TypeCode) -> Result<Vec<String>, DynAnyError> {
    (0..type_code.member_count()?).map(|index| Ok(type_code.member_name(index)?.to_owned())).collect()
}
