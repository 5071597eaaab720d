//! The table of `-ORB…` options: parsing, the pages of the book and the help of programs come from its rows.

use std::fmt;

use spandrel_transport::EndpointError;

use super::InitError;
use crate::OrbBuilder;

/// An option of a command line that configures an ORB: a row of the table of options.
///
/// Its texts are Markdown of one line; [`Display`](fmt::Display) writes them for a terminal.
pub struct OrbOption {
    /// Its spellings. The book uses the first; the others are those of other ORBs and of older programs.
    pub names: &'static [&'static str],
    /// The values that it takes, in words.
    pub value: &'static str,
    /// The value of an ORB without this option.
    pub default: &'static str,
    /// The setting that it changes, as a part of a sentence.
    pub help: &'static str,
    /// A link to the page of the book that says more; empty where there is none.
    pub page: &'static str,
    pub(super) apply: fn(OrbBuilder, &str) -> Result<OrbBuilder, ValueError>,
}

impl OrbOption {
    /// Sets the option.
    ///
    /// # Errors
    /// [`InitError::BadValue`] or [`InitError::BadEndpoint`]: it does not take this value.
    pub(super) fn set(&self, builder: OrbBuilder, option: &str, value: &str) -> Result<OrbBuilder, InitError> {
        (self.apply)(builder, value).map_err(|error| match error {
            ValueError::Expected(expected) => {
                InitError::BadValue { option: option.to_owned(), value: value.to_owned(), expected }
            }
            ValueError::Endpoint(error) => error.into(),
            ValueError::Other(error) => *error,
        })
    }
}

impl fmt::Debug for OrbOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrbOption").field("names", &self.names).finish_non_exhaustive()
    }
}

impl fmt::Display for OrbOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |text: &str| text.replace('`', "");
        writeln!(f, "{}", self.names.join(", "))?;
        write!(f, "    {} ({}) [default: {}]", plain(self.help), plain(self.value), plain(self.default))
    }
}

/// The reason why an option does not take a value.
pub(super) enum ValueError {
    /// The values that it takes.
    Expected(&'static str),
    /// One of the endpoints is malformed.
    Endpoint(EndpointError),
    /// The thing that the value names cannot be used.
    Other(Box<InitError>),
}

impl From<&'static str> for ValueError {
    fn from(expected: &'static str) -> Self {
        Self::Expected(expected)
    }
}

impl From<EndpointError> for ValueError {
    fn from(error: EndpointError) -> Self {
        Self::Endpoint(error)
    }
}

/// Declares a static table of options, with its rows as a table in its documentation.
macro_rules! option_table {
    (
        $(#[$meta:meta])*
        $vis:vis static $table:ident;
        $(
            [$first:literal $(, $other:literal)*] {
                value: $value:literal,
                default: $default:literal,
                help: $help:literal,
                page: $page:literal,
                apply: $apply:expr,
            }
        )*
    ) => {
        $(#[$meta])*
        ///
        /// | option | value | default | what it sets |
        /// | --- | --- | --- | --- |
        $(#[doc = concat!("| `", $first, "`" $(, ", `", $other, "`")*, " | ", $value, " | ", $default, " | ", $help, " |")])*
        $vis static $table: &[$crate::OrbOption] = &[$(
            $crate::OrbOption {
                names: &[$first $(, $other)*],
                value: $value,
                default: $default,
                help: $help,
                page: $page,
                apply: $apply,
            },
        )*];
    };
}
pub(super) use option_table;
