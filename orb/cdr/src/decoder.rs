//! Decoding of values from untrusted octets.

use std::{any::Any, fmt, sync::Arc};

use crate::encoder::values::Entry;
use crate::{ByteOrder, CdrError, CharSet, Ior, TypeCode, WcharSet, Wire};

mod history;
mod joint;
mod memory;
pub(crate) mod values;

use memory::DecodingMemory;
pub use memory::MemoryGrant;
use values::ReadValues;

/// Decodes CDR values from one message or one encapsulation; lends strings and sequences from it where
/// possible.
#[derive(Clone)]
pub struct Decoder<'m> {
    /// All octets, or those before the next joint.
    input: &'m [u8],
    at: usize,
    /// The difference between `at` and the position that alignment counts, modulo 8.
    base: usize,
    wire: Wire,
    depth: u16,
    binder: Option<&'m dyn Binder>,
    joined: Option<Joined<'m>>,
    memory: DecodingMemory<'m>,
    /// The state for messages with values, which are few.
    pub(crate) values: Option<Box<dyn ValueHistory>>,
}

/// A position in joined octets at which the origin of alignment changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Joint {
    /// Octets of the joined input before it.
    pub at: usize,
    /// The position that alignment counts there.
    pub alignment_position: usize,
}

/// The joined octets beyond the current segment.
#[derive(Clone, Copy)]
struct Joined<'m> {
    whole: &'m [u8],
    /// In ascending order of their positions.
    joints: &'m [Joint],
}

impl fmt::Debug for Decoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("at", &self.at)
            .field("remaining", &self.remaining())
            .field("wire", &self.wire)
            .finish_non_exhaustive()
    }
}

impl<'m> Decoder<'m> {
    /// A decoder of `input`, whose first octet is the alignment origin.
    #[inline]
    #[must_use]
    pub fn new(input: &'m [u8], wire: Wire) -> Self {
        let memory = DecodingMemory::UNLIMITED;
        Self { input, at: 0, base: 0, wire, depth: 0, binder: None, joined: None, memory, values: None }
    }

    /// The same decoder, with another state of values.
    pub(crate) fn with_values(&self, values: Option<Box<dyn ValueHistory>>) -> Self {
        let Self { input, at, base, wire, depth, binder, joined, memory, .. } = *self;
        Self { input, at, base, wire, depth, binder, joined, memory, values }
    }

    /// Lets the decoder make object references of the ORB that `binder` belongs to.
    #[inline]
    #[must_use]
    pub fn with_binder(mut self, binder: &'m dyn Binder) -> Self {
        self.binder = Some(binder);
        self
    }

    /// The same decoder, whose values may take `limit` octets of memory beyond those of the message. Further
    /// octets have to be granted by `more`.
    #[inline]
    #[must_use]
    pub fn with_memory_limit(mut self, limit: usize, more: Option<&'m dyn MemoryGrant>) -> Self {
        self.memory = DecodingMemory::new(limit, more);
        self
    }

    /// Counts memory before it is taken.
    #[inline]
    pub(crate) fn count_memory(&mut self, octets: usize) -> Result<(), CdrError> {
        self.memory.count(octets)
    }

    /// Counts the memory of `len` elements of `T` beyond their `min_octets` each on the wire.
    #[inline]
    pub(crate) fn count_elements<T>(&mut self, len: usize, min_octets: usize) -> Result<(), CdrError> {
        let beyond = size_of::<T>().saturating_sub(min_octets);
        if beyond == 0 { Ok(()) } else { self.count_memory(len.saturating_mul(beyond)) }
    }

    /// Sets the code sets by which text is decoded.
    #[inline]
    #[must_use]
    pub fn with_code_sets(mut self, char_set: CharSet, wchar_set: WcharSet) -> Self {
        (self.wire.char_set, self.wire.wchar_set) = (char_set, wchar_set);
        self
    }

    /// Changes the code sets of text from here on.
    #[inline]
    pub fn set_code_sets(&mut self, char_set: CharSet, wchar_set: WcharSet) {
        (self.wire.char_set, self.wire.wchar_set) = (char_set, wchar_set);
    }

    /// Returns a decoder that continues here with the state of values; this one loses the values that it has
    /// decoded.
    #[inline]
    #[must_use]
    pub fn hand_over(&mut self) -> Self {
        Self { values: self.values.take(), ..*self }
    }

    /// The same decoder, `position` octets after its start, or at its end if that is nearer.
    #[inline]
    #[must_use]
    pub fn at(mut self, position: usize) -> Self {
        self.at = position.min(self.all().len());
        self.find_segment(self.at);
        self
    }

    /// The position that alignment counts, modulo 8.
    pub(crate) fn misalignment(&self) -> u8 {
        u8::try_from(self.gap(8).wrapping_neg() & 7).expect("less than eight")
    }

    /// The levels of nesting around the current position.
    pub(crate) fn depth(&self) -> u16 {
        self.depth
    }

    /// The same decoder, whose first octet has this position modulo 8.
    pub(crate) fn offset_by(mut self, offset: u8) -> Self {
        self.base = usize::from(offset);
        self
    }

    /// A decoder of an encapsulation's octets, whose first octet is its byte order (9.3.3).
    ///
    /// # Errors
    /// [`CdrError::Truncated`] if the octets are empty.
    pub fn of_encapsulation(octets: &'m [u8], wire: Wire) -> Result<Self, CdrError> {
        let mut inner = Self::new(octets, wire);
        inner.wire.order = ByteOrder::from_flag(inner.u8()?);
        Ok(inner)
    }

    /// The byte order, version, limits and code sets in force.
    #[inline]
    #[must_use]
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// The binder by which object references are made; `None` for plain ones.
    #[inline]
    #[must_use]
    pub fn binder(&self) -> Option<&'m dyn Binder> {
        self.binder
    }

    /// Octets read so far.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Octets from the current position to the end of the input.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.all().len() - self.at
    }

    /// All octets left, without consuming them.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> &'m [u8] {
        &self.all()[self.at..]
    }

    /// The octets before the next joint.
    #[inline]
    pub(crate) fn segment(&self) -> &'m [u8] {
        &self.input[self.at..]
    }

    /// Octets to the next multiple of `alignment` (a power of two).
    #[inline]
    #[must_use]
    pub fn gap(&self, alignment: usize) -> usize {
        self.base.wrapping_add(self.at).wrapping_neg() & (alignment - 1)
    }

    /// Skips the gap to the next multiple of `alignment` (a power of two). Its content is ignored.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn align(&mut self, alignment: usize) -> Result<(), CdrError> {
        if self.segment().is_empty() {
            self.continue_in_next_chunk()?;
        }
        let gap = self.gap(alignment);
        self.take(gap).map(drop)
    }

    /// Reads `len` raw octets.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'m [u8], CdrError> {
        let segment = self.segment();
        if len > segment.len() {
            return self.take_joined(len);
        }
        self.at += len;
        Ok(&segment[..len])
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], CdrError> {
        let gap = self.gap(N);
        match self.segment().get(gap..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(octets) => {
                self.at += gap + N;
                Ok(*octets)
            }
            None => self.array_joined(),
        }
    }

    /// Reads an IDL `octet`.
    ///
    /// # Errors
    /// [`CdrError::Truncated`], as for every primitive.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, CdrError> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads an IDL `boolean`.
    ///
    /// # Errors
    /// Also [`CdrError::BadBoolean`].
    #[inline]
    pub fn bool(&mut self) -> Result<bool, CdrError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(CdrError::BadBoolean(other)),
        }
    }

    /// Reads an IDL `short`.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn i16(&mut self) -> Result<i16, CdrError> {
        Ok(self.u16()?.cast_signed())
    }

    /// Reads an IDL `unsigned short`.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn u16(&mut self) -> Result<u16, CdrError> {
        let value = u16::from_ne_bytes(self.array()?);
        Ok(if self.wire.order.is_swapped() { value.swap_bytes() } else { value })
    }

    /// Reads an IDL `long`.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn i32(&mut self) -> Result<i32, CdrError> {
        Ok(self.u32()?.cast_signed())
    }

    /// Reads an IDL `unsigned long`.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn u32(&mut self) -> Result<u32, CdrError> {
        let value = u32::from_ne_bytes(self.array()?);
        Ok(if self.wire.order.is_swapped() { value.swap_bytes() } else { value })
    }

    /// Reads an IDL `long long`.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn i64(&mut self) -> Result<i64, CdrError> {
        Ok(self.u64()?.cast_signed())
    }

    /// Reads an IDL `unsigned long long`.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn u64(&mut self) -> Result<u64, CdrError> {
        let value = u64::from_ne_bytes(self.array()?);
        Ok(if self.wire.order.is_swapped() { value.swap_bytes() } else { value })
    }

    /// Reads an IDL `float`.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn f32(&mut self) -> Result<f32, CdrError> {
        self.u32().map(f32::from_bits)
    }

    /// Reads an IDL `double`.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn f64(&mut self) -> Result<f64, CdrError> {
        self.u64().map(f64::from_bits)
    }

    /// Reads a length, and rejects one that the remaining input could not hold.
    ///
    /// `min_octets` is the smallest encoding of one element, so that a false length costs an error, not
    /// memory.
    ///
    /// # Errors
    /// [`CdrError::LengthBeyondInput`].
    #[inline]
    pub fn sequence_len(&mut self, min_octets: usize) -> Result<usize, CdrError> {
        let len = self.u32()? as usize;
        let remaining = self.remaining();
        match len.checked_mul(min_octets.max(1)) {
            Some(needed) if needed <= remaining => Ok(len),
            _ => Err(CdrError::LengthBeyondInput { len, remaining }),
        }
    }

    /// Reads a `sequence<octet>` without copying it.
    ///
    /// # Errors
    /// [`CdrError::LengthBeyondInput`].
    #[inline]
    pub fn octet_sequence(&mut self) -> Result<&'m [u8], CdrError> {
        let len = self.sequence_len(1)?;
        self.take(len)
    }

    /// Reads an encapsulation: length, byte order and content, aligned from its own start (9.3.3).
    ///
    /// The returned decoder has this one's limits and binder, one level deeper.
    ///
    /// # Errors
    /// [`CdrError::LengthBeyondInput`], [`CdrError::Truncated`], [`CdrError::TooDeep`].
    pub fn encapsulation(&mut self) -> Result<Decoder<'m>, CdrError> {
        let octets = self.octet_sequence()?;
        let mut inner = Decoder::of_encapsulation(octets, self.wire)?;
        inner.binder = self.binder;
        inner.depth = self.deeper()?;
        Ok(inner)
    }

    /// Runs `read` one level deeper, so that hostile nesting ends in an error, not in a stack overflow.
    ///
    /// # Errors
    /// [`CdrError::TooDeep`], or those of `read`.
    #[inline]
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, CdrError>) -> Result<T, CdrError> {
        self.depth = self.deeper()?;
        let value = read(self);
        self.depth -= 1;
        value
    }

    #[inline]
    fn deeper(&self) -> Result<u16, CdrError> {
        let limit = self.wire.limits.nesting;
        if self.depth >= limit { Err(CdrError::TooDeep { limit }) } else { Ok(self.depth + 1) }
    }
}

/// Converts plain references to live ones; implemented by the ORB.
pub trait Binder: Send + Sync {
    /// A reference that can be invoked, as the ORB's reference type downcasts it.
    ///
    /// # Errors
    /// A reference that this ORB cannot use at all.
    fn bind(&self, ior: Ior) -> Result<Arc<dyn Any + Send + Sync>, CdrError>;

    /// The same binder, for values that are decoded later than the message: an [`Any`](crate::Any).
    fn share(&self) -> Arc<dyn Binder>;

    /// The registered factory for received values of the type with this id.
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        let _ = repository_id;
        None
    }

    /// The type code of the value type with this id, if known. Within an [`Any`](crate::Any), it decodes a
    /// value whose type differs from that of its position and has no Rust type.
    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        let _ = repository_id;
        None
    }
}

/// Creates values of one type from their state on the wire.
///
/// A decoder asks its [`Binder`] for the factory of a repository id, then generated code, which creates
/// values without operations by itself.
pub trait ValueFactory: Send + Sync {
    /// Decodes the state of a value and creates the value. Values that it refers to may be incomplete: their
    /// references may be stored, but not followed.
    ///
    /// # Errors
    /// Octets that are not a valid state.
    fn read(&self, input: &mut Decoder<'_>) -> Result<Entry, CdrError>;
}

/// A decoder's state of values behind a trait: programs that decode no values link none of its code.
pub(crate) trait ValueHistory: fmt::Debug + Send + Sync {
    fn values(&self) -> &ReadValues;
    fn values_mut(&mut self) -> &mut ReadValues;
    /// The function that continues in the next chunk, after a number of octets of padding.
    fn next_chunk(&self) -> NextChunk;
    /// A copy of the whole state.
    fn copy(&self) -> Box<dyn ValueHistory>;
    /// A copy of the position in chunks only.
    fn chunk_position(&self) -> Box<dyn ValueHistory>;
}

/// Continues in the next chunk.
pub(crate) type NextChunk = for<'m> fn(&mut Decoder<'m>, usize) -> Result<(), CdrError>;

impl Clone for Box<dyn ValueHistory> {
    fn clone(&self) -> Self {
        self.copy()
    }
}
