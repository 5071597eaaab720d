//! The table of handlers: slots with generations, looked up without a lock.
//!
//! A slot never moves: the table grows by chunks, each twice as long as the one before, and a lookup is a
//! shift and two loads. Freed slots are reused, last freed first, with the next generation.

use std::sync::OnceLock; // set only under the lock of `Free`, so that no thread ever waits in it

use spandrel_ipc::Interest;
use spandrel_sync::Mutex;

use crate::key::Key;
use crate::queue::Mailbox;
use crate::state::{State, Word};
use crate::sys::RawHandle;

/// The slot of one handler of type `H`. On its own cache lines, since several threads use neighbouring slots.
#[repr(align(64))]
pub(crate) struct Slot<H: ?Sized> {
    pub(crate) state: State,
    /// Locked by the thread that has claimed the slot, so never for long by another.
    pub(crate) handler: Mutex<Option<Owned<H>>>,
    pub(crate) arming: Mutex<Arming>,
    pub(crate) mailbox: Mutex<Mailbox>,
}

/// A handler that its slot owns.
pub(crate) struct Owned<H: ?Sized>(pub(crate) Box<H>);

/// The registration of a handler's handle with the demultiplexer: the raw handle and its interest; unarmed if
/// that is empty.
#[derive(Debug, Default)]
pub(crate) struct Arming {
    handle: RawHandle,
    interest: Interest,
}

impl Arming {
    pub(crate) fn armed(&self) -> Option<(RawHandle, Interest)> {
        (!self.interest.is_none()).then_some((self.handle, self.interest))
    }

    pub(crate) fn set(&mut self, handle: RawHandle, interest: Interest) {
        *self = Self { handle, interest };
    }

    /// Disarms it and returns the raw handle that was armed.
    pub(crate) fn take(&mut self) -> Option<RawHandle> {
        let armed = self.armed().map(|(handle, _)| handle);
        self.interest = Interest::NONE;
        armed
    }
}

impl<H: ?Sized> Slot<H> {
    fn new() -> Self {
        Self { state: State::new(), handler: Mutex::new(None), arming: Mutex::default(), mailbox: Mutex::default() }
    }
}

/// The number of slots of the first chunk.
const FIRST: usize = if cfg!(shuttle) { 4 } else { 64 };
/// The number of chunks: enough for 2^31 slots.
const CHUNKS: usize = 28;

pub(crate) struct Table<H: ?Sized> {
    chunks: [OnceLock<Box<[Slot<H>]>>; CHUNKS],
    free: Mutex<Free>,
    limit: usize,
}

#[derive(Debug)]
struct Free {
    /// Freed slots, with the generation of their next handler.
    freed: Vec<(u32, u32)>,
    /// Slots from here on were never used.
    unused: u32,
    len: usize,
    is_closed: bool,
}

/// The reason why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSlot {
    Full,
    Closed,
}

impl<H: ?Sized> Table<H> {
    pub(crate) fn new(limit: usize) -> Self {
        let free = Free { freed: Vec::new(), unused: 0, len: 0, is_closed: false };
        Self { chunks: [const { OnceLock::new() }; CHUNKS], free: Mutex::new(free), limit }
    }

    /// The slot of that key; its state shows whether it still holds that handler.
    #[inline]
    pub(crate) fn slot(&self, key: Key) -> Option<&Slot<H>> {
        let (chunk, locate) = locate(key.index() as usize);
        self.chunks.get(chunk)?.get()?.get(locate)
    }

    /// Takes a free slot. Its key is private until the caller publishes it.
    pub(crate) fn take(&self) -> Result<(Key, &Slot<H>), NoSlot> {
        let mut free = self.free.lock();
        if free.is_closed {
            return Err(NoSlot::Closed);
        }
        if free.len >= self.limit {
            return Err(NoSlot::Full);
        }
        let (index, generation) = free.freed.pop().unwrap_or_else(|| {
            let index = free.unused;
            free.unused += 1;
            (index, 1)
        });
        free.len += 1;
        let (chunk, locate) = locate(index as usize);
        let slots = self.chunks[chunk].get_or_init(|| (0..FIRST << chunk).map(|_| Slot::new()).collect());
        Ok((Key::new(index, generation), &slots[locate]))
    }

    /// Returns a slot that the caller has claimed and emptied. Its key is stale from now on.
    pub(crate) fn give_back(&self, key: Key, slot: &Slot<H>) {
        let mut free = self.free.lock();
        slot.state.store(Word(0));
        free.len -= 1;
        free.freed.push((key.index(), key.generation().checked_add(1).unwrap_or(1)));
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn len(&self) -> usize {
        self.free.lock().len
    }

    /// Makes the table refuse further handlers.
    pub(crate) fn close(&self) {
        self.free.lock().is_closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.free.lock().is_closed
    }

    /// The keys of all slots used so far, with their present generation.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        let unused = self.free.lock().unused;
        (0..unused).filter_map(|index| {
            let word = self.slot(Key::new(index, 0))?.state.load();
            word.has(crate::state::LIVE).then(|| Key::new(index, word.generation()))
        })
    }
}

#[inline]
fn locate(index: usize) -> (usize, usize) {
    let index = index + FIRST;
    let chunk = (index / FIRST).ilog2() as usize;
    (chunk, index - (FIRST << chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_index_has_one_place() {
        let mut chunk_and_place = (0, 0);
        for index in 0..FIRST * 7 {
            assert_eq!(locate(index), chunk_and_place, "of {index}");
            chunk_and_place.1 += 1;
            if chunk_and_place.1 == FIRST << chunk_and_place.0 {
                chunk_and_place = (chunk_and_place.0 + 1, 0);
            }
        }
    }

    #[test]
    fn a_slot_fits_a_cache_line() {
        let most = if cfg!(windows) { 128 } else { 64 };
        assert!(size_of::<Slot<dyn Send>>() <= most, "{}", size_of::<Slot<dyn Send>>());
    }
}
