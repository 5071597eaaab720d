//! The operations of unions (16.2.7): the discriminator determines the active member.

use spandrel_cdr::{TcKind, TypeCode};

use super::{
    DynAny, DynAnyError,
    defaults::parts_for,
    discriminator::{discriminator_with, label_of, value_without_member},
    limits::Meter,
};

/// A union: IDL `DynUnion`. Its first component is the discriminator, the second the active member, if any.
#[derive(Debug)]
pub struct DynUnion<'d>(&'d mut DynAny);

impl DynAny {
    /// Views the value as a union.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for another type.
    pub fn as_union(&mut self) -> Result<DynUnion<'_>, DynAnyError> {
        if self.kind() == TcKind::Union { Ok(DynUnion(self)) } else { Err(self.mismatch("a union")) }
    }
}

impl DynUnion<'_> {
    /// The component that selects the member (`get_discriminator`).
    #[must_use]
    pub fn discriminator(&self) -> &DynAny {
        &self.0.components()[0]
    }

    /// Sets the discriminator. The active member stays if this value selects it too; otherwise the selected
    /// member becomes active, with its default value, if there is one. The active member becomes the current
    /// component, or the discriminator without one.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for a value of another type.
    pub fn set_discriminator(&mut self, discriminator: &DynAny) -> Result<(), DynAnyError> {
        let type_code = self.0.resolved();
        let discriminator = discriminator.retyped(&type_code.discriminator_type()?)?;
        self.set_label(label_of(&discriminator)?)
    }

    fn set_label(&mut self, label: i128) -> Result<(), DynAnyError> {
        let type_code = self.0.resolved();
        let discriminator = discriminator_with(&type_code.discriminator_type()?, label)?;
        let (old, new) = (self.active()?, type_code.selected_member(label)?);
        let stays = match (old, new) {
            (Some(old), Some(new)) => is_same_member(&type_code, old, new)?,
            (old, new) => old == new,
        };
        if stays {
            self.0.components_mut()[0] = discriminator;
        } else {
            self.0.value = parts_for(&type_code, label, &mut Meter::new(DynAny::COMPONENTS))?;
        }
        self.0.at = Some(usize::from(new.is_some()));
        Ok(())
    }

    /// The index of the active member, by its first label.
    fn active(&self) -> Result<Option<usize>, DynAnyError> {
        Ok(self.0.resolved().selected_member(label_of(self.discriminator())?)?)
    }

    /// Makes the member of the `default` case active; the discriminator becomes the current component.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if the union has no such case.
    pub fn set_to_default_member(&mut self) -> Result<(), DynAnyError> {
        let type_code = self.0.resolved();
        let (Some(_), Some(label)) = (type_code.default_index()?, value_without_member(&type_code)?) else {
            return Err(self.0.mismatch("a union with a default member"));
        };
        self.set_label(label)?;
        self.0.rewind();
        Ok(())
    }

    /// Sets the discriminator to a value without a member; it becomes the current component.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if every value has a member.
    pub fn set_to_no_active_member(&mut self) -> Result<(), DynAnyError> {
        let type_code = self.0.resolved();
        let (None, Some(label)) = (type_code.default_index()?, value_without_member(&type_code)?) else {
            return Err(self.0.mismatch("a union that may have no active member"));
        };
        self.set_label(label)
    }

    /// Whether there is only the discriminator, with a value without a member.
    #[must_use]
    pub fn has_no_active_member(&self) -> bool {
        self.0.component_count() < 2
    }

    /// The kind of the discriminator.
    ///
    /// # Errors
    /// None for valid type codes.
    pub fn discriminator_kind(&self) -> Result<TcKind, DynAnyError> {
        Ok(self.0.resolved().discriminator_type()?.kind())
    }

    /// The member that the discriminator selects (`member`).
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] if there is none.
    pub fn member(&self) -> Result<&DynAny, DynAnyError> {
        self.0.components().get(1).ok_or(NO_MEMBER)
    }

    /// The active member, for modification.
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

/// A member with several labels occurs in the type code once for each of them, consecutively and with the
/// same name.
fn is_same_member(type_code: &TypeCode, a: usize, b: usize) -> Result<bool, DynAnyError> {
    if a == b {
        return Ok(true);
    }
    let name = type_code.member_name(a)?;
    for between in a.min(b)..=a.max(b) {
        if name.is_empty() || type_code.member_name(between)? != name {
            return Ok(false);
        }
    }
    Ok(true)
}
