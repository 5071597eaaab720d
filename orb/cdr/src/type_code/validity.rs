//! Validity of repository ids, names, members and labels of type codes (CORBA 3.3 Part 1, 8.11.3).

use std::collections::HashSet;

use super::{
    TcKind, TypeCode, TypeCodeError,
    composer::Composer,
    node::{Child, Mark, Member, Node, Text},
};

/// The first part of a type code: an id and a name, as its kind has them.
pub(super) fn named(kind: TcKind, id: Text, name: Text) -> Result<Node, TypeCodeError> {
    let optional = matches!(kind, TcKind::Struct | TcKind::Union | TcKind::Enum | TcKind::Alias);
    let anonymous = matches!(kind, TcKind::Sequence | TcKind::Array);
    let sound = id.split_once(':').is_some_and(|(format, text)| !format.is_empty() && !text.is_empty());
    if !(sound || anonymous || (optional && id.is_empty())) {
        return Err(TypeCodeError::BadParam("a repository id must have the form `format:text`"));
    }
    check_name(&name)?;
    Ok(Node::new(kind, id, name))
}

/// Checks an IDL identifier without a leading underscore; all names may be empty (8.11.1).
fn check_name(name: &str) -> Result<(), TypeCodeError> {
    let starts_well = name.chars().next().is_none_or(|first| first.is_ascii_alphabetic() || first == '_');
    let goes_well = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if starts_well && goes_well { Ok(()) } else { Err(TypeCodeError::BadParam("a name is not an IDL identifier")) }
}

/// Checks that members and elements may have this type.
pub(super) fn check_member_type(type_code: &TypeCode) -> Result<(), TypeCodeError> {
    match type_code.view().resolved().kind() {
        TcKind::Null | TcKind::Void | TcKind::Except => {
            Err(TypeCodeError::BadTypeCode("members and elements cannot have this type"))
        }
        _ => Ok(()),
    }
}

/// The members, with distinct names; consecutive members of a union may share a name, for several labels.
pub(super) fn compose_members(
    composer: &mut Composer,
    members: &mut dyn Iterator<Item = (Text, &TypeCode, Mark)>,
) -> Result<Box<[Member]>, TypeCodeError> {
    let mut names = HashSet::new();
    let mut composed: Vec<Member> = Vec::new();
    for (name, type_code, mark) in members {
        check_name(&name)?;
        check_member_type(type_code)?;
        let again = matches!(mark, Mark::Label(_)) && composed.last().is_some_and(|last| last.name == name);
        if !again && !name.is_empty() && !names.insert(name.to_ascii_lowercase()) {
            return Err(TypeCodeError::BadParam("two members have the same name"));
        }
        let child: Child = composer.child(type_code);
        composed.push(Member { name, child, mark });
    }
    Ok(composed.into())
}

/// The possible values of a discriminator of this type.
pub(crate) fn label_range(type_code: &TypeCode) -> Option<std::ops::RangeInclusive<i128>> {
    let view = type_code.view().resolved();
    Some(match view.kind() {
        TcKind::Short => i128::from(i16::MIN)..=i128::from(i16::MAX),
        TcKind::Long => i128::from(i32::MIN)..=i128::from(i32::MAX),
        TcKind::LongLong => i128::from(i64::MIN)..=i128::from(i64::MAX),
        TcKind::UShort => 0..=i128::from(u16::MAX),
        TcKind::ULong => 0..=i128::from(u32::MAX),
        TcKind::ULongLong => 0..=i128::from(u64::MAX),
        TcKind::Octet | TcKind::Char => 0..=255,
        TcKind::WChar => 0..=i128::from(u32::from(char::MAX)),
        TcKind::Boolean => 0..=1,
        TcKind::Enum => 0..=i128::try_from(view.members().count()).unwrap_or(0) - 1,
        _ => return None,
    })
}
