//! The code sets of narrow and wide text, by number and name.
//!
//! Four are available without a table ([`CharSet::basic`], [`WcharSet::basic`]); the others are in
//! [`CodeSet`]'s table. The conversion of text to octets is in `text` and
//! `wide`, that of a single `char` in `characters`.

use std::{fmt, str::FromStr};

use crate::CodeSet;
use crate::code_set_numbers::{ASCII, LATIN1, Named, UTF8};

const UTF16: Named = Named { number: 0x0001_0109, names: &["UTF-16"] };
const UNKNOWN: Named = Named { number: 0, names: &["none"] };

/// The code set of `char` and `string`: the negotiated TCS-C (CORBA 3.3 Part 2, 7.10.2).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum CharSet {
    /// ISO 8859-1, the default without negotiation.
    #[default]
    Latin1,
    /// ISO 646, its international reference version: ASCII.
    Ascii,
    /// UTF-8, which covers every character. Between Spandrel ORBs an IDL `char` is an octet of ISO 8859-1
    /// nevertheless; see [`CharSet::standard`].
    Utf8,
    /// A code set of the table of conversions.
    Other(CodeSet),
}

/// The code set of `wchar` and `wstring`: the negotiated TCS-W (CORBA 3.3 Part 2, 7.10.2).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum WcharSet {
    /// UTF-16, the fallback of negotiation.
    #[default]
    Utf16,
    /// No agreement, and no default (7.10.2.7): wide characters can be neither encoded nor decoded.
    Unknown,
    /// A code set of the table of conversions.
    Other(CodeSet),
}

/// The error for the number or name of an unknown code set.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a known code set")]
pub struct UnknownCodeSet(String);
spandrel_error::debug_as_report!(UnknownCodeSet);

impl CharSet {
    const BASE: [Self; 3] = [Self::Latin1, Self::Ascii, Self::Utf8];

    /// All known code sets, in no particular order.
    pub fn all() -> impl Iterator<Item = Self> {
        // The four basic ones are also in the table, for wide characters.
        let others = CodeSet::all().filter(|set| set.width().is_none()).map(Self::Other);
        Self::BASE
            .into_iter()
            .chain(others.filter(|other| !Self::BASE.iter().any(|base| base.number() == other.number())))
    }

    fn named(self) -> Named {
        match self {
            Self::Latin1 => LATIN1,
            Self::Ascii => ASCII,
            Self::Utf8 => UTF8,
            Self::Other(set) => set.named(),
        }
    }

    /// The code set with this number in the OSF registry, if it is known and consists of octets.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::basic(number)
            .or_else(|| CodeSet::from_number(number).filter(|set| set.width().is_none()).map(Self::Other))
    }

    /// The code set with this number of the OSF registry, if it needs no table: ISO 8859-1, ASCII or UTF-8.
    #[must_use]
    pub fn basic(number: u32) -> Option<Self> {
        Self::BASE.into_iter().find(|base| base.number() == number)
    }

    /// Its number in the OSF registry.
    #[must_use]
    pub fn number(self) -> u32 {
        self.named().number
    }

    /// The registered name of the code set, as `Display` prints it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.named().name()
    }

    /// The code set in its standard meaning: in UTF-8 a `char` then is an ASCII character, since all others
    /// take more than one octet.
    #[must_use]
    pub fn standard(self) -> Self {
        match self {
            Self::Utf8 | Self::Ascii => CodeSet::from_number(self.number()).map_or(self, Self::Other),
            _ => self,
        }
    }

    /// Whether it is Rust's own encoding.
    pub(crate) fn is_utf8(self) -> bool {
        match self {
            Self::Utf8 => true,
            Self::Other(set) => set.is_utf8(),
            _ => false,
        }
    }
}

impl WcharSet {
    /// All known code sets, in no particular order.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Utf16).chain(CodeSet::all().map(Self::Other))
    }

    fn named(self) -> Named {
        match self {
            Self::Utf16 => UTF16,
            Self::Unknown => UNKNOWN,
            Self::Other(set) => set.named(),
        }
    }

    /// The code set with this number in the OSF registry, if known; zero stands for none.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::basic(number).or_else(|| CodeSet::from_number(number).map(Self::Other))
    }

    /// The code set with this number of the OSF registry, if it needs no table: UTF-16; zero stands for none.
    #[must_use]
    pub fn basic(number: u32) -> Option<Self> {
        [Self::Unknown, Self::Utf16].into_iter().find(|base| base.number() == number)
    }

    /// Its number in the OSF registry; zero for none.
    #[must_use]
    pub fn number(self) -> u32 {
        self.named().number
    }

    /// The registered name of the code set, as `Display` prints it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.named().name()
    }

    /// Whether GIOP 1.1 can use it: its wide characters have two octets (9.3.1.6).
    #[must_use]
    pub fn is_of_two_octets(self) -> bool {
        match self {
            Self::Utf16 => true,
            Self::Unknown => false,
            Self::Other(set) => set.width() == Some(2),
        }
    }
}

/// Parses a number: `0x00010001`, or decimal.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

impl FromStr for CharSet {
    type Err = UnknownCodeSet;

    /// A name, or a number of the OSF registry.
    fn from_str(text: &str) -> Result<Self, UnknownCodeSet> {
        let by_name = || {
            let base = Self::BASE.into_iter().find(|base| base.named().is(text));
            base.or_else(|| CodeSet::from_name(text).filter(|set| set.width().is_none()).map(Self::Other))
        };
        number(text).map_or_else(by_name, Self::from_number).ok_or_else(|| UnknownCodeSet(text.to_owned()))
    }
}

impl FromStr for WcharSet {
    type Err = UnknownCodeSet;

    /// A name, or a number of the OSF registry; `none` for no wide characters.
    fn from_str(text: &str) -> Result<Self, UnknownCodeSet> {
        let by_name = || {
            let base = [Self::Utf16, Self::Unknown].into_iter().find(|base| base.named().is(text));
            base.or_else(|| CodeSet::from_name(text).map(Self::Other))
        };
        number(text).map_or_else(by_name, Self::from_number).ok_or_else(|| UnknownCodeSet(text.to_owned()))
    }
}

impl fmt::Display for CharSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for WcharSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
