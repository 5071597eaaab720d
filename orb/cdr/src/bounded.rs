//! Bounded strings and sequences: the bound is part of the type and checked once, at construction.

use std::{fmt, ops::Deref};

use crate::{CdrError, Decode, Decoder, Encode, Encoder};

/// The error for more elements than the type's bound.
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[error("{len} elements exceed the bound of {bound}")]
pub struct OverBound {
    /// The number of elements that were to be put into it.
    pub len: usize,
    /// The bound in the IDL type.
    pub bound: usize,
}
spandrel_error::debug_as_report!(OverBound);

impl From<OverBound> for CdrError {
    fn from(OverBound { len, bound }: OverBound) -> Self {
        Self::OverBound { len, bound }
    }
}

pub(crate) fn check(len: usize, bound: usize) -> Result<(), OverBound> {
    if len > bound { Err(OverBound { len, bound }) } else { Ok(()) }
}

/// An IDL `sequence<T, N>`: at most `N` elements.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct BoundedVec<T, const N: usize>(Vec<T>);

impl<T, const N: usize> BoundedVec<T, N> {
    /// Creates an empty sequence; it allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends an element.
    ///
    /// # Errors
    /// [`OverBound`] if it holds `N` elements already; the element is dropped.
    pub fn push(&mut self, item: T) -> Result<(), OverBound> {
        check(self.0.len() + 1, N)?;
        self.0.push(item);
        Ok(())
    }

    /// The elements without their bound.
    #[must_use]
    pub fn into_inner(self) -> Vec<T> {
        self.0
    }
}

impl<T, const N: usize> Default for BoundedVec<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Deref for BoundedVec<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const N: usize> TryFrom<Vec<T>> for BoundedVec<T, N> {
    type Error = OverBound;

    fn try_from(items: Vec<T>) -> Result<Self, OverBound> {
        check(items.len(), N)?;
        Ok(Self(items))
    }
}

impl<T: Encode, const N: usize> Encode for BoundedVec<T, N> {
    #[inline]
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.0.encode(out)
    }
}

impl<T: Decode, const N: usize> Decode for BoundedVec<T, N> {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let len = input.sequence_len(T::MIN_OCTETS)?;
        check(len, N)?;
        input.nested(|input| T::decode_vec(input, len)).map(Self)
    }
}

/// An IDL `string<N>`: at most `N` characters.
///
/// ```
/// # mod types { pub use spandrel_cdr::*; }
/// use types::{BoundedString, OverBound}; // of spandrel
///
/// let code = BoundedString::<3>::try_from("NOK")?;
/// assert_eq!(&*code, "NOK");
/// assert_eq!(BoundedString::<3>::try_from("krone"), Err(OverBound { len: 5, bound: 3 }));
/// # Ok::<(), OverBound>(())
/// ```
#[derive(Clone, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct BoundedString<const N: usize>(String);

impl<const N: usize> BoundedString<N> {
    /// The text without its bound.
    #[must_use]
    pub fn into_inner(self) -> String {
        self.0
    }
}

// As a `String`.
impl<const N: usize> fmt::Debug for BoundedString<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<const N: usize> Deref for BoundedString<N> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const N: usize> TryFrom<String> for BoundedString<N> {
    type Error = OverBound;

    fn try_from(text: String) -> Result<Self, OverBound> {
        check(text.chars().count(), N)?;
        Ok(Self(text))
    }
}

impl<const N: usize> TryFrom<&str> for BoundedString<N> {
    type Error = OverBound;

    fn try_from(text: &str) -> Result<Self, OverBound> {
        Self::try_from(text.to_owned())
    }
}

impl<const N: usize> Encode for BoundedString<N> {
    #[inline]
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.str(&self.0)
    }
}

impl<const N: usize> Decode for BoundedString<N> {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let text = input.str()?;
        check(text.chars().count(), N)?;
        Ok(Self(text.into_owned()))
    }
}
