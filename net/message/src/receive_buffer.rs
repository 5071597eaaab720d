//! The buffer into which a reader receives.

use spandrel_sync::Arc;

use crate::block::Block;
use crate::{ALIGNMENT, MessageBlock};

/// The number of times the buffer may become empty without a large message before it gives up its large
/// blocks.
const MAX_QUIET_EMPTIES: u32 = 16;

/// Blocks above this size (and above the normal capacity) serve one message and are then freed at once.
const MAX_REUSED_OCTETS: usize = 1 << 20;

/// Octets received but not yet taken as messages, and room for more.
///
/// The unread octets lie together in one block of memory. Messages taken from it share that block. The buffer
/// reads into it again once they are dropped; until then it uses another one, and moves only the unread
/// octets. A connection that handles one message after the other therefore uses one block for ever. A
/// connection that keeps a message while it reads the next alternates between two.
///
/// The reader's loop, for messages with their length in a header:
///
/// ```
/// # use spandrel_message::ReceiveBuffer;
/// # let input = b"\x05hello\x05world";
/// # let mut recv = { let mut at = 0; move |room: &mut [u8]| { let n = room.len().min(4).min(input.len() - at);
/// #     room[..n].copy_from_slice(&input[at..at + n]); at += n; n } };
/// let mut buffer = ReceiveBuffer::new(4096);
/// let mut messages = Vec::new();
/// loop {
///     while buffer.filled().is_empty() || buffer.filled().len() < 1 + usize::from(buffer.filled()[0]) {
///         if let Some(&length) = buffer.filled().first() {
///             buffer.reserve_message(1 + usize::from(length));
///         }
///         let n = recv(buffer.spare(1));
///         if n == 0 {
///             assert_eq!(messages.len(), 2);
///             return;
///         }
///         buffer.commit(n);
///     }
///     let length = usize::from(buffer.filled()[0]);
///     messages.push(buffer.take(1 + length));
/// }
/// ```
#[derive(Debug)]
pub struct ReceiveBuffer {
    block: Arc<Block>,
    /// The unread octets are `block[start..end]`.
    start: usize,
    end: usize,
    /// A block used before, perhaps still shared with messages.
    spare_block: Option<Arc<Block>>,
    /// The capacity while messages are small.
    normal: usize,
    /// The present capacity, at most `MAX_REUSED_OCTETS` unless `normal` is more.
    working: usize,
    /// The number of times the buffer became empty since a message larger than `normal`.
    empties: u32,
}

impl ReceiveBuffer {
    /// An empty buffer that works in blocks of `capacity` octets, or more while messages are larger. It
    /// allocates at the first read, so a silent peer costs no memory.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let normal = capacity.max(1).next_multiple_of(ALIGNMENT);
        Self { block: Block::empty(), start: 0, end: 0, spare_block: None, normal, working: normal, empties: 0 }
    }

    /// The octets received and not yet taken.
    #[inline]
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        &self.block.octets()[self.start..self.end]
    }

    /// Room to receive into, directly behind the filled octets: at least `min` octets (at least one), up to
    /// the end of the block. [`commit`](Self::commit) reports the number of octets filled.
    ///
    /// The room holds octets of earlier messages, not zeros. May move the unread octets.
    ///
    /// # Panics
    /// Panics if the memory for `min` more octets cannot be allocated.
    #[inline]
    pub fn spare(&mut self, min: usize) -> &mut [u8] {
        let min = min.max(1);
        let unique = Block::is_unique(&self.block);
        let large = self.block.capacity() > self.normal;
        if self.start == self.end && unique && !large {
            (self.start, self.end) = (0, 0);
        }
        if !unique || large || self.block.capacity() - self.end < min {
            self.make_room(min, unique);
        }
        &mut Block::octets_mut(&mut self.block)[self.end..]
    }

    /// Marks the first `n` octets of the room as filled.
    ///
    /// # Panics
    /// Panics if the room had fewer.
    #[inline]
    pub fn commit(&mut self, n: usize) {
        let room = self.block.capacity() - self.end;
        assert!(n <= room, "commit of {n} octets into room for {room}");
        self.end += n;
    }

    /// Takes the next `n` filled octets, without copying them.
    ///
    /// While the returned block lives, it keeps its whole block of memory, and the buffer must read into
    /// another one. A short message that outlives the next read is better copied
    /// (`MessageBlock::from(&buffer.filled()[..n])`) and [consumed](Self::consume).
    ///
    /// # Panics
    /// Panics if fewer are filled.
    #[inline]
    #[must_use = "use `consume` to drop octets"]
    pub fn take(&mut self, n: usize) -> MessageBlock {
        let start = self.start;
        self.consume(n);
        MessageBlock::range(Arc::clone(&self.block), start, self.start)
    }

    /// Drops the next `n` filled octets, for example those of a message that was read in place.
    ///
    /// # Panics
    /// Panics if fewer are filled.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        let filled = self.end - self.start;
        assert!(n <= filled, "{n} octets taken of {filled} filled");
        self.start += n;
        if n > self.normal {
            self.empties = 0;
        }
    }

    /// Prepares for a message of `total` octets that begins with the octets filled now: it will be contiguous
    /// and start at a multiple of [`ALIGNMENT`](crate::ALIGNMENT).
    ///
    /// Moves the filled octets if they are not aligned or the rest would not fit, so it pays for messages
    /// from about 1 KiB. The caller has checked `total` against a limit. The memory is allocated at once, but
    /// the system provides its pages as they are filled.
    ///
    /// # Panics
    /// Panics if the memory for `total` octets cannot be allocated.
    pub fn reserve_message(&mut self, total: usize) {
        if total > self.normal {
            self.working = self.working.max(total.min(MAX_REUSED_OCTETS).next_multiple_of(ALIGNMENT));
            self.empties = 0;
        }
        let filled = self.end - self.start;
        let unique = Block::is_unique(&self.block);
        if filled == 0 && unique {
            (self.start, self.end) = (0, 0);
        }
        let aligned = self.start.is_multiple_of(ALIGNMENT);
        let complete = total <= filled;
        if aligned && (complete || unique && total <= self.block.capacity() - self.start) {
            return;
        }
        self.move_to_start(total.max(filled), unique);
    }

    /// Takes the memory of an idle buffer, for [use](Self::use_memory) by another: of many connections, only
    /// the busy ones need any. `None` if octets are unread or a message still refers to it. The buffer
    /// allocates again when needed.
    pub fn take_memory(&mut self) -> Option<Memory> {
        if self.start != self.end { None } else { self.take_memory_discarding() }
    }

    /// Like [`take_memory`](Self::take_memory), with up to `most` octets unread: they move to memory of just
    /// their size, until the buffer is given more.
    pub fn take_memory_compacting(&mut self, most: usize) -> Option<Memory> {
        let unread = self.end - self.start;
        if unread == 0 || unread > most || self.block.capacity() != self.normal || !Block::is_unique(&self.block) {
            return self.take_memory();
        }
        let small = Block::copied(0, self.filled());
        (self.start, self.end) = (0, unread);
        self.spare_block = None;
        Some(Memory(std::mem::replace(&mut self.block, small)))
    }

    /// Discards the unread octets and takes the memory of a buffer that is not read any more. `None` if a
    /// message still refers to it.
    pub fn take_memory_discarding(&mut self) -> Option<Memory> {
        if !Block::is_unique(&self.block) || self.block.capacity() != self.normal {
            return None;
        }
        (self.start, self.end) = (0, 0);
        self.spare_block = None;
        Some(Memory(std::mem::replace(&mut self.block, Block::empty())))
    }

    /// Uses this memory from now on, unless the buffer has as much of its own; returns the memory that is
    /// left over.
    pub fn use_memory(&mut self, memory: Memory) -> Option<Memory> {
        if self.block.capacity() >= self.normal || memory.0.capacity() != self.normal {
            return Some(memory);
        }
        let mut block = memory.0;
        let unread = self.end - self.start;
        if unread != 0 {
            Block::octets_mut(&mut block)[..unread].copy_from_slice(self.filled());
        }
        (self.start, self.end) = (0, unread);
        self.block = block;
        None
    }

    /// The number of octets that the buffer can hold without another block.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.block.capacity()
    }

    /// The slow path of `spare`: moves the unread octets, or returns from a large block to a smaller one.
    fn make_room(&mut self, min: usize, unique: bool) {
        let emptied = self.start == self.end && self.end != 0; // false between `reserve_message` and the first octet
        if emptied && self.block.capacity() > self.normal {
            self.count_empty();
        }
        let too_large = emptied && self.block.capacity() > self.working.max(min);
        if emptied && unique && !too_large {
            (self.start, self.end) = (0, 0);
        }
        if !unique || too_large || self.block.capacity() - self.end < min {
            let filled = self.end - self.start;
            let needed = filled.checked_add(min).expect("the length fits into memory");
            self.move_to_start(needed, unique && !too_large);
        }
    }

    /// Counts that a large block became empty, and returns to normal blocks at the limit.
    fn count_empty(&mut self) {
        self.empties += 1;
        if self.empties > MAX_QUIET_EMPTIES {
            self.working = self.normal;
            self.spare_block.take_if(|spare_block| spare_block.capacity() > self.normal);
        }
    }

    /// Moves the unread octets to the start of a block for `needed` octets: this one if `may_reuse` allows
    /// and it is large enough, otherwise the kept one or a new one.
    fn move_to_start(&mut self, needed: usize, may_reuse: bool) {
        let (start, end) = (self.start, self.end);
        (self.start, self.end) = (0, end - start);
        if may_reuse && self.block.capacity() >= needed {
            Block::octets_mut(&mut self.block).copy_within(start..end, 0);
            return;
        }
        let mut block = self.obtain(needed.max(self.working));
        Block::octets_mut(&mut block)[..end - start].copy_from_slice(&self.block.octets()[start..end]);
        let before = std::mem::replace(&mut self.block, block);
        self.retain_spare(before);
    }

    /// The kept block, if it is unique and large enough, otherwise a new one.
    fn obtain(&mut self, capacity: usize) -> Arc<Block> {
        let usable = |spare_block: &mut Arc<Block>| spare_block.capacity() >= capacity && Block::is_unique(spare_block);
        self.spare_block.take_if(usable).unwrap_or_else(|| Block::new(capacity))
    }

    /// Keeps a block for later, unless the kept one is better suited.
    fn retain_spare(&mut self, block: Arc<Block>) {
        if block.capacity() > self.working {
            return;
        }
        let better =
            |spare_block: &mut Arc<Block>| spare_block.capacity() > block.capacity() && Block::is_unique(spare_block);
        if !self.spare_block.as_mut().is_some_and(better) {
            self.spare_block = Some(block);
        }
    }
}

/// Memory of a [`ReceiveBuffer`] that is idle.
#[derive(Debug)]
pub struct Memory(Arc<Block>);

#[cfg(test)]
mod tests;
