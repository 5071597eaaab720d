//! Conversion of the code sets other than ISO 8859-1, ASCII, UTF-8 and UTF-16, which are in `text` and `wide`.
//!
//! A character that a code set lacks becomes `CdrError::NotRepresentable` in `text` and in `wide`.
//!
//! A [`CodeSet`] is an index into the table in [`table`], which is linked into programs that look up code sets by
//! number or name. Encoding and decoding use the table through [`Conversion`], so that a program without such
//! a lookup does not contain it.

mod multi_octet;
mod single_octet;
mod table;

use std::fmt;
use std::sync::OnceLock;

use crate::code_set_numbers::Named;

/// One of the code sets that the table of this module converts; its index there.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CodeSet(u8);

/// Conversion between text and the code sets of the table, by their index.
trait Conversion: Sync {
    fn named(&self, index: u8) -> Named;

    fn is_utf8(&self, index: u8) -> bool;

    /// The fixed number of octets per character.
    fn width(&self, index: u8) -> Option<usize>;

    /// Encodes text. The error is the first character that the code set lacks.
    fn encode(&self, index: u8, text: &str) -> Result<Vec<u8>, char>;

    /// Decodes octets; `None` if they are not text in the code set.
    fn decode(&self, index: u8, octets: &[u8]) -> Option<String>;
}

/// The table's conversion, set before the first [`CodeSet`] is created. It selects nothing, as there is one table: a
/// program without code sets of that table does not contain it.
static CONVERSION: OnceLock<&'static dyn Conversion> = OnceLock::new();

impl CodeSet {
    /// The code set at an index of a table.
    fn at(index: usize, table: &'static dyn Conversion) -> Self {
        CONVERSION.get_or_init(|| table);
        Self(u8::try_from(index).expect("the table is short"))
    }

    fn conversion(self) -> &'static dyn Conversion {
        *CONVERSION.get().expect("set before the first code set is created")
    }

    pub(crate) fn named(self) -> Named {
        self.conversion().named(self.0)
    }

    pub(crate) fn is_utf8(self) -> bool {
        self.conversion().is_utf8(self.0)
    }

    /// The fixed number of octets per character, in the byte order of a number.
    pub(crate) fn width(self) -> Option<usize> {
        self.conversion().width(self.0)
    }

    /// Encodes text. The error is the first character that this code set lacks.
    pub(crate) fn encode(self, text: &str) -> Result<Vec<u8>, char> {
        self.conversion().encode(self.0, text)
    }

    /// Decodes octets; `None` if they are not text in this code set.
    pub(crate) fn decode(self, octets: &[u8]) -> Option<String> {
        self.conversion().decode(self.0, octets)
    }
}

impl fmt::Debug for CodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.named().name())
    }
}
