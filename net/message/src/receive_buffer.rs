//! Where a reader places what it receives.

use spandrel_sync::Arc;

use crate::block::Block;
use crate::{ALIGNMENT, MessageBlock};

/// How often the buffer may be found empty without a large message before it gives up its large blocks.
const QUIET_LIMIT: u32 = 16;

/// Blocks above this size (and above the normal capacity) serve one message and are then given back at once.
const LARGEST_KEPT: usize = 1 << 20;

/// Octets received but not yet taken as messages, and room for more.
///
/// The unread octets lie together in one block of memory. Messages taken from it share that block; the buffer reads
/// into it again as soon as they are gone, and meanwhile goes on in another one, moving only what is still unread.
/// So a connection that handles one message after the other uses one block for ever, and one whose messages live
/// while the next is read uses two in turn.
///
/// The reader's loop, for messages that tell their length in a header:
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
    /// A block that was in use before, perhaps still shared with messages.
    kept: Option<Arc<Block>>,
    /// The capacity to work with while messages are small.
    normal: usize,
    /// The capacity to work with now, at most `LARGEST_KEPT` unless `normal` is more.
    working: usize,
    /// How often the buffer was found empty since a message larger than `normal`.
    quiet: u32,
}

impl ReceiveBuffer {
    /// An empty buffer that works in blocks of `capacity` octets, or more while messages are larger. It has none until it is first
    /// read into, so that a peer that says nothing costs nothing.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let normal = capacity.max(1).next_multiple_of(ALIGNMENT);
        Self { block: Block::none(), start: 0, end: 0, kept: None, normal, working: normal, quiet: 0 }
    }

    /// The octets received and not yet taken.
    #[inline]
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        &self.block.octets()[self.start..self.end]
    }

    /// Room to receive into, directly behind the filled octets: at least `min` octets (at least one), and all that the
    /// block has. [`commit`](Self::commit) tells how much of it was used.
    ///
    /// The room holds left-over octets, not zeros. May move the unread octets to make room.
    ///
    /// # Panics
    /// Panics if there is no memory for `min` more octets.
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
        &mut Block::unique(&mut self.block)[self.end..]
    }

    /// Says that the first `n` octets of the room were filled.
    ///
    /// # Panics
    /// Panics if the room had fewer.
    #[inline]
    pub fn commit(&mut self, n: usize) {
        let room = self.block.capacity() - self.end;
        assert!(n <= room, "commit of {n} octets where there was room for {room}");
        self.end += n;
    }

    /// Takes the next `n` filled octets, without copying them.
    ///
    /// While what was taken lives, it keeps its whole block in memory and the buffer must read into another one. A short
    /// message that is to outlive the next read is better copied (`MessageBlock::from(&buffer.filled()[..n])`) and
    /// [consumed](Self::consume).
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

    /// Drops the next `n` filled octets, such as those of a message that was read where it lay.
    ///
    /// # Panics
    /// Panics if fewer are filled.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        let filled = self.end - self.start;
        assert!(n <= filled, "{n} octets taken where {filled} were filled");
        self.start += n;
        if n > self.normal {
            self.quiet = 0;
        }
    }

    /// Prepares for a message of `total` octets, the first of which are those filled now: it will lie in one piece,
    /// starting at a multiple of [`ALIGNMENT`](crate::ALIGNMENT).
    ///
    /// Costs a move of what is filled if that is not aligned or the rest would not fit; so it pays for messages whose
    /// length outweighs that, from about 1 KiB. The caller has checked `total` against a limit. Memory of that size is
    /// asked for at once, but the system provides it as it is filled.
    ///
    /// # Panics
    /// Panics if there is no memory for `total` octets.
    pub fn reserve_message(&mut self, total: usize) {
        if total > self.normal {
            self.working = self.working.max(total.min(LARGEST_KEPT).next_multiple_of(ALIGNMENT));
            self.quiet = 0;
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

    /// Takes the memory of an idle buffer, for another to [use](Self::use_memory): of many connections, most of them idle, only
    /// those at work need any. `None` if something is unread or a message still lives. The buffer asks for memory again when it
    /// needs some.
    pub fn take_memory(&mut self) -> Option<Memory> {
        if self.start != self.end { None } else { self.give_up_memory() }
    }

    /// The same where `most` octets are unread at most: these are moved to memory of just their size, until the buffer is given more to
    /// work in.
    pub fn set_aside(&mut self, most: usize) -> Option<Memory> {
        let unread = self.end - self.start;
        if unread == 0 || unread > most || self.block.capacity() != self.normal || !Block::is_unique(&self.block) {
            return self.take_memory();
        }
        let small = Block::copied(0, self.filled());
        (self.start, self.end) = (0, unread);
        self.kept = None;
        Some(Memory(std::mem::replace(&mut self.block, small)))
    }

    /// Takes the memory of a buffer from which nothing will be read any more, whatever is in it. `None` if a message still lives.
    pub fn give_up_memory(&mut self) -> Option<Memory> {
        if !Block::is_unique(&self.block) || self.block.capacity() != self.normal {
            return None;
        }
        (self.start, self.end) = (0, 0);
        self.kept = None;
        Some(Memory(std::mem::replace(&mut self.block, Block::none())))
    }

    /// Works in this memory from now on, unless the buffer has as much of its own.
    pub fn use_memory(&mut self, memory: Memory) -> Option<Memory> {
        if self.block.capacity() >= self.normal || memory.0.capacity() != self.normal {
            return Some(memory);
        }
        let mut block = memory.0;
        let unread = self.end - self.start;
        if unread != 0 {
            Block::unique(&mut block)[..unread].copy_from_slice(self.filled());
        }
        (self.start, self.end) = (0, unread);
        self.block = block;
        None
    }

    /// How many octets the buffer can hold now without another block.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.block.capacity()
    }

    /// The rarer part of `spare`: moves the unread octets, or goes from a large block back to a smaller one.
    fn make_room(&mut self, min: usize, unique: bool) {
        let emptied = self.start == self.end && self.end != 0; // not so between `reserve_message` and the first octet
        if emptied && self.block.capacity() > self.normal {
            self.quieten();
        }
        let too_large = emptied && self.block.capacity() > self.working.max(min);
        if emptied && unique && !too_large {
            (self.start, self.end) = (0, 0);
        }
        if !unique || too_large || self.block.capacity() - self.end < min {
            let filled = self.end - self.start;
            let needed = filled.checked_add(min).expect("what is received fits into memory");
            self.move_to_start(needed, unique && !too_large);
        }
    }

    /// Counts that a large block was emptied, and gives up working with large blocks when that was often enough.
    fn quieten(&mut self) {
        self.quiet += 1;
        if self.quiet > QUIET_LIMIT {
            self.working = self.normal;
            self.kept.take_if(|kept| kept.capacity() > self.normal);
        }
    }

    /// Moves the unread octets to the start of a block for `needed` octets: this one if `stay` allows and it is large
    /// enough, otherwise the one kept or a new one.
    fn move_to_start(&mut self, needed: usize, stay: bool) {
        let (start, end) = (self.start, self.end);
        (self.start, self.end) = (0, end - start);
        if stay && self.block.capacity() >= needed {
            Block::unique(&mut self.block).copy_within(start..end, 0);
            return;
        }
        let mut block = self.obtain(needed.max(self.working));
        Block::unique(&mut block)[..end - start].copy_from_slice(&self.block.octets()[start..end]);
        let before = std::mem::replace(&mut self.block, block);
        self.keep(before);
    }

    /// The block kept, if it is free and large enough, or else a new one.
    fn obtain(&mut self, capacity: usize) -> Arc<Block> {
        let usable = |kept: &mut Arc<Block>| kept.capacity() >= capacity && Block::is_unique(kept);
        self.kept.take_if(usable).unwrap_or_else(|| Block::new(capacity))
    }

    /// Keeps a block for later, unless the one kept already serves better.
    fn keep(&mut self, block: Arc<Block>) {
        if block.capacity() > self.working {
            return;
        }
        let better = |kept: &mut Arc<Block>| kept.capacity() > block.capacity() && Block::is_unique(kept);
        if !self.kept.as_mut().is_some_and(better) {
            self.kept = Some(block);
        }
    }
}

/// Memory of a [`ReceiveBuffer`] that is idle.
#[derive(Debug)]
pub struct Memory(Arc<Block>);

#[cfg(test)]
mod tests;
