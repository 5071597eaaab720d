//! The table of handlers: slots with generations, found without a lock.
//!
//! A slot never moves: the table grows by chunks, each twice as long as the one before, and finding a slot is a shift and two
//! loads. Freed slots are used again, last freed first, with the next generation.

use std::sync::OnceLock; // set under the lock of `Free` alone, so that nobody ever waits in it

use spandrel_ipc::Interest;
use spandrel_sync::Mutex;

use crate::key::Key;
use crate::queue::Mailbox;
use crate::state::{State, Word};
use crate::sys::RawHandle;

/// The place of one handler of type `H`. On cache lines of its own, since several threads work at neighbours.
#[repr(align(64))]
pub(crate) struct Slot<H: ?Sized> {
    pub(crate) state: State,
    /// Locked by who has claimed the slot, so never for long by anybody else.
    pub(crate) handler: Mutex<Option<Owned<H>>>,
    pub(crate) arming: Mutex<Arming>,
    pub(crate) mailbox: Mutex<Mailbox>,
}

/// A handler.
pub(crate) struct Owned<H: ?Sized>(pub(crate) Box<H>);

/// What the demultiplexer has been told of a handler: with what number it is armed, and for what; it is not, if that is nothing.
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

    /// The number that it was armed with; it is armed no longer.
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

/// The first chunk has so many slots.
const FIRST: usize = if cfg!(shuttle) { 4 } else { 64 };
/// Enough for 2^31.
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

/// Why there is no slot.
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

    /// The slot of that key; whether it still holds that handler its state tells.
    #[inline]
    pub(crate) fn slot(&self, key: Key) -> Option<&Slot<H>> {
        let (chunk, place) = place(key.index() as usize);
        self.chunks.get(chunk)?.get()?.get(place)
    }

    /// Takes a free slot. Nobody else knows its key until the caller tells.
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
        let (chunk, place) = place(index as usize);
        let slots = self.chunks[chunk].get_or_init(|| (0..FIRST << chunk).map(|_| Slot::new()).collect());
        Ok((Key::new(index, generation), &slots[place]))
    }

    /// Gives a slot back, which the caller has claimed and emptied. Its key is stale from now on.
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

    /// Takes no more handlers.
    pub(crate) fn close(&self) {
        self.free.lock().is_closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.free.lock().is_closed
    }

    /// The keys of all slots that were ever used, with their present generation.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        let unused = self.free.lock().unused;
        (0..unused).filter_map(|index| {
            let word = self.slot(Key::new(index, 0))?.state.load();
            word.has(crate::state::LIVE).then(|| Key::new(index, word.generation()))
        })
    }
}

#[inline]
fn place(index: usize) -> (usize, usize) {
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
            assert_eq!(place(index), chunk_and_place, "of {index}");
            chunk_and_place.1 += 1;
            if chunk_and_place.1 == FIRST << chunk_and_place.0 {
                chunk_and_place = (chunk_and_place.0 + 1, 0);
            }
        }
    }

    #[test]
    fn a_slot_takes_one_cache_line() {
        let most = if cfg!(windows) { 128 } else { 64 };
        assert!(size_of::<Slot<dyn Send>>() <= most, "{}", size_of::<Slot<dyn Send>>());
    }
}
