//! The buffer into which a reader receives.

use crate::account::{BlockCharge, SharedAccount};
use crate::block::Block;
use crate::{ALIGNMENT, MessageBlock};

/// Octets received but not yet taken as messages, and room for more.
///
/// The unread octets lie together in one block of memory. Messages taken from it share that block. The buffer
/// reads into it again once they are dropped; until then it uses another one, and moves only the unread
/// octets. A connection that handles one message after the other therefore uses one block for ever. A
/// connection that keeps a message while it reads the next alternates between two.
///
/// A message longer than the normal capacity gets a block of its own, which is charged to the buffer's
/// [account](crate::MemoryAccount) and belongs to the message alone once it has been taken. An idle buffer therefore has
/// a normal block at most.
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
///             assert!(buffer.reserve_message(1 + usize::from(length)), "there is no limit");
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
    block: Block,
    /// The unread octets are `block[start..end]`.
    start: usize,
    end: usize,
    /// A normal block used before, perhaps still shared with messages.
    spare_block: Option<Block>,
    /// The octets of a normal block.
    normal: usize,
    /// The account of larger blocks.
    account: Option<SharedAccount>,
}

impl ReceiveBuffer {
    /// An empty buffer that works in blocks of `capacity` octets. It allocates at the first read, so a silent
    /// peer costs no memory.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let normal = capacity.max(1).next_multiple_of(ALIGNMENT);
        Self { block: Block::empty(), start: 0, end: 0, spare_block: None, normal, account: None }
    }

    /// Charges the blocks of messages longer than the normal capacity to an account.
    #[must_use]
    pub fn with_account(self, account: SharedAccount) -> Self {
        Self { account: Some(account), ..self }
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
    /// The room holds octets of earlier messages, not zeros. May move the unread octets. A larger block for them
    /// and `min` more is charged even beyond the limit of the account;
    /// [`reserve_message`](Self::reserve_message) observes it.
    ///
    /// # Panics
    /// Panics if the memory for `min` more octets cannot be allocated.
    #[inline]
    pub fn spare(&mut self, min: usize) -> &mut [u8] {
        let min = min.max(1);
        let unique = self.block.is_unique();
        if self.start == self.end && unique {
            (self.start, self.end) = (0, 0);
        }
        if !unique || self.block.capacity() - self.end < min {
            self.make_room(min, unique);
        }
        &mut self.block.octets_mut()[self.end..]
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
        self.advance(n);
        let message = MessageBlock::range(self.block.clone(), start, self.start);
        self.release_if_empty();
        message
    }

    /// Drops the next `n` filled octets, for example those of a message that was read in place.
    ///
    /// # Panics
    /// Panics if fewer are filled.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        self.advance(n);
        self.release_if_empty();
    }

    #[inline]
    fn advance(&mut self, n: usize) {
        let filled = self.end - self.start;
        assert!(n <= filled, "{n} octets taken of {filled} filled");
        self.start += n;
    }

    /// Leaves a large block without unread octets to the messages that were taken from it.
    #[inline]
    fn release_if_empty(&mut self) {
        if self.block.capacity() > self.normal && self.start == self.end {
            self.release_block();
        }
    }

    #[cold]
    fn release_block(&mut self) {
        (self.start, self.end) = (0, 0);
        self.block = Block::empty();
    }

    /// Prepares for a message of `total` octets that begins with the octets filled now: it will be contiguous
    /// and start at a multiple of [`ALIGNMENT`](crate::ALIGNMENT).
    ///
    /// Moves the filled octets if they are not aligned or the rest would not fit, so it pays for messages
    /// from about 1 KiB. The caller has checked `total` against a limit. The memory is allocated at once, but
    /// the system provides its pages as they are filled.
    ///
    /// Returns false, and changes nothing, if the account refuses a larger block.
    ///
    /// # Panics
    /// Panics if the memory for `total` octets cannot be allocated.
    #[must_use = "false means that the account has no room"]
    pub fn reserve_message(&mut self, total: usize) -> bool {
        let filled = self.end - self.start;
        let unique = self.block.is_unique();
        if filled == 0 && unique {
            (self.start, self.end) = (0, 0);
        }
        let aligned = self.start.is_multiple_of(ALIGNMENT);
        let complete = total <= filled;
        if aligned && (complete || unique && total <= self.block.capacity() - self.start) {
            return true;
        }
        self.move_to_start(total.max(filled), unique, BlockCharge::within_limit)
    }

    /// Gives back what is reserved for a long message of which nothing has arrived.
    pub fn release_reserved(&mut self) {
        self.release_if_empty();
    }

    /// Takes the memory of an idle buffer, for [use](Self::use_memory) by another: of many connections, only
    /// the busy ones need any. `None` if octets are unread, or if the memory is not normal or belongs to messages
    /// now. The buffer allocates again when needed.
    pub fn take_memory(&mut self) -> Option<Memory> {
        if self.start != self.end { None } else { self.take_memory_discarding() }
    }

    /// Like [`take_memory`](Self::take_memory), with up to `most` octets unread: they move to memory of just
    /// their size, until the buffer is given more.
    pub fn take_memory_compacting(&mut self, most: usize) -> Option<Memory> {
        self.spare_block = None;
        let unread = self.end - self.start;
        if unread == 0 || unread > most || self.block.capacity() <= most {
            return self.take_memory();
        }
        let small = Block::copied(0, self.filled());
        (self.start, self.end) = (0, unread);
        self.memory_of(small)
    }

    /// Discards the unread octets and takes the memory of a buffer that is not read any more. `None` if it is
    /// not normal or belongs to messages now.
    pub fn take_memory_discarding(&mut self) -> Option<Memory> {
        self.spare_block = None;
        (self.start, self.end) = (0, 0);
        self.memory_of(Block::empty())
    }

    /// Replaces the block, and returns the former one if it may be used by another buffer.
    fn memory_of(&mut self, next: Block) -> Option<Memory> {
        let before = std::mem::replace(&mut self.block, next);
        (before.capacity() == self.normal && before.is_unique()).then(|| Memory(before))
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
            block.octets_mut()[..unread].copy_from_slice(self.filled());
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

    /// The slow path of `spare`: moves the unread octets.
    #[cold]
    fn make_room(&mut self, min: usize, unique: bool) {
        let filled = self.end - self.start;
        let needed = filled.checked_add(min).expect("the length fits into memory");
        let always = |account: &_, octets| Some(BlockCharge::beyond_limit(account, octets));
        assert!(self.move_to_start(needed, unique, always), "a charge beyond the limit is not refused");
    }

    /// Moves the unread octets to the start of a block for `needed` octets: this one if it is `unique` and large
    /// enough, otherwise the kept one or a new one. Returns false if `charge` refuses a large one.
    fn move_to_start(&mut self, needed: usize, unique: bool, charge: Charging) -> bool {
        let (start, end) = (self.start, self.end);
        if unique && self.block.capacity() >= needed {
            self.block.octets_mut().copy_within(start..end, 0);
        } else {
            let Some(mut block) = self.obtain(needed, charge) else { return false };
            block.octets_mut()[..end - start].copy_from_slice(&self.block.octets()[start..end]);
            let before = std::mem::replace(&mut self.block, block);
            self.retain_spare(before);
        }
        (self.start, self.end) = (0, end - start);
        true
    }

    /// A block for `needed` octets: the kept one, if that is unique and large enough, otherwise a new one. `None`
    /// if `charge` refuses it.
    fn obtain(&mut self, needed: usize, charge: Charging) -> Option<Block> {
        if needed <= self.normal {
            let kept = self.spare_block.take_if(|spare_block| spare_block.is_unique());
            return Some(kept.unwrap_or_else(|| Block::for_input(self.normal, None)));
        }
        let octets = Block::input_size(needed);
        let Some(account) = &self.account else { return Some(Block::for_input(octets, None)) };
        // The block grows: what was charged for the smaller one counts towards the larger.
        let before = self.block.take_charge().map(|charge| charge.end());
        let granted = charge(account, octets);
        if let (None, Some(before)) = (&granted, before) {
            self.block.set_charge(BlockCharge::beyond_limit(account, before));
        }
        granted.map(|charge| Block::for_input(octets, Some(charge)))
    }

    /// Keeps a normal block for later, unless the kept one is better suited.
    fn retain_spare(&mut self, block: Block) {
        if block.capacity() == self.normal && !self.spare_block.as_mut().is_some_and(|kept| kept.is_unique()) {
            self.spare_block = Some(block);
        }
    }
}

/// How a block of that many octets is charged; `None` if the account refuses.
type Charging = fn(&SharedAccount, usize) -> Option<BlockCharge>;

/// Memory of a [`ReceiveBuffer`] that is idle.
#[derive(Debug)]
pub struct Memory(Block);

#[cfg(test)]
mod tests;
