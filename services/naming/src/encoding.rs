//! Keys and values as octets, the same in all stores.
//!
//! Identifiers and kinds contain no NUL, because IDL's strings cannot.

use spandrel::cdr::{ByteOrder, OctetForm, from_octets, to_octets};
use spandrel::services::cos_naming::{BindingType, NameComponent};
use spandrel::services::name;
use spandrel::types::Ior;

use crate::store::{ContextId, StoreError, Target};

const OBJECT: u8 = 0;
const CONTEXT: u8 = 1;
const FOREIGN_CONTEXT: u8 = 2;

/// The error of octets that no store has written.
#[must_use]
pub fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(what.to_owned())
}

/// The key of a binding.
pub fn key(context: ContextId, name: &NameComponent) -> Vec<u8> {
    let mut key = Vec::with_capacity(8 + name.id.len() + 1 + name.kind.len());
    key.extend(context.0.to_be_bytes());
    key.extend(name.id.as_bytes());
    key.push(0);
    key.extend(name.kind.as_bytes());
    key
}

/// The context and name of a key. `None` for octets that are no key.
#[must_use]
pub fn split_key(key: &[u8]) -> Option<(ContextId, NameComponent)> {
    let (context, name) = key.split_first_chunk::<8>()?;
    let middle = name.iter().position(|octet| *octet == 0)?;
    let text = |octets: &[u8]| std::str::from_utf8(octets).ok().map(str::to_owned);
    let (id, kind) = (text(&name[..middle])?, text(&name[middle + 1..])?);
    Some((ContextId(u64::from_be_bytes(*context)), NameComponent { id, kind }))
}

/// The form of stored references. Text of a reference is a repository id, in ASCII.
fn form() -> OctetForm<'static> {
    OctetForm::bare(ByteOrder::Little)
}

/// A target as octets: its type, then an IOR (CDR, little-endian) or the id of a context.
///
/// # Errors
/// `Invalid` for a reference without an encoding.
pub fn encode_target(target: &Target) -> Result<Vec<u8>, StoreError> {
    let with_ior = |first: u8, ior: &Ior| {
        let octets = to_octets(ior, &form()).map_err(|error| StoreError::Invalid(error.to_string()))?;
        Ok([&[first], octets.as_slice()].concat())
    };
    match target {
        Target::Object(ior) => with_ior(OBJECT, ior),
        Target::Context(id) => Ok([&[CONTEXT], id.0.to_be_bytes().as_slice()].concat()),
        Target::ForeignContext(ior) => with_ior(FOREIGN_CONTEXT, ior),
    }
}

/// The target of octets.
///
/// # Errors
/// `Corrupt`.
pub fn decode_target(value: &[u8]) -> Result<Target, StoreError> {
    let ior = |octets: &[u8]| from_octets::<Ior>(octets, &form()).map_err(|error| corrupt(&error.to_string()));
    match value {
        [OBJECT, octets @ ..] => Ok(Target::Object(ior(octets)?)),
        [FOREIGN_CONTEXT, octets @ ..] => Ok(Target::ForeignContext(ior(octets)?)),
        [CONTEXT, id @ ..] => {
            let id = id.try_into().map_err(|_| corrupt("the id of a context"))?;
            Ok(Target::Context(ContextId(u64::from_be_bytes(id))))
        }
        _ => Err(corrupt("the type of a binding")),
    }
}

/// The type of a target of octets.
///
/// # Errors
/// `Corrupt`.
pub fn type_of(value: &[u8]) -> Result<BindingType, StoreError> {
    match value.first() {
        Some(&OBJECT) => Ok(BindingType::Nobject),
        Some(&(CONTEXT | FOREIGN_CONTEXT)) => Ok(BindingType::Ncontext),
        _ => Err(corrupt("the type of a binding")),
    }
}

/// The record of a context: its path in string form with an octet 1 before it; an octet 0 alone without a path.
#[must_use]
pub fn encode_path(path: Option<&str>) -> Vec<u8> {
    path.map_or_else(|| vec![0], |path| [&[1], path.as_bytes()].concat())
}

/// The path in the record of a context.
///
/// # Errors
/// `Corrupt`.
pub fn decode_path(record: &[u8]) -> Result<Option<String>, StoreError> {
    match record {
        [0] => Ok(None),
        [1, path @ ..] => match std::str::from_utf8(path) {
            Ok(path) => Ok(Some(path.to_owned())),
            Err(_) => Err(corrupt("the path of a context")),
        },
        _ => Err(corrupt("the record of a context")),
    }
}

/// The path of a name in a context, both in string form.
#[must_use]
pub fn join(context: &str, name: &NameComponent) -> String {
    let name = name::Path(std::slice::from_ref(name));
    if context.is_empty() { name.to_string() } else { format!("{context}/{name}") }
}
