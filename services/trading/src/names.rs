//! The syntax of names.

use spandrel::services::cos_trading::{IllegalPropertyName, IllegalServiceType};

/// The longest name of a type, a property or a policy, in octets.
const MAX_NAME: usize = 1_024;

/// Whether a text is a letter, then letters, digits and underscores.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// Checks a service type's name: identifiers with `::` between them and optionally before the first, or a repository
/// id `IDL:…:1.0`.
pub(crate) fn require_service_type<E: From<IllegalServiceType>>(name: &str) -> Result<(), E> {
    let scoped = name.strip_prefix("::").unwrap_or(name);
    let is_scoped = scoped.split("::").all(is_identifier);
    let is_id = || {
        name.strip_prefix("IDL:").and_then(|id| id.rsplit_once(':')).is_some_and(|(path, version)| {
            !path.is_empty()
                && path.chars().all(|character| character.is_ascii_alphanumeric() || "_./-".contains(character))
                && version.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
        })
    };
    if name.len() <= MAX_NAME && (is_scoped || is_id()) {
        return Ok(());
    }
    Err(IllegalServiceType { r#type: name.to_owned() }.into())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Checks a property's name: one that the constraint language can refer to.
pub(crate) fn require_property<E: From<IllegalPropertyName>>(name: &str) -> Result<(), E> {
    if is_identifier(name) { Ok(()) } else { Err(IllegalPropertyName { name: name.to_owned() }.into()) }
}
