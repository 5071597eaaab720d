//! A range of received octets.

use std::fmt;
use std::ops::{Bound, Deref, RangeBounds};

use bytes::Bytes;

use crate::account::{BlockCharge, SharedAccount};
use crate::block::Block;

/// A range of a shared, aligned block of memory, optionally followed by further ranges in a chain.
///
/// Cloning and splitting share the memory. The block dereferences to the octets of its own range;
/// [`next`](Self::next) and [`links`](Self::links) reach the rest of the chain. Two blocks are equal if their
/// chains hold the same octets, however they are split.
///
/// The memory starts at a multiple of [`ALIGNMENT`](crate::ALIGNMENT); the range starts anywhere in it.
///
/// ```
/// use spandrel_message::MessageBlock; // spandrel::net::message
///
/// let mut message = MessageBlock::with_headroom(8, b"headbody");
/// let head = message.split_to(4); // shares the memory
/// assert_eq!((&*head, &*message), (&b"head"[..], &b"body"[..]));
///
/// // A header in front of the octets, and a trailer behind them, without a copy of the body.
/// message.append(MessageBlock::with_headroom(0, b"trailer"));
/// message.prepend(b"size");
/// assert_eq!(message.total_len(), 4 + 4 + 7);
/// let links: Vec<&[u8]> = message.links().map(|block| &**block).collect();
/// assert_eq!(links.last(), Some(&&b"trailer"[..]));
/// ```
#[derive(Clone)]
pub struct MessageBlock {
    block: Block,
    start: usize,
    end: usize,
    next: Next,
}

/// The rest of a chain. Dropping and cloning iterate along the chain, so that a long chain does not overflow
/// the stack.
#[derive(Default)]
struct Next(Option<Box<MessageBlock>>);

/// The message blocks of a chain, in order. Made by [`MessageBlock::links`].
#[derive(Clone, Debug)]
pub struct Links<'a>(Option<&'a MessageBlock>);

/// The sizes of memory for copies that use it one after the other are multiples of this.
const REUSED_STEP: usize = 512;

impl MessageBlock {
    /// A copy of `data`, with `headroom` octets free before it for [`prepend`](Self::prepend).
    ///
    /// `data` is aligned if `headroom` is a multiple of [`ALIGNMENT`](crate::ALIGNMENT).
    #[must_use]
    pub fn with_headroom(headroom: usize, data: &[u8]) -> Self {
        Self::range(Block::copied(headroom, data), headroom, headroom + data.len())
    }

    /// A copy of `data` that is charged to an account, beyond its limit if need be.
    #[must_use]
    pub fn charged_copy(data: &[u8], account: &SharedAccount) -> Self {
        Self::range(Block::charged_copy(data, BlockCharge::beyond_limit(account, data.len())), 0, data.len())
    }

    /// A copy of `data` in the memory of `unused`, if that suffices and nothing else shares it. Otherwise the copy gets memory of
    /// its own, of a rounded size, so that it suffices for the next one.
    #[must_use]
    pub fn copied_into(unused: Option<Self>, data: &[u8]) -> Self {
        let suffices = |block: &Block| block.is_unique() && !block.is_charged() && block.capacity() >= data.len();
        let unused = unused.map(|Self { block, .. }| block);
        let mut block = unused.filter(suffices).unwrap_or_else(|| Block::new(data.len().next_multiple_of(REUSED_STEP)));
        block.octets_mut()[..data.len()].copy_from_slice(data);
        Self::range(block, 0, data.len())
    }

    /// Whether the memory is charged to an account.
    #[must_use]
    pub fn is_charged(&self) -> bool {
        self.block.is_charged()
    }

    /// Ends the charge of the memory before its last holder has dropped it, for example because something else is
    /// charged in its place from now on.
    #[inline]
    pub fn end_charge(&self) {
        self.block.end_charge();
    }

    /// `block[start..end]`, without a chain.
    #[inline]
    pub(crate) fn range(block: Block, start: usize, end: usize) -> Self {
        debug_assert!(start <= end && end <= block.capacity());
        Self { block, start, end, next: Next(None) }
    }

    /// This range alone, without the chain behind it.
    fn first(&self) -> Self {
        Self::range(self.block.clone(), self.start, self.end)
    }

    /// A part of this range, sharing its memory, without the chain behind it.
    ///
    /// # Panics
    /// Panics if `range` does not lie within this one.
    #[must_use]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let from = match range.start_bound() {
            Bound::Included(&n) => n,
            Bound::Excluded(&n) => n.checked_add(1).expect("a range starts within memory"),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(&n) => n.checked_add(1).expect("a range ends within memory"),
            Bound::Excluded(&n) => n,
            Bound::Unbounded => self.len(),
        };
        assert!(from <= to && to <= self.len(), "slice {from}..{to} of a message block of {} octets", self.len());
        Self::range(self.block.clone(), self.start + from, self.start + to)
    }

    /// Splits off and returns the first `n` octets of this range; the remainder keeps the chain.
    ///
    /// # Panics
    /// Panics if `n` is more than this range has.
    #[must_use = "use `advance` to drop octets"]
    pub fn split_to(&mut self, n: usize) -> Self {
        let head = self.slice(..n);
        self.start += n;
        head
    }

    /// Splits off and returns the octets after the first `n` octets of this range, with the chain.
    ///
    /// # Panics
    /// Panics if `n` is more than this range has.
    #[must_use]
    pub fn split_off(&mut self, n: usize) -> Self {
        let mut tail = self.slice(n..);
        tail.next = std::mem::take(&mut self.next);
        self.end = self.start + n;
        tail
    }

    /// Drops the first `n` octets of this range.
    ///
    /// # Panics
    /// Panics if `n` is more than this range has.
    pub fn advance(&mut self, n: usize) {
        assert!(n <= self.len(), "advance by {n} in a message block of {} octets", self.len());
        self.start += n;
    }

    /// The number of octets that [`prepend`](Self::prepend) can place before this range without copying it;
    /// zero while the memory is shared.
    #[must_use]
    pub fn headroom(&self) -> usize {
        if self.block.is_unique() { self.start } else { 0 }
    }

    /// Places `data` before this range: in its headroom if that suffices, otherwise by copying both to new
    /// memory.
    pub fn prepend(&mut self, data: &[u8]) {
        if data.len() > self.headroom() {
            let total = data.len().checked_add(self.len()).expect("the combined length fits into memory");
            let block = Block::copied(data.len(), self);
            *self = Self { block, start: data.len(), end: total, next: std::mem::take(&mut self.next) };
        }
        self.start -= data.len();
        self.block.octets_mut()[self.start..][..data.len()].copy_from_slice(data);
    }

    /// Adds `next`, with its own chain, at the end of this chain. Takes as many steps as this chain has
    /// links.
    pub fn append(&mut self, next: Self) {
        let mut end = &mut self.next;
        while let Some(ref mut block) = end.0 {
            end = &mut block.next;
        }
        end.0 = Some(Box::new(next));
    }

    /// The next block of the chain.
    #[must_use]
    pub fn next(&self) -> Option<&Self> {
        self.next.0.as_deref()
    }

    /// Removes and returns the rest of the chain.
    #[must_use]
    pub fn take_next(&mut self) -> Option<Self> {
        self.next.0.take().map(|next| *next)
    }

    /// The number of octets of the whole chain; `len()` is that of this range alone.
    #[must_use]
    pub fn total_len(&self) -> usize {
        self.links().map(|link| link.len()).sum()
    }

    /// This message block and the rest of its chain.
    #[must_use]
    pub fn links(&self) -> Links<'_> {
        Links(Some(self))
    }
}

impl Clone for Next {
    fn clone(&self) -> Self {
        let mut first = Self::default();
        let mut end = &mut first;
        let mut link = self.0.as_deref();
        while let Some(block) = link {
            end = &mut end.0.insert(Box::new(block.first())).next;
            link = block.next();
        }
        first
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        let mut link = self.0.take();
        while let Some(mut block) = link {
            link = block.next.0.take();
        }
    }
}

impl<'a> Iterator for Links<'a> {
    type Item = &'a MessageBlock;

    fn next(&mut self) -> Option<&'a MessageBlock> {
        let link = self.0?;
        self.0 = link.next();
        Some(link)
    }
}

impl Deref for MessageBlock {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.block.octets()[self.start..self.end]
    }
}

impl AsRef<[u8]> for MessageBlock {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Default for MessageBlock {
    fn default() -> Self {
        Self::from(&[])
    }
}

/// A copy whose first octet is aligned.
impl From<&[u8]> for MessageBlock {
    fn from(data: &[u8]) -> Self {
        Self::with_headroom(0, data)
    }
}

/// A copy whose first octet is aligned.
impl<const N: usize> From<&[u8; N]> for MessageBlock {
    fn from(data: &[u8; N]) -> Self {
        Self::with_headroom(0, data)
    }
}

/// A copy, since `Bytes` are not aligned.
impl From<Bytes> for MessageBlock {
    fn from(data: Bytes) -> Self {
        Self::with_headroom(0, &data)
    }
}

/// Shares the memory of a single block; the octets of a longer chain are copied into one.
impl From<MessageBlock> for Bytes {
    fn from(block: MessageBlock) -> Self {
        if block.next().is_none() {
            return Self::from_owner(block);
        }
        let mut octets = Vec::with_capacity(block.total_len());
        block.links().for_each(|link| octets.extend_from_slice(link));
        octets.into()
    }
}

impl PartialEq for MessageBlock {
    fn eq(&self, other: &Self) -> bool {
        if self.next().is_none() && other.next().is_none() {
            return **self == **other;
        }
        self.links().flat_map(|link| &**link).eq(other.links().flat_map(|link| &**link))
    }
}

impl Eq for MessageBlock {}

impl fmt::Debug for MessageBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageBlock")
            .field("len", &self.len())
            .field("total_len", &self.total_len())
            .field("links", &self.links().count())
            .finish()
    }
}
