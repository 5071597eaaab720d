//! The operations of structs and exceptions (16.2.6).

use spandrel_cdr::{Any, TcKind, TypeCode};

use super::{DynAny, DynAnyError, error::NO_CURRENT, graph::Copier, members::members_of};

/// A struct or an exception: IDL `DynStruct`.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod dynamic { pub use spandrel_dynamic::*; } pub mod types { pub use spandrel_cdr::{Any, TypeCode}; } }
/// use spandrel::dynamic::{DynAny, NameValuePair};
/// use spandrel::types::{Any, TypeCode};
///
/// let members = [("name", TypeCode::STRING), ("cents", TypeCode::LONGLONG)];
/// let entry = TypeCode::structure("IDL:Bank/Entry:1.0", "Entry", &members)?;
/// let mut value = DynAny::of_type(&entry)?; // each member has the default of its type
/// let name = NameValuePair { id: "name".to_owned(), value: Any::new("ada")? };
/// let cents = NameValuePair { id: "cents".to_owned(), value: Any::new(500_i64)? };
/// value.as_struct()?.set_members(&[name, cents.clone()])?;
/// assert_eq!(value.as_struct()?.members()?[1], cents);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DynStruct<'d>(&'d mut DynAny);

/// A member and its value: IDL `DynamicAny::NameValuePair`.
#[derive(Clone, Debug, PartialEq)]
pub struct NameValuePair {
    /// The member's name, or empty.
    pub id: String,
    /// The member's value, with its type.
    pub value: Any,
}

/// A member and its value as components: IDL `DynamicAny::NameDynAnyPair`.
#[derive(Clone, Debug, PartialEq)]
pub struct DynNamePair {
    /// The member's name, or empty.
    pub id: String,
    /// The value of the member as components.
    pub value: DynAny,
}

impl DynAny {
    /// Views the value as a struct or exception.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] if it is neither.
    pub fn as_struct(&mut self) -> Result<DynStruct<'_>, DynAnyError> {
        match self.kind() {
            TcKind::Struct | TcKind::Except => Ok(DynStruct(self)),
            _ => Err(self.mismatch("a struct or an exception")),
        }
    }
}

/// The member at the current position.
pub(crate) fn current(owner: &DynAny) -> Result<(String, TypeCode), DynAnyError> {
    let members = members_of(&owner.actual())?;
    if members.is_empty() {
        return Err(owner.mismatch("a type with members"));
    }
    members.into_iter().nth(owner.at.ok_or(NO_CURRENT)?).ok_or(NO_CURRENT)
}

pub(crate) fn pairs(owner: &DynAny) -> Result<Vec<DynNamePair>, DynAnyError> {
    let copier = Copier::of(owner.components());
    let members = members_of(&owner.actual())?.into_iter().zip(owner.components());
    Ok(members.map(|((id, _), value)| DynNamePair { id, value: copier.copy(value) }).collect())
}

/// Replaces all members. Names must be those of the type, but either side may omit them.
pub(crate) fn set_pairs(owner: &mut DynAny, pairs: &[DynNamePair]) -> Result<(), DynAnyError> {
    let members = members_of(&owner.actual())?;
    if members.len() != pairs.len() {
        return Err(DynAnyError::InvalidValue("the type has another number of members"));
    }
    let copier = Copier::of(pairs.iter().map(|pair| &pair.value));
    let parts = members.iter().zip(pairs).map(|((name, type_code), pair)| {
        if !name.is_empty() && !pair.id.is_empty() && *name != pair.id {
            let (expected, found) = (format!("the member `{name}`"), format!("`{}`", pair.id));
            return Err(DynAnyError::TypeMismatch { expected, found });
        }
        copier.copy_as(&pair.value, type_code)
    });
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    owner.set_parts(parts);
    Ok(())
}

pub(crate) fn any_pairs(owner: &DynAny) -> Result<Vec<NameValuePair>, DynAnyError> {
    let members = members_of(&owner.actual())?.into_iter().zip(owner.components());
    members.map(|((id, _), part)| Ok(NameValuePair { id, value: part.to_any_within(owner)? })).collect()
}

pub(crate) fn from_any_pairs(pairs: &[NameValuePair]) -> Result<Vec<DynNamePair>, DynAnyError> {
    pairs.iter().map(|pair| Ok(DynNamePair { id: pair.id.clone(), value: DynAny::new(&pair.value)? })).collect()
}

impl DynStruct<'_> {
    /// The name of the member at the current position.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for an exception without members; [`DynAnyError::InvalidValue`] if none
    /// is current.
    pub fn current_member_name(&self) -> Result<String, DynAnyError> {
        current(self.0).map(|(name, _)| name)
    }

    /// The kind of the member at the current position.
    ///
    /// # Errors
    /// As [`DynStruct::current_member_name`].
    pub fn current_member_kind(&self) -> Result<TcKind, DynAnyError> {
        current(self.0).map(|(_, type_code)| type_code.kind())
    }

    /// All members in order, each with its name and type (`get_members`).
    ///
    /// # Errors
    /// As [`DynAny::to_any`].
    pub fn members(&self) -> Result<Vec<NameValuePair>, DynAnyError> {
        any_pairs(self.0)
    }

    /// Replaces all members; the first becomes the current one. Names may be omitted.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for another name or type; [`DynAnyError::InvalidValue`] for another
    /// number of members.
    pub fn set_members(&mut self, members: &[NameValuePair]) -> Result<(), DynAnyError> {
        set_pairs(self.0, &from_any_pairs(members)?)
    }

    /// All members, as components (`get_members_as_dyn_any`).
    ///
    /// # Errors
    /// None for valid type codes.
    pub fn members_as_dyn_any(&self) -> Result<Vec<DynNamePair>, DynAnyError> {
        pairs(self.0)
    }

    /// Replaces all members; as [`DynStruct::set_members`].
    ///
    /// # Errors
    /// As [`DynStruct::set_members`].
    pub fn set_members_as_dyn_any(&mut self, members: &[DynNamePair]) -> Result<(), DynAnyError> {
        set_pairs(self.0, members)
    }
}
