//! Encoding of values: a scratch block for small ones, lent slices for long ones.

use std::{io::IoSlice, ops::Range};

use smallvec::SmallVec;

pub(crate) mod values;

use crate::{ByteOrder, CdrError, Wire};
pub use values::Placeholder;
use values::WrittenValues;

/// Octets from which on a slice is lent to the transport instead of copied.
///
/// Below it, one more element in the gather list costs more than the copy.
pub const LEND_OCTETS: usize = 2048;

/// Octets reserved by `put`: a full alignment gap and the longest primitive.
const WINDOW: usize = 16;

/// Encodes CDR values; the result is a list of slices ([`Encoder::parts`]).
///
/// The lifetime is that of the values: long sequences of primitives are borrowed, not copied.
#[derive(Debug)]
pub struct Encoder<'a> {
    /// Initialised to its whole length; the first `at` octets are written.
    scratch: Vec<u8>,
    at: usize,
    lent: SmallVec<[Lent<'a>; 2]>,
    lent_octets: usize,
    /// The origin of alignment: the message's first octet, or the encapsulation's.
    origin: usize,
    wire: Wire,
    /// Whether some octets would differ in other code sets.
    is_coded: bool,
    /// The state for messages with values, which are few.
    pub(crate) values: Option<Box<WrittenValues<'a>>>,
}

#[derive(Clone, Copy, Debug)]
struct Lent<'a> {
    /// Number of scratch octets before it.
    after: usize,
    octets: &'a [u8],
    /// Whether it consists of primitives of at most four octets.
    is_divisible: bool,
}

impl<'a> Encoder<'a> {
    /// An encoder with a new scratch block.
    #[must_use]
    pub fn new(wire: Wire) -> Self {
        Self::reusing(Vec::new(), wire)
    }

    /// An encoder that writes into a scratch block from an earlier one; see [`Encoder::into_scratch`].
    #[inline]
    #[must_use]
    pub fn reusing(scratch: Vec<u8>, wire: Wire) -> Self {
        Self { scratch, at: 0, lent: SmallVec::new(), lent_octets: 0, origin: 0, wire, is_coded: false, values: None }
    }

    /// An encoder that continues after the first `len` octets of an earlier block: they count as written.
    ///
    /// # Panics
    /// If the block is shorter.
    #[must_use]
    pub fn continuing(scratch: Vec<u8>, len: usize, wire: Wire) -> Self {
        assert!(len <= scratch.len(), "the block has at least `len` octets");
        Self { at: len, ..Self::reusing(scratch, wire) }
    }

    /// A block with all octets in a row, lent ones included, and their number.
    #[must_use]
    pub fn into_whole(self) -> (Vec<u8>, usize) {
        let len = self.position();
        if self.lent.is_empty() {
            return (self.scratch, len);
        }
        let Self { mut scratch, mut at, mut lent, .. } = self;
        scratch.resize(scratch.len().max(len), 0);
        // From the end on, so that each part is moved once.
        let mut end = len;
        while let Some(last) = lent.pop() {
            let tail = at - last.after;
            scratch.copy_within(last.after..at, end - tail);
            end -= tail + last.octets.len();
            scratch[end..end + last.octets.len()].copy_from_slice(last.octets);
            at = last.after;
        }
        (scratch, len)
    }

    /// The scratch block, for the next encoder.
    #[inline]
    #[must_use]
    pub fn into_scratch(self) -> Vec<u8> {
        self.scratch
    }

    /// The byte order, version, limits and code sets in force.
    #[inline]
    #[must_use]
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Whether some octets would differ in other code sets: those of wide text, or of narrow text beyond
    /// ASCII.
    #[must_use]
    pub fn depends_on_code_sets(&self) -> bool {
        self.is_coded
    }

    /// Records that some octets depend on the code sets.
    pub fn record_code_sets(&mut self) {
        self.is_coded = true;
    }

    /// Octets written and lent so far.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.at + self.lent_octets
    }

    /// The octets so far, in order, for a gathering write.
    #[must_use]
    pub fn parts(&self) -> SmallVec<[IoSlice<'_>; 8]> {
        self.slices().map(IoSlice::new).collect()
    }

    /// The octets so far, in order, as slices.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        let lent = self.lent.iter().flat_map(move |lent| {
            let written = &self.scratch[from..lent.after];
            from = lent.after;
            [written, lent.octets]
        });
        let last = self.lent.last().map_or(0, |lent| lent.after);
        lent.chain([&self.scratch[last..self.at]]).filter(|slice| !slice.is_empty())
    }

    /// All octets as one slice, if none are lent.
    #[inline]
    #[must_use]
    pub fn contiguous(&self) -> Option<&[u8]> {
        self.lent.is_empty().then(|| &self.scratch[..self.at])
    }

    /// A copy of all octets.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.position());
        self.slices().for_each(|slice| octets.extend_from_slice(slice));
        octets
    }

    /// Removes all octets from `position` on. None of them may be lent.
    ///
    /// # Panics
    /// If `position` is beyond the end, or before a lent slice.
    pub fn truncate(&mut self, position: usize) {
        self.remove_from(position);
        if let Some(values) = &mut self.values {
            values.truncate(position);
        }
    }

    /// [`Encoder::truncate`], for octets outside values.
    pub(crate) fn remove_from(&mut self, position: usize) {
        let removed = self.position().checked_sub(position).expect("a position that was reached");
        self.at = self.at.checked_sub(removed).expect("only scratch octets can be removed");
        assert!(self.lent.last().is_none_or(|lent| lent.after <= self.at), "a lent slice cannot be removed");
    }

    /// Octets between here and the next multiple of `alignment` (a power of two) from the origin.
    #[inline]
    #[must_use]
    pub fn gap(&self, alignment: usize) -> usize {
        self.origin.wrapping_sub(self.position()) & (alignment - 1)
    }

    /// The position that alignment counts, modulo 8.
    #[must_use]
    pub fn misalignment(&self) -> u8 {
        u8::try_from(self.gap(8).wrapping_neg() & 7).expect("less than eight")
    }

    /// Writes zeros up to the next multiple of `alignment` (a power of two, at most 8).
    #[inline]
    pub fn align(&mut self, alignment: usize) {
        let gap = self.gap(alignment);
        if self.scratch.len() - self.at < 8 {
            self.grow(8);
        }
        // One store of constant size instead of a call for a few octets.
        self.scratch[self.at..self.at + 8].fill(0);
        self.at += gap;
    }

    /// A slice of `len` octets, to be filled by the caller; its content is unspecified.
    #[inline]
    pub fn room(&mut self, len: usize) -> &mut [u8] {
        if self.scratch.len() - self.at < len {
            self.grow(len);
        }
        let from = self.at;
        self.at += len;
        &mut self.scratch[from..from + len]
    }

    /// The next octets, at least `len`, of unspecified content; [`Encoder::advance`] counts those that were
    /// written.
    #[inline]
    pub(crate) fn window(&mut self, len: usize) -> &mut [u8] {
        if self.scratch.len() - self.at < len {
            self.grow(len);
        }
        &mut self.scratch[self.at..]
    }

    /// Counts octets that were written to the [window](Encoder::window).
    #[inline]
    pub(crate) fn advance(&mut self, len: usize) {
        self.at += len;
        debug_assert!(self.at <= self.scratch.len());
    }

    /// Copies octets as they are, without alignment or length.
    #[inline]
    pub fn octets(&mut self, octets: &[u8]) {
        self.room(octets.len()).copy_from_slice(octets);
    }

    /// Writes raw octets: long ones are borrowed until the message is sent.
    #[inline]
    pub fn lend(&mut self, octets: &'a [u8]) {
        self.lend_as(octets, false);
    }

    /// [`Encoder::lend`], for characters, octets, or aligned numbers of at most four octets. A message may be
    /// divided between them, every four octets, where alignment restarts (GIOP 1.1 fragments).
    #[inline]
    pub fn lend_divisible(&mut self, octets: &'a [u8]) {
        self.lend_as(octets, true);
    }

    #[inline]
    fn lend_as(&mut self, octets: &'a [u8], is_divisible: bool) {
        if octets.len() < LEND_OCTETS {
            self.octets(octets);
        } else {
            self.lent.push(Lent { after: self.at, octets, is_divisible });
            self.lent_octets += octets.len();
        }
    }

    /// The ranges of octets lent by [`Encoder::lend_divisible`], in order.
    pub fn divisible_runs(&self) -> impl Iterator<Item = Range<usize>> {
        let mut before = 0;
        self.lent.iter().filter_map(move |lent| {
            let from = lent.after + before;
            before += lent.octets.len();
            lent.is_divisible.then_some(from..from + lent.octets.len())
        })
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let len = (self.at + more).max(self.scratch.len() * 2).max(256);
        self.scratch.resize(len, 0);
    }

    /// Writes one primitive after its alignment; `N` is a power of two up to 8.
    #[inline]
    fn put<const N: usize>(&mut self, native: [u8; N], swapped: [u8; N]) {
        let gap = self.gap(N);
        if self.scratch.len() - self.at < WINDOW {
            self.grow(WINDOW);
        }
        let window: &mut [u8; WINDOW] = self.scratch[self.at..].first_chunk_mut().expect("the window was made above");
        // A fixed-size clear costs one store; a loop over the gap would cost a branch per octet.
        window[..8].fill(0);
        let octets = if self.wire.order.is_swapped() { swapped } else { native };
        window[gap..gap + N].copy_from_slice(&octets);
        self.at += gap + N;
    }

    /// Writes an IDL `octet`.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.room(1)[0] = value;
    }

    /// Writes an IDL `boolean`.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Writes an IDL `short`.
    #[inline]
    pub fn i16(&mut self, value: i16) {
        self.put(value.to_ne_bytes(), value.swap_bytes().to_ne_bytes());
    }

    /// Writes an IDL `unsigned short`.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.put(value.to_ne_bytes(), value.swap_bytes().to_ne_bytes());
    }

    /// Writes an IDL `long`.
    #[inline]
    pub fn i32(&mut self, value: i32) {
        self.put(value.to_ne_bytes(), value.swap_bytes().to_ne_bytes());
    }

    /// Writes an IDL `unsigned long`.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.put(value.to_ne_bytes(), value.swap_bytes().to_ne_bytes());
    }

    /// Writes an IDL `long long`.
    #[inline]
    pub fn i64(&mut self, value: i64) {
        self.put(value.to_ne_bytes(), value.swap_bytes().to_ne_bytes());
    }

    /// Writes an IDL `unsigned long long`.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.put(value.to_ne_bytes(), value.swap_bytes().to_ne_bytes());
    }

    /// Writes an IDL `float`.
    #[inline]
    pub fn f32(&mut self, value: f32) {
        self.u32(value.to_bits());
    }

    /// Writes an IDL `double`.
    #[inline]
    pub fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    /// Writes the length of a sequence, or of a string with its NUL.
    ///
    /// # Errors
    /// [`CdrError::TooLong`] if an `unsigned long` cannot hold it.
    #[inline]
    pub fn len(&mut self, len: usize) -> Result<(), CdrError> {
        self.u32(u32::try_from(len).map_err(|_| CdrError::TooLong { len })?);
        Ok(())
    }

    /// Writes a `sequence<octet>` from octets that need not outlive the encoder.
    ///
    /// # Errors
    /// [`CdrError::TooLong`].
    #[inline]
    pub fn octet_sequence(&mut self, octets: &[u8]) -> Result<(), CdrError> {
        self.len(octets.len())?;
        self.octets(octets);
        Ok(())
    }

    /// Leaves a placeholder for an `unsigned long` that [`Encoder::fill`] writes later.
    #[inline]
    pub fn placeholder(&mut self) -> Placeholder {
        self.u32(0);
        Placeholder(self.at - 4)
    }

    /// The placeholder of an `unsigned long` that is already written at `position`, for a later overwrite.
    ///
    /// # Panics
    /// If no such number is written there, or a slice has been lent before it.
    #[inline]
    pub fn placeholder_at(&self, position: usize) -> Placeholder {
        let end = position + 4;
        assert!(
            end <= self.at && self.lent.first().is_none_or(|lent| lent.after >= end),
            "four scratch octets are written there"
        );
        Placeholder(position)
    }

    /// Writes `value` into `placeholder`.
    #[inline]
    pub fn fill(&mut self, placeholder: Placeholder, value: u32) {
        let octets = match self.wire.order {
            ByteOrder::Big => value.to_be_bytes(),
            ByteOrder::Little => value.to_le_bytes(),
        };
        self.scratch[placeholder.0..placeholder.0 + 4].copy_from_slice(&octets);
    }

    /// Writes an encapsulation: its length, its byte order, and what `write` adds, aligned from its own start
    /// (9.3.3).
    ///
    /// # Errors
    /// The errors of `write`; [`CdrError::TooLong`].
    pub fn encapsulation(&mut self, write: impl FnOnce(&mut Self) -> Result<(), CdrError>) -> Result<(), CdrError> {
        let placeholder = self.placeholder();
        let start = self.position();
        let outer = std::mem::replace(&mut self.origin, start);
        // Indirections do not leave an encapsulation, and chunks do not extend into it.
        let values = self.values.take();
        self.u8(self.wire.order.flag());
        let written = write(self);
        self.origin = outer;
        self.values = values;
        written?;
        let len = self.position() - start;
        self.fill(placeholder, u32::try_from(len).map_err(|_| CdrError::TooLong { len })?);
        Ok(())
    }
}
