//! Reading of XDR values from octets.

use crate::{XdrError, padding};

/// A value that can be read from its encoding.
pub trait Decode: Sized {
    /// The fewest octets that a value may have. A length of an array is compared with it before memory is
    /// allocated.
    const MIN_OCTETS: usize;

    /// The octets of each value, if all values have the same number, whether or not they are valid. The octets of a
    /// variable-length array of them are taken at once then: [`decode`](Self::decode) gets a decoder of exactly as many.
    const FIXED_OCTETS: Option<usize> = None;

    /// Whether any octets are a value, if their number is [`FIXED_OCTETS`](Self::FIXED_OCTETS).
    #[doc(hidden)]
    const ACCEPTS_ANY: bool = false;

    /// Reads a value.
    ///
    /// # Errors
    /// [`XdrError`] for octets that are no such value, or exceed a limit of the decoder.
    fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError>;
}

/// Returns the value of which these are all octets.
///
/// # Errors
/// [`XdrError`], as for [`Decode::decode`]; [`XdrError::Trailing`].
pub fn decode<T: Decode>(octets: &[u8]) -> Result<T, XdrError> {
    let mut input = XdrDecoder::new(octets);
    let value = T::decode(&mut input)?;
    input.finish()?;
    Ok(value)
}

/// The treatment of residual octets, which fill the last unit of four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// They must be zero (RFC 4506, section 3). Two encodings of a value do not exist then.
    #[default]
    Zero,
    /// They are ignored, whatever their value.
    Any,
}

/// The memory in octets that values of any input may take. Few octets can be a value of a large type: a union takes
/// the memory of its largest arm, and four octets if the present arm is void.
pub const SMALLEST_MEMORY: usize = 64 << 10;

/// The limits on the values that a decoder accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most levels of boxes, arrays and lists inside each other. Each takes space on the stack.
    pub depth: usize,
    /// The octets of memory for decoded values that each octet of input permits; [`SMALLEST_MEMORY`] is always
    /// permitted.
    pub memory_factor: usize,
    /// The treatment of residual octets that are not zero.
    pub padding: Padding,
}

impl Settings {
    /// The usual limits: 128 levels, 64 octets of memory for each octet of input, residual octets of zero.
    pub const DEFAULT: Self = Self { depth: 128, memory_factor: 64, padding: Padding::Zero };
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Reads values one after another from octets.
#[derive(Clone, Debug)]
pub struct XdrDecoder<'a> {
    rest: &'a [u8],
    settings: Settings,
    depth: usize,
    /// The octets of memory that values of this input may take, and those that may still be taken.
    memory: usize,
    memory_left: usize,
}

impl<'a> XdrDecoder<'a> {
    /// A decoder with the [usual limits](Settings::DEFAULT).
    #[must_use]
    pub fn new(octets: &'a [u8]) -> Self {
        Self::with_settings(octets, Settings::DEFAULT)
    }

    /// A decoder with these limits.
    #[must_use]
    pub fn with_settings(octets: &'a [u8], settings: Settings) -> Self {
        let memory = octets.len().saturating_mul(settings.memory_factor).max(SMALLEST_MEMORY);
        Self { rest: octets, settings, depth: 0, memory, memory_left: memory }
    }

    /// The octets that were not read.
    #[must_use]
    pub fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    /// Ends the input.
    ///
    /// # Errors
    /// [`XdrError::Trailing`] if there are further octets.
    pub fn finish(self) -> Result<(), XdrError> {
        if self.rest.is_empty() { Ok(()) } else { Err(XdrError::Trailing(self.rest.len())) }
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], XdrError> {
        let end = || XdrError::End { needed: len, remaining: self.rest.len() };
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(end)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes so many values of a fixed number of octets each, which is not zero; returns a decoder for each.
    #[inline]
    pub(crate) fn fixed(
        &mut self,
        count: usize,
        octets: usize,
    ) -> Result<impl ExactSizeIterator<Item = Self>, XdrError> {
        let (settings, depth, memory, memory_left) = (self.settings, self.depth, self.memory, self.memory_left);
        let values = self.take(count.saturating_mul(octets))?.chunks_exact(octets);
        Ok(values.map(move |rest| Self { rest, settings, depth, memory, memory_left }))
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], XdrError> {
        let end = || XdrError::End { needed: N, remaining: self.rest.len() };
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(end)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads an unsigned int (4.2).
    ///
    /// # Errors
    /// [`XdrError::End`].
    #[inline]
    pub fn u32(&mut self) -> Result<u32, XdrError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads an unsigned hyper (4.5).
    ///
    /// # Errors
    /// [`XdrError::End`].
    #[inline]
    pub fn u64(&mut self) -> Result<u64, XdrError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads the length of an array whose elements have at least `min_octets` each, and which has at most `max` of
    /// them.
    ///
    /// # Errors
    /// [`XdrError::TooLong`]; [`XdrError::End`] if the elements cannot be in the remaining octets.
    pub fn len(&mut self, min_octets: usize, max: u32) -> Result<usize, XdrError> {
        let len = self.u32()?;
        if len > max {
            return Err(XdrError::TooLong { len: len as usize, max });
        }
        let needed = (len as usize).saturating_mul(min_octets);
        if needed > self.rest.len() {
            return Err(XdrError::End { needed, remaining: self.rest.len() });
        }
        Ok(len as usize)
    }

    /// Reads octets of a fixed number, with their residual octets, and lends them (4.9).
    ///
    /// # Errors
    /// [`XdrError::End`]; [`XdrError::Padding`].
    #[inline]
    pub fn fixed_opaque(&mut self, len: usize) -> Result<&'a [u8], XdrError> {
        let octets = self.take(len)?;
        let residual = self.take(padding(len))?;
        if self.settings.padding == Padding::Zero && residual.iter().any(|octet| *octet != 0) {
            return Err(XdrError::Padding);
        }
        Ok(octets)
    }

    /// Reads octets of a variable number, at most `max`, and lends them (4.10).
    ///
    /// # Errors
    /// [`XdrError::TooLong`]; [`XdrError::End`]; [`XdrError::Padding`].
    pub fn opaque(&mut self, max: u32) -> Result<&'a [u8], XdrError> {
        let len = self.len(1, max)?;
        self.fixed_opaque(len)
    }

    /// Reads a string of at most `max` octets, and lends it (4.11).
    ///
    /// # Errors
    /// Those of [`opaque`](Self::opaque); [`XdrError::NotUtf8`].
    pub fn str(&mut self, max: u32) -> Result<&'a str, XdrError> {
        std::str::from_utf8(self.opaque(max)?).map_err(|_| XdrError::NotUtf8)
    }

    /// Charges memory for a decoded value, before it is allocated.
    ///
    /// # Errors
    /// [`XdrError::TooLarge`].
    pub fn charge(&mut self, octets: usize) -> Result<(), XdrError> {
        self.memory_left = self.memory_left.checked_sub(octets).ok_or(XdrError::TooLarge(self.memory))?;
        Ok(())
    }

    /// Reads a value that may contain values of its own type, one level deeper.
    ///
    /// # Errors
    /// [`XdrError::TooDeep`]; errors of the function.
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, XdrError>) -> Result<T, XdrError> {
        if self.depth >= self.settings.depth {
            return Err(XdrError::TooDeep(self.settings.depth));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }
}
