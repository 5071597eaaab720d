//! User exceptions as Rust errors.

use std::{
    any::Any,
    fmt::{self, Debug, Formatter, Write},
};

use spandrel_cdr::{CdrError, Decode, Decoder, Encode, ExtractError, engine::Value};
use spandrel_error::escape;
use spandrel_giop::{CompletionStatus, SystemException};

/// An exception declared in IDL.
pub trait UserException: Encode + Decode + PartialEq + std::error::Error + 'static {
    /// The repository id, which precedes the members on the wire.
    const REPOSITORY_ID: &'static str;
}

/// The error type of an operation: its user exceptions, and system exceptions.
///
/// Generated enums implement it, and so does [`SystemException`] for operations without user exceptions.
pub trait UserExceptions: From<SystemException> + Sized {
    /// Decodes the members of the exception with this repository id; `None` if the operation does not raise
    /// it.
    fn decode(repository_id: &str, input: &mut Decoder<'_>) -> Option<Result<Self, CdrError>>;

    /// The repository id and the members of the user exception, for a reply.
    ///
    /// # Errors
    /// The system exception, if this is one.
    fn members(&self) -> Result<(&'static str, Value<'_>), SystemException>;
}

impl UserExceptions for SystemException {
    fn decode(_repository_id: &str, _input: &mut Decoder<'_>) -> Option<Result<Self, CdrError>> {
        None
    }

    fn members(&self) -> Result<(&'static str, Value<'_>), SystemException> {
        Err(self.clone())
    }
}

/// The variants of an error enum: the constructor of that for system exceptions, and those of its user exceptions.
pub type Variants<E> = (fn(SystemException) -> E, &'static [ErrorVariant<E>]);

/// An enum that the compiler generates for the exceptions of an operation.
pub trait ErrorEnum: From<SystemException> + Sized + 'static {
    /// The variants, in the order of their declaration.
    const VARIANTS: Variants<Self>;

    /// The exception that the enum holds.
    fn exception(&self) -> &dyn Raised;
}

impl<E: ErrorEnum> UserExceptions for E {
    fn decode(repository_id: &str, input: &mut Decoder<'_>) -> Option<Result<Self, CdrError>> {
        let variant = E::VARIANTS.1.iter().find(|variant| variant.repository_id == repository_id)?;
        Some((variant.decode)(input))
    }

    fn members(&self) -> Result<(&'static str, Value<'_>), SystemException> {
        self.exception().members()
    }
}

/// An error enum with a variant for system exceptions.
pub trait SystemVariant: Sized {
    /// The enum with this exception.
    fn from_system(exception: SystemException) -> Self;
}

impl<E: ErrorEnum> SystemVariant for E {
    fn from_system(exception: SystemException) -> Self {
        E::VARIANTS.0(exception)
    }
}

/// A value that becomes the error enum `E` of an operation, as by the operator `?`: one of the exceptions that the
/// operation raises, a system exception, or an error that is reported by one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an exception of `{E}`",
    label = "the operation does not raise it, and it is not reported as a system exception"
)]
pub trait IntoError<E> {
    /// The enum with this exception.
    fn into_error(self) -> E;
}

impl<E: SystemVariant> IntoError<E> for SystemException {
    fn into_error(self) -> E {
        E::from_system(self)
    }
}

impl<E: SystemVariant> IntoError<E> for CdrError {
    fn into_error(self) -> E {
        E::from_system(self.into())
    }
}

impl<E: SystemVariant> IntoError<E> for ExtractError {
    fn into_error(self) -> E {
        E::from_system(self.into())
    }
}

/// One of the user exceptions of an error enum.
pub struct ErrorVariant<E> {
    repository_id: &'static str,
    decode: fn(&mut Decoder<'_>) -> Result<E, CdrError>,
    copy: fn(&dyn Raised) -> Option<E>,
}

/// The variant of the exception `X`, by its constructor.
pub const fn variant<X: UserException + Clone + IntoError<E>, E: 'static>(_constructor: fn(X) -> E) -> ErrorVariant<E> {
    ErrorVariant {
        repository_id: X::REPOSITORY_ID,
        decode: |input| decode_exception::<X>(input).map(X::into_error),
        copy: |exception| {
            let exception: &dyn Any = exception;
            exception.downcast_ref::<X>().cloned().map(X::into_error)
        },
    }
}

impl<E> ErrorVariant<E> {
    /// A copy, if the exception has the type of this variant.
    pub(crate) fn copy(&self, exception: &dyn Raised) -> Option<E> {
        (self.copy)(exception)
    }
}

impl<E> Debug for ErrorVariant<E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ErrorVariant").field(&self.repository_id).finish()
    }
}

/// Decodes the members of an exception: one instance for all operations that raise it.
#[inline(never)]
fn decode_exception<X: UserException>(input: &mut Decoder<'_>) -> Result<X, CdrError> {
    X::decode(input)
}

/// An exception of any type, as error enums return it.
pub trait Raised: Any + fmt::Display {
    /// The repository id and the members of a user exception, for a reply.
    ///
    /// # Errors
    /// The system exception, if this is one.
    fn members(&self) -> Result<(&'static str, Value<'_>), SystemException>;

    /// Whether the other exception has the same type and equal members.
    fn equals(&self, other: &dyn Raised) -> bool;

    /// The exception, if it is a system exception.
    fn system(&self) -> Option<&SystemException> {
        None
    }
}

impl<X: UserException> Raised for X {
    fn members(&self) -> Result<(&'static str, Value<'_>), SystemException> {
        Ok((X::REPOSITORY_ID, Value::coded(self)))
    }

    fn equals(&self, other: &dyn Raised) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref() == Some(self)
    }
}

impl Raised for SystemException {
    fn members(&self) -> Result<(&'static str, Value<'_>), SystemException> {
        Err(self.clone())
    }

    fn equals(&self, other: &dyn Raised) -> bool {
        other.system() == Some(self)
    }

    fn system(&self) -> Option<&SystemException> {
        Some(self)
    }
}

/// NO_IMPLEMENT for an operation that a servant does not implement.
#[cold]
pub fn not_implemented(operation: &'static str) -> SystemException {
    SystemException::no_implement(0, CompletionStatus::No)
        .with_detail(move || format!("the servant does not implement `{operation}`"))
}

/// The most characters of one member's value in a description.
const MAX_VALUE: usize = 200;

/// The most members in a description.
const MAX_MEMBERS: usize = 8;

/// Writes a user exception as a derived `Debug` does.
///
/// # Errors
/// Those of the formatter.
pub fn debug_exception(f: &mut Formatter<'_>, name: &str, members: &[(&str, &dyn Debug)]) -> fmt::Result {
    let plain = |ident: &str| ident.strip_prefix("r#").unwrap_or(ident).to_owned();
    let mut form = f.debug_struct(&plain(name));
    for (member, value) in members {
        form.field(&plain(member), value);
    }
    form.finish()
}

/// Writes a user exception as a sentence: `Overdrawn: balance 500, limit 100`. Long values and further members
/// end in `…`, since a peer chooses their sizes.
///
/// # Errors
/// Those of the formatter.
pub fn describe_exception(f: &mut Formatter<'_>, name: &str, members: &[(&str, &dyn Debug)]) -> fmt::Result {
    f.write_str(name)?;
    for (nth, (member, value)) in members.iter().take(MAX_MEMBERS).enumerate() {
        write!(f, "{} {member} ", if nth == 0 { ':' } else { ',' })?;
        bounded(f, |out| write!(out, "{value:?}"))?;
    }
    if members.len() > MAX_MEMBERS { f.write_str(", …") } else { Ok(()) }
}

/// Writes a user exception whose only member is a text: `Failed: no such account`. It is
/// [escaped](spandrel_error::escape), and a long text ends in `…`.
///
/// # Errors
/// Those of the formatter.
pub fn describe_exception_text(f: &mut Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    f.write_str(name)?;
    if text.is_empty() {
        return Ok(());
    }
    f.write_str(": ")?;
    write!(f, "{}", escape(text).at_most(MAX_VALUE))
}

/// Runs `write` with an output of [`MAX_VALUE`] characters, which ends it and writes `…` beyond.
fn bounded(f: &mut Formatter<'_>, write: impl FnOnce(&mut Bounded<'_, '_>) -> fmt::Result) -> fmt::Result {
    let mut out = Bounded { f, left: MAX_VALUE, is_cut: false };
    match write(&mut out) {
        Err(fmt::Error) if out.is_cut => out.f.write_char('…'),
        result => result,
    }
}

/// A formatter's output up to a number of characters.
struct Bounded<'f, 'o> {
    f: &'f mut Formatter<'o>,
    left: usize,
    is_cut: bool,
}

impl Write for Bounded<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let (end, count) = match text.char_indices().enumerate().nth(self.left) {
            Some((count, (end, _))) => (end, count),
            None => (text.len(), text.chars().count()),
        };
        self.left -= count;
        self.f.write_str(&text[..end])?;
        if end < text.len() {
            self.is_cut = true;
            return Err(fmt::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An exception with members, or with one text.
    struct Described<'a>(Result<&'a [(&'a str, &'a dyn Debug)], &'a str>);

    impl fmt::Display for Described<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            match self.0 {
                Ok(members) => describe_exception(f, "Overdrawn", members),
                Err(text) => describe_exception_text(f, "Overdrawn", text),
            }
        }
    }

    #[test]
    fn an_exception_reads_like_a_sentence() {
        let described = |members: &[(&str, &dyn Debug)]| Described(Ok(members)).to_string();
        assert_eq!(described(&[("balance", &500)]), "Overdrawn: balance 500");
        assert_eq!(described(&[("balance", &-5), ("owner", &"Grace")]), "Overdrawn: balance -5, owner \"Grace\"");
        assert_eq!(described(&[]), "Overdrawn");
    }

    #[test]
    fn a_single_text_has_neither_name_nor_quotes() {
        assert_eq!(Described(Err("no such account")).to_string(), "Overdrawn: no such account");
        assert_eq!(Described(Err("")).to_string(), "Overdrawn");
        assert_eq!(Described(Err("a\u{1b}[2J\nb")).to_string(), r"Overdrawn: a\u001b[2J\nb");
    }

    #[test]
    fn a_long_value_is_cut() {
        let long = vec![1_000_000_u32; 1_000_000];
        let text = Described(Ok(&[("values", &long), ("last", &1)])).to_string();
        assert!(text.starts_with("Overdrawn: values [1000000, 1000000, "), "{text}");
        assert!(text.ends_with("…, last 1"), "{text}");
        assert_eq!(text.chars().count(), "Overdrawn: values ".len() + MAX_VALUE + "…, last 1".chars().count());
        let text = Described(Err(&"ä".repeat(MAX_VALUE + 1))).to_string();
        assert_eq!(text, format!("Overdrawn: {}…", "ä".repeat(MAX_VALUE)));
        assert!(!Described(Err(&"ä".repeat(MAX_VALUE))).to_string().contains('…'));
    }

    #[test]
    fn further_members_are_cut() {
        let members: Vec<(&str, &dyn Debug)> = vec![("x", &1); MAX_MEMBERS + 1];
        assert!(Described(Ok(&members)).to_string().ends_with("x 1, x 1, …"));
    }
}
