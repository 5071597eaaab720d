//! The members in a type code.

use std::collections::HashSet;

use spandrel_cdr::TypeCode;

use super::DynAnyError;

/// The members of a struct, exception or value type: inherited ones first.
pub(crate) fn members_of(type_code: &TypeCode) -> Result<Vec<(String, TypeCode)>, DynAnyError> {
    let mut members = Vec::new();
    for type_code in bases_of(type_code)?.iter().rev() {
        for index in 0..type_code.member_count()? {
            members.push((type_code.member_name(index)?.to_owned(), type_code.member_type(index)?));
        }
    }
    Ok(members)
}

/// The type itself, and the value types from which it inherits state, nearest first.
pub(crate) fn bases_of(type_code: &TypeCode) -> Result<Vec<TypeCode>, DynAnyError> {
    let mut line = vec![type_code.clone()];
    while let Ok(Some(base)) = line[line.len() - 1].concrete_base_type() {
        // Only in a hostile type code a type inherits from itself.
        if line.len() > MAX_BASES {
            return Err(DynAnyError::TooLarge { limit: MAX_BASES });
        }
        line.push(base.without_aliases());
    }
    Ok(line)
}

/// Whether members can be told by their names: a type code may omit these.
pub(crate) fn has_names(members: &[(String, TypeCode)]) -> bool {
    let mut names = HashSet::new();
    members.iter().all(|(name, _)| !name.is_empty() && names.insert(name))
}

/// Maximum number of bases of a value type whose members are listed.
const MAX_BASES: usize = 64;
