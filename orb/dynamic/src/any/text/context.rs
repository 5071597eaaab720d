//! The names that the text of a value may use.

use std::fmt;

use spandrel_cdr::{Ior, TypeCode};

use crate::ValueTypes;

/// The names that the text of a value may use: value types, types of `any`s, and references.
///
/// Without a function for references, only those in the form `IOR:` are read.
///
/// ```
/// use spandrel_cdr::TypeCode;
/// use spandrel_dynamic::{DynAny, TextContext};
///
/// let longs = TypeCode::alias("IDL:Longs:1.0", "Longs", &TypeCode::sequence(&TypeCode::LONG, 0)?)?;
/// let types = |name: &str| (name == "Longs").then(|| longs.clone());
/// let context = TextContext::new().types(&types);
/// let value = DynAny::from_text_with(&TypeCode::ANY, "Longs [1, 2]", &context)?;
/// assert_eq!(value.any()?.type_code(), &longs);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct TextContext<'n> {
    pub(super) value_types: Option<&'n ValueTypes>,
    pub(super) types: &'n dyn Fn(&str) -> Option<TypeCode>,
    pub(super) references: &'n dyn Fn(&str) -> Result<Ior, String>,
    pub(crate) is_strict: bool,
}

impl<'n> TextContext<'n> {
    /// A context in which no name has a meaning.
    #[must_use]
    pub fn new() -> Self {
        Self { value_types: None, types: &no_type, references: &only_ior, is_strict: false }
    }

    /// The value types that are permitted where one of their bases is declared.
    #[must_use]
    pub fn value_types(self, value_types: &'n ValueTypes) -> Self {
        Self { value_types: Some(value_types), ..self }
    }

    /// The types that an `any` may name, by their scoped names and repository ids, and further value types.
    #[must_use]
    pub fn types(self, types: &'n dyn Fn(&str) -> Option<TypeCode>) -> Self {
        Self { types, ..self }
    }

    /// Converts references from their text form; the error is the reason why it cannot.
    #[must_use]
    pub fn references(self, references: &'n dyn Fn(&str) -> Result<Ior, String>) -> Self {
        Self { references, ..self }
    }

    /// Reads each value in the one JSON form that [`DynAny::to_json`](crate::DynAny::to_json) writes, which a schema can
    /// describe: no number for a character, no list of numbers for octets, no value without a type for an `any`. The text has
    /// to be JSON; that is not checked.
    ///
    /// ```
    /// use spandrel_cdr::TypeCode;
    /// use spandrel_dynamic::{DynAny, TextContext};
    ///
    /// let strict = TextContext::new().strict();
    /// assert!(DynAny::from_text_with(&TypeCode::CHAR, "7", &TextContext::new()).is_ok());
    /// assert!(DynAny::from_text_with(&TypeCode::CHAR, "7", &strict).is_err());
    /// assert!(DynAny::from_text_with(&TypeCode::CHAR, "\"7\"", &strict).is_ok());
    /// ```
    #[must_use]
    pub fn strict(self) -> Self {
        Self { is_strict: true, ..self }
    }
}

impl Default for TextContext<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TextContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TextContext");
        shown.field("value_types", &self.value_types).field("is_strict", &self.is_strict).finish_non_exhaustive()
    }
}

fn no_type(_: &str) -> Option<TypeCode> {
    None
}

fn only_ior(text: &str) -> Result<Ior, String> {
    if !text.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("IOR:")) {
        return Err("only `IOR:` can be resolved without an ORB".to_owned());
    }
    spandrel_giop::ior_from_string(text).map_err(|error| error.to_string())
}
