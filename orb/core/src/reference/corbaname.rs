//! Stringified names of the Naming Service (`CosNaming`, Naming Service 1.3, 2.4 and 2.5.3).
//!
//! This module has the part of the Naming Service that `corbaname:` needs: it parses a name, and resolves it
//! by a hand-written request to a context. A naming service, and stubs for one, are generated like others.

use spandrel_cdr::{CdrError, Decode, Decoder, Encoder, Ior, engine::Value};
use spandrel_giop::{CompletionStatus, SystemException, minor};

use crate::{ObjectRef, UserExceptions};

/// The maximum number of naming services that continue a resolution (`CannotProceed`).
const MAX_CONTINUATIONS: u32 = 16;

/// A component of a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct NameComponent {
    id: String,
    kind: String,
}

/// Parses a stringified name (2.4.1): components separated by `/`, each an id and optionally a kind after
/// `.`. A `\` escapes any of the three characters. The empty string is the name without components.
///
/// # Errors
/// A description of the syntax error.
pub(crate) fn parse(text: &str) -> Result<Vec<NameComponent>, &'static str> {
    let mut name = Vec::new();
    let (mut fields, mut is_kind, mut is_empty) = ([String::new(), String::new()], false, true);
    let mut characters = text.chars();
    loop {
        let next = characters.next();
        match next {
            None | Some('/') => {
                if next.is_none() && is_empty && name.is_empty() {
                    return Ok(name);
                }
                if is_empty {
                    return Err("a component is empty");
                }
                let [id, kind] = std::mem::take(&mut fields);
                // Only the component `.` has neither id nor kind (2.4.2).
                if is_kind && kind.is_empty() && !id.is_empty() {
                    return Err("a component ends with a `.` without a kind after it");
                }
                name.push(NameComponent { id, kind });
                (is_kind, is_empty) = (false, true);
                if next.is_none() {
                    return Ok(name);
                }
                continue;
            }
            Some('.') if is_kind => return Err("a component has two unescaped `.`"),
            Some('.') => is_kind = true,
            Some('\\') => match characters.next() {
                Some(escaped @ ('/' | '.' | '\\')) => fields[usize::from(is_kind)].push(escaped),
                _ => return Err("a `\\` is not followed by `/`, `.` or `\\`"),
            },
            Some(other) => fields[usize::from(is_kind)].push(other),
        }
        is_empty = false;
    }
}

/// The stringified form of a name, for error texts.
fn name_to_string(name: &[NameComponent]) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('/', "\\/").replace('.', "\\.");
    let component = |NameComponent { id, kind }: &NameComponent| match (id.is_empty(), kind.is_empty()) {
        (true, true) => ".".to_owned(),
        (_, true) => escaped(id),
        (_, false) => format!("{}.{}", escaped(id), escaped(kind)),
    };
    name.iter().map(component).collect::<Vec<_>>().join("/")
}

/// The resolution of a name in a naming context, and in others that continue it. It decides which context is asked
/// next; the caller makes the calls.
pub(crate) struct Resolution<'n> {
    name: &'n [NameComponent],
    context: ObjectRef,
    unresolved: Vec<NameComponent>,
    continuations: u32,
}

impl<'n> Resolution<'n> {
    pub(crate) fn new(context: ObjectRef, name: &'n [NameComponent]) -> Self {
        Self { name, context, unresolved: name.to_vec(), continuations: 0 }
    }

    /// The context to call, the operation's name, and the encoding of its argument.
    pub(crate) fn request(
        &self,
    ) -> (&ObjectRef, &'static str, impl Fn(&mut Encoder<'_>) -> Result<(), CdrError> + use<'_>) {
        let name = &self.unresolved;
        let encode = |out: &mut Encoder<'_>| {
            out.len(name.len())?;
            name.iter().try_for_each(|NameComponent { id, kind }| {
                out.short_str(id)?;
                out.short_str(kind)
            })
        };
        (&self.context, "resolve", encode)
    }

    /// Takes the reply. Returns the object, or `None` if another context continues the resolution.
    ///
    /// # Errors
    /// BAD_PARAM with the reason if there is no such object; any system exception of the call.
    pub(crate) fn accept(&mut self, reply: Result<Ior, ResolveError>) -> Result<Option<ObjectRef>, SystemException> {
        let name = self.name;
        match reply {
            Ok(ior) => match reference(&self.context, ior) {
                Some(object) => Ok(Some(object)),
                None => Err(bad_url(format!("`{}` is bound to nil", name_to_string(name)))),
            },
            Err(ResolveError::CannotProceed { context: Some(next), unresolved: rest }) if !rest.is_empty() => {
                (self.context, self.unresolved) = (next, rest);
                self.continuations += 1;
                if self.continuations < MAX_CONTINUATIONS {
                    return Ok(None);
                }
                let name = name_to_string(name);
                Err(bad_url(format!(
                    "more than {MAX_CONTINUATIONS} naming services continue the resolution of `{name}`"
                )))
            }
            Err(ResolveError::System(exception)) => Err(exception),
            Err(error) => Err(bad_url(error.describe(name))),
        }
    }
}

/// Resolves a name in a naming context, and in others that continue the resolution.
///
/// # Errors
/// BAD_PARAM with the reason if there is no such object; any system exception of the calls.
pub(crate) fn resolve(context: &ObjectRef, name: &[NameComponent]) -> Result<ObjectRef, SystemException> {
    let mut resolution = Resolution::new(context.clone(), name);
    loop {
        let reply = {
            let (context, operation, encode) = resolution.request();
            context.invoke(operation, encode, Ior::decode)
        };
        if let Some(object) = resolution.accept(reply)? {
            return Ok(object);
        }
    }
}

fn reference(context: &ObjectRef, ior: Ior) -> Option<ObjectRef> {
    (!ior.is_nil()).then(|| context.orb().reference(ior))
}

fn bad_url(detail: String) -> SystemException {
    SystemException::bad_param(minor::BAD_URL_OTHER, CompletionStatus::No).with_detail(detail)
}

/// The exceptions of `resolve` (2.3.2).
#[derive(Debug)]
pub(crate) enum ResolveError {
    NotFound { reason: u32, unresolved: Vec<NameComponent> },
    CannotProceed { context: Option<ObjectRef>, unresolved: Vec<NameComponent> },
    InvalidName,
    System(SystemException),
}

impl ResolveError {
    fn describe(&self, name: &[NameComponent]) -> String {
        let name = name_to_string(name);
        match self {
            Self::NotFound { reason, unresolved } => {
                let reason = match reason {
                    0 => "the name is not bound",
                    1 => "the bound object is not a naming context",
                    _ => "the name is bound to a naming context, not to an object",
                };
                format!("the naming service does not find `{name}`: {reason}, from `{}` on", name_to_string(unresolved))
            }
            Self::CannotProceed { unresolved, .. } => {
                format!("the naming service cannot proceed with `{name}`, from `{}` on", name_to_string(unresolved))
            }
            Self::InvalidName => format!("the naming service rejects `{name}` as an invalid name"),
            Self::System(exception) => exception.to_string(),
        }
    }
}

impl From<SystemException> for ResolveError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl UserExceptions for ResolveError {
    fn decode(repository_id: &str, input: &mut Decoder<'_>) -> Option<Result<Self, CdrError>> {
        Some(match repository_id {
            "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0" => {
                read_not_found(input).map(|(reason, unresolved)| Self::NotFound { reason, unresolved })
            }
            "IDL:omg.org/CosNaming/NamingContext/CannotProceed:1.0" => read_cannot_proceed(input),
            "IDL:omg.org/CosNaming/NamingContext/InvalidName:1.0" => Ok(Self::InvalidName),
            _ => return None,
        })
    }

    fn members(&self) -> Result<(&'static str, Value<'_>), SystemException> {
        Err(bad_url(self.describe(&[])))
    }
}

fn read_not_found(input: &mut Decoder<'_>) -> Result<(u32, Vec<NameComponent>), CdrError> {
    Ok((input.u32()?, read_name(input)?))
}

fn read_cannot_proceed(input: &mut Decoder<'_>) -> Result<ResolveError, CdrError> {
    let context: Option<ObjectRef> = Option::decode(input)?;
    Ok(ResolveError::CannotProceed { context, unresolved: read_name(input)? })
}

fn read_name(input: &mut Decoder<'_>) -> Result<Vec<NameComponent>, CdrError> {
    let len = input.sequence_len(2 * String::MIN_OCTETS)?;
    let component =
        |input: &mut Decoder<'_>| Ok(NameComponent { id: input.str()?.into_owned(), kind: input.str()?.into_owned() });
    (0..len).map(|_| component(input)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap().into_iter().map(|NameComponent { id, kind }| (id, kind)).collect()
    }

    fn expected(name: &[(&str, &str)]) -> Vec<(String, String)> {
        name.iter().map(|(id, kind)| ((*id).to_owned(), (*kind).to_owned())).collect()
    }

    // The examples of 2.4.1 to 2.4.3.
    #[test]
    fn the_examples_of_the_standard_are_parsed() {
        assert_eq!(parts("a/b/c"), expected(&[("a", ""), ("b", ""), ("c", "")]));
        assert_eq!(parts("a.b/c.d/.e"), expected(&[("a", "b"), ("c", "d"), ("", "e")]));
        assert_eq!(parts("a/./c.d/.e"), expected(&[("a", ""), ("", ""), ("c", "d"), ("", "e")]));
        assert_eq!(parts(r"a/x\/y\/z/b"), expected(&[("a", ""), ("x/y/z", ""), ("b", "")]));
        assert_eq!(parts(r"a\.b.c\.d/\\"), expected(&[("a.b", "c.d"), ("\\", "")]));
        assert_eq!(parts(""), []);
    }

    #[test]
    fn malformed_names_are_refused() {
        for text in ["/", "a/", "/a", "a//b", "a.", "a.b.c", "a/b.", r"a\", r"a\b", ".."] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_print_as_they_were_parsed() {
        for text in ["a.b/c.d/.e", "a/./b", r"a\.b.c\/d/\\", ""] {
            assert_eq!(name_to_string(&parse(text).unwrap()), text);
        }
    }
}
