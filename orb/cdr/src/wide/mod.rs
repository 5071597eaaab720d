//! IDL's wide types: `wchar` as `char`, [`WString`] and its bounded form.
//!
//! Their encoding is in `coding`.

mod coding;

use std::{borrow::Borrow, fmt, ops::Deref};

use crate::{BoundedString, CdrError, Decode, Decoder, Encode, Encoder, OverBound};

impl Encode for char {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.wchar(*self)
    }
}

impl Decode for char {
    // Two octets in GIOP 1.1; in 1.2 never fewer than three.
    const MIN_OCTETS: usize = 2;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        input.wchar()
    }
}

/// An IDL `wstring`: text that is encoded as wide characters. It derefs to `str`.
///
/// ```
/// # mod types { pub use spandrel_cdr::*; }
/// use types::WString; // of spandrel
///
/// let text = WString::from("Ærøskøbing");
/// assert_eq!(text.chars().count(), 10);
/// assert_eq!(format!("{text} {text:?}"), "Ærøskøbing \"Ærøskøbing\"");
/// assert_eq!(text.into_inner(), "Ærøskøbing");
/// ```
#[derive(Clone, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct WString(String);

impl WString {
    /// Creates an empty string; it allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(String::new())
    }

    /// Returns the text as a `String`.
    #[must_use]
    pub fn into_inner(self) -> String {
        self.0
    }
}

impl From<String> for WString {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for WString {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<WString> for String {
    fn from(text: WString) -> Self {
        text.0
    }
}

impl Encode for WString {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.wstr(&self.0)
    }
}

impl Decode for WString {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        input.wstr().map(Self)
    }
}

/// An IDL `wstring<N>`: at most `N` characters.
///
/// ```
/// # mod types { pub use spandrel_cdr::*; }
/// use types::{BoundedWString, OverBound}; // of spandrel
///
/// let code = BoundedWString::<3>::try_from("NOK")?;
/// assert_eq!(format!("{code} {code:?}"), "NOK \"NOK\"");
/// assert_eq!(code.into_inner(), "NOK");
/// assert_eq!(BoundedWString::<3>::try_from("krone"), Err(OverBound { len: 5, bound: 3 }));
/// # Ok::<(), OverBound>(())
/// ```
#[derive(Clone, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct BoundedWString<const N: usize>(BoundedString<N>);

impl<const N: usize> BoundedWString<N> {
    /// The text without its bound.
    #[must_use]
    pub fn into_inner(self) -> String {
        self.0.into_inner()
    }
}

impl<const N: usize> TryFrom<String> for BoundedWString<N> {
    type Error = OverBound;

    fn try_from(text: String) -> Result<Self, OverBound> {
        text.try_into().map(Self)
    }
}

impl<const N: usize> TryFrom<&str> for BoundedWString<N> {
    type Error = OverBound;

    fn try_from(text: &str) -> Result<Self, OverBound> {
        text.try_into().map(Self)
    }
}

impl<const N: usize> Encode for BoundedWString<N> {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.wstr(&self.0)
    }
}

impl<const N: usize> Decode for BoundedWString<N> {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self(input.wstr()?.try_into()?))
    }
}

macro_rules! text {
    ($type:ty $(, $($generics:tt)*)?) => {
        impl $(<$($generics)*>)? Deref for $type {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl $(<$($generics)*>)? AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                self
            }
        }

        impl $(<$($generics)*>)? Borrow<str> for $type {
            fn borrow(&self) -> &str {
                self
            }
        }

        impl $(<$($generics)*>)? PartialEq<str> for $type {
            fn eq(&self, other: &str) -> bool {
                **self == *other
            }
        }

        impl $(<$($generics)*>)? PartialEq<&str> for $type {
            fn eq(&self, other: &&str) -> bool {
                **self == **other
            }
        }

        impl $(<$($generics)*>)? fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&**self, f)
            }
        }

        // As a `String`.
        impl $(<$($generics)*>)? fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&**self, f)
            }
        }
    };
}

text!(WString);
text!(BoundedWString<N>, const N: usize);

/// A borrowed text that is encoded as a `wstring`. Generated stubs pass `in` parameters of that IDL type as
/// one.
#[derive(Clone, Copy, Debug)]
pub struct Wide<'t>(
    /// The text, in Rust's UTF-8.
    pub &'t str,
);

impl Encode for Wide<'_> {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.wstr(self.0)
    }
}
