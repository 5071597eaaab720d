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

/// The database key of a binding: the context's number (big-endian, 8 octets), the id, an octet 0, and the
/// kind.
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

/// Decodes the octets that [`encode_target`] has made.
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

/// Reads the binding type from the first octet that [`encode_target`] has made.
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

/// Decodes the record that [`encode_path`] has made; `None` for a context without a path.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn name(id: &str, kind: &str) -> NameComponent {
        NameComponent { id: id.to_owned(), kind: kind.to_owned() }
    }

    fn ior() -> Ior {
        Ior { type_id: "IDL:Bank/Account:1.0".to_owned(), profiles: Vec::new() }
    }

    #[test]
    fn a_key_has_the_context_then_the_identifier_then_the_kind() {
        let encoded = key(ContextId(0x0102), &name("gr\u{fc}n", "k"));
        assert_eq!(encoded, b"\0\0\0\0\0\0\x01\x02gr\xc3\xbcn\0k");
        for (id, kind) in [("gr\u{fc}n", "k"), ("", ""), ("a", ""), ("", "k")] {
            let encoded = key(ContextId(u64::MAX), &name(id, kind));
            assert_eq!(split_key(&encoded), Some((ContextId(u64::MAX), name(id, kind))));
        }
        for broken in [b"1234567".as_slice(), b"12345678", b"12345678a", b"12345678\xff\0", b"12345678\0\xff"] {
            assert_eq!(split_key(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn a_target_is_read_as_it_was_written_with_its_type() {
        let targets = [
            Target::Object(ior()),
            Target::Object(Ior::default()),
            Target::Context(ContextId(7)),
            Target::ForeignContext(ior()),
        ];
        for target in targets {
            let value = encode_target(&target).unwrap();
            assert_eq!(decode_target(&value).unwrap(), target);
            assert_eq!(type_of(&value).unwrap(), target.binding_type());
        }
        let object = encode_target(&Target::Object(ior())).unwrap();
        for broken in [[].as_slice(), &[3], &[CONTEXT, 0, 0], &[OBJECT], &object[..object.len() - 1]] {
            let error = decode_target(broken).unwrap_err();
            assert!(matches!(error, StoreError::Corrupt(_)), "{broken:?}: {error}");
        }
        assert!(matches!(type_of(&[]), Err(StoreError::Corrupt(_))));
        assert!(matches!(type_of(&[3]), Err(StoreError::Corrupt(reason)) if reason == "the type of a binding"));
    }

    #[test]
    fn a_path_is_read_as_it_was_written_and_its_absence_differs_from_an_empty_one() {
        for path in [None, Some(""), Some("a/gr\u{fc}n")] {
            assert_eq!(decode_path(&encode_path(path)).unwrap().as_deref(), path);
        }
        for broken in [[].as_slice(), &[2], &[0, 0], &[1, 0xff]] {
            assert!(matches!(decode_path(broken), Err(StoreError::Corrupt(_))), "{broken:?}");
        }
    }

    #[test]
    fn a_joined_path_has_the_string_form_of_each_component() {
        assert_eq!(join("", &name("a/b", "k")), r"a\/b.k");
        assert_eq!(join("x/y", &name("a", "")), "x/y/a");
    }
}
