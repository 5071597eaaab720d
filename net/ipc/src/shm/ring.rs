//! The protocol of one ring: octets from one producer to one consumer that do not trust each other.
//!
//! The shared state is two words and the octets. The producer publishes `tail`, the consumer `head`:
//!
//! ```text
//!  31                                   4     3      2       1        0
//! | position: octets so far, modulo 2^28 | END | QUIT | POLLING | WAITING |
//! ```
//!
//! `END` belongs to the publisher of the word: this side will publish nothing more. The other side sets the
//! other flags: `WAITING`, it sleeps until this word changes; `POLLING`, it waits for the doorbell; `QUIT`
//! (of `tail` only), the consumer will take nothing more. A publisher swaps the whole word, so that one step
//! publishes, returns the flags of the side to wake, and clears them.
//!
//! *No lost wake-up.* Announcing (`fetch_or`) and publishing (`swap`) are read-modify-write operations on the
//! same word, and those have one order. If the announcement comes first, the publication sees it and wakes.
//! If the publication comes first, the announcement returns it, and its thread does not sleep. No order
//! between different locations is needed, so there is no fence.
//!
//! *Octets are complete when visible.* The producer writes octets before the swap (release) and the consumer
//! reads them after it has loaded the position (acquire); the consumer reads octets before its swap (release)
//! and the producer overwrites them after it has loaded that position (acquire). Every operation on the words
//! here is acquire and release.
//!
//! *Hostile peers.* Each side keeps its own position private. It reads the other's position from the word
//! once, and checks that the ring then holds no more octets than its capacity; otherwise the connection is
//! [`Corrupt`].
//!
//! The caller, [`half`](super::half), sleeps, wakes and rings.

use std::io::{IoSlice, IoSliceMut};

/// The publisher of this word will publish no more.
pub(crate) const END: u32 = 8;
/// The other side will take nothing more.
pub(crate) const QUIT: u32 = 4;
/// The other side waits for the doorbell.
pub(crate) const POLLING: u32 = 2;
/// The other side sleeps until the word changes.
pub(crate) const WAITING: u32 = 1;

/// The number of bits of a word below the position.
pub(crate) const FLAGS: u32 = 4;
/// Positions are modulo this.
pub(crate) const WRAP: u32 = 1 << (32 - FLAGS);
/// The largest ring, in octets: far from the size at which two positions would be ambiguous.
pub(crate) const MAX_CAPACITY: u32 = WRAP / 4;

/// One shared number.
///
/// Every operation acquires and releases.
pub(crate) trait Word {
    fn value(&self) -> u32;
    fn replace(&self, value: u32) -> u32;
    fn add(&self, value: u32) -> u32;
    fn set(&self, flags: u32) -> u32;
    fn clear(&self, flags: u32) -> u32;
}

/// Implements [`Word`] for an atomic type: the machine's, or a model checker's.
macro_rules! word {
    ($Atomic:ty) => {
        impl $crate::shm::ring::Word for $Atomic {
            #[inline]
            fn value(&self) -> u32 {
                self.load(::std::sync::atomic::Ordering::Acquire)
            }
            #[inline]
            fn replace(&self, value: u32) -> u32 {
                self.swap(value, ::std::sync::atomic::Ordering::AcqRel)
            }
            #[inline]
            fn add(&self, value: u32) -> u32 {
                self.fetch_add(value, ::std::sync::atomic::Ordering::AcqRel)
            }
            #[inline]
            fn set(&self, flags: u32) -> u32 {
                self.fetch_or(flags, ::std::sync::atomic::Ordering::AcqRel)
            }
            #[inline]
            fn clear(&self, flags: u32) -> u32 {
                self.fetch_and(!flags, ::std::sync::atomic::Ordering::AcqRel)
            }
        }
    };
}
pub(crate) use word;

/// The memory of a ring.
pub(crate) trait RingMemory {
    type Word: Word;

    /// Its size in octets: a power of two, at most [`MAX_CAPACITY`], constant.
    fn capacity(&self) -> u32;
    /// Published by the producer.
    fn tail(&self) -> &Self::Word;
    /// Published by the consumer.
    fn head(&self) -> &Self::Word;
    /// Copies `data` to `at`; it fits.
    fn write(&self, at: u32, data: &[u8]);
    /// Copies from `at` to `buffer`; it fits.
    fn read(&self, at: u32, buffer: &mut [u8]);
}

/// The peer published an impossible position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt;

/// The wake-ups that a publication requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct Wakeups {
    /// The other side sleeps on the word just published.
    pub(crate) wake: bool,
    /// The other side waits for its doorbell.
    pub(crate) ring: bool,
}

impl Wakeups {
    fn from(old: u32) -> Self {
        Self { wake: old & WAITING != 0, ring: old & POLLING != 0 }
    }
}

/// The result of an attempt to transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Step {
    /// Some octets were transferred: their number, at least one.
    Done(usize, Wakeups),
    /// Not possible until the other side's word differs from this one.
    Blocked(u32),
    /// Not possible any more.
    Ended,
}

/// Whether two values of a word are equivalent to a waiting thread.
#[inline]
pub(crate) fn is_unchanged(one: u32, other: u32) -> bool {
    (one ^ other) & !(WAITING | POLLING | QUIT) == 0
}

fn position(word: u32) -> u32 {
    word >> FLAGS
}

/// The number of octets copied between two publications, so that both sides can copy at the same time.
fn publish_quantum<G: RingMemory>(memory: &G) -> u32 {
    (memory.capacity() / 4).max(1)
}

/// The distance of `to` ahead of `from`.
fn ahead(to: u32, from: u32) -> u32 {
    to.wrapping_sub(from) % WRAP
}

/// The producer's private state.
#[derive(Debug, Default)]
pub(crate) struct Producer {
    tail: u32,
    head: u32, // as last seen
    ended: bool,
    quit: bool,
}

impl Producer {
    /// In an empty ring with nonzero positions.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn at(position: u32) -> Self {
        Self { tail: position, head: position, ..Self::default() }
    }

    /// Copies some of `slices` into the ring and publishes them; `slices` are not all empty.
    #[inline]
    pub(crate) fn push<G: RingMemory>(&mut self, memory: &G, slices: &[IoSlice<'_>]) -> Result<Step, Corrupt> {
        // The cache line of `tail` is accessed anyway, that of `head` only when the ring seems full.
        if self.ended || self.quit || memory.tail().value() & QUIT != 0 {
            return Ok(Step::Ended);
        }
        let mut space = memory.capacity() - ahead(self.tail, self.head);
        if space == 0 {
            let word = memory.head().value();
            if word & END != 0 {
                return Ok(Step::Ended);
            }
            space = self.free_space(memory, word)?;
            if space == 0 {
                return Ok(Step::Blocked(word));
            }
        }
        let before = self.tail;
        space = space.min(publish_quantum(memory));
        for slice in slices {
            let n = slice.len().min(space as usize);
            self.copy(memory, &slice[..n]);
            space -= n as u32;
            if space == 0 {
                break;
            }
        }
        let pushed = ahead(self.tail, before) as usize;
        let old = memory.tail().replace(self.tail << FLAGS);
        self.quit |= old & QUIT != 0;
        Ok(Step::Done(pushed, Wakeups::from(old)))
    }

    #[inline]
    fn copy<G: RingMemory>(&mut self, memory: &G, data: &[u8]) {
        let at = self.tail % memory.capacity();
        let (first, second) = data.split_at(data.len().min((memory.capacity() - at) as usize));
        memory.write(at, first);
        if !second.is_empty() {
            memory.write(0, second);
        }
        self.tail = (self.tail + data.len() as u32) % WRAP;
    }

    /// Checks the consumer's position and updates the copy; returns the free space.
    fn free_space<G: RingMemory>(&mut self, memory: &G, word: u32) -> Result<u32, Corrupt> {
        let used = ahead(self.tail, position(word));
        if used > memory.capacity() {
            return Err(Corrupt);
        }
        self.head = position(word);
        Ok(memory.capacity() - used)
    }

    /// Publishes the end of the stream.
    pub(crate) fn end<G: RingMemory>(&mut self, memory: &G) -> Wakeups {
        if std::mem::replace(&mut self.ended, true) {
            return Wakeups::default();
        }
        Wakeups::from(memory.tail().replace(self.tail << FLAGS | END))
    }

    /// The number of octets published so far, modulo 2^28.
    pub(crate) fn position(&self) -> u32 {
        self.tail
    }
}

/// The consumer's private state.
#[derive(Debug, Default)]
pub(crate) struct Consumer {
    head: u32,
    tail: u32, // as last seen
    ended: bool,
}

impl Consumer {
    /// In an empty ring with nonzero positions.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn at(position: u32) -> Self {
        Self { head: position, tail: position, ..Self::default() }
    }

    /// Copies some of the ring's octets into `slices`, which are not all empty, and frees their space.
    #[inline]
    pub(crate) fn pop<G: RingMemory>(&mut self, memory: &G, slices: &mut [IoSliceMut<'_>]) -> Result<Step, Corrupt> {
        let mut used = ahead(self.tail, self.head);
        if used == 0 {
            let word = memory.tail().value();
            used = ahead(position(word), self.head);
            if used > memory.capacity() {
                return Err(Corrupt);
            }
            self.tail = position(word);
            if used == 0 {
                return Ok(if word & END != 0 { Step::Ended } else { Step::Blocked(word) });
            }
        }
        let before = self.head;
        let mut left = used.min(publish_quantum(memory));
        for slice in slices {
            let n = slice.len().min(left as usize);
            self.copy(memory, &mut slice[..n]);
            left -= n as u32;
            if left == 0 {
                break;
            }
        }
        let popped = ahead(self.head, before);
        Ok(Step::Done(popped as usize, self.publish(memory, popped, used - popped)))
    }

    /// Frees the space of `popped` octets. A producer that waits for space is woken once half of the ring is
    /// free, so that the two sides do not alternate every few octets.
    #[inline]
    fn publish<G: RingMemory>(&self, memory: &G, popped: u32, used: u32) -> Wakeups {
        if self.ended || used > memory.capacity() / 2 {
            memory.head().add(popped << FLAGS); // keeps the flags: END, and the requests of the producer
            return Wakeups::default();
        }
        Wakeups::from(memory.head().replace(self.head << FLAGS))
    }

    #[inline]
    fn copy<G: RingMemory>(&mut self, memory: &G, buffer: &mut [u8]) {
        let at = self.head % memory.capacity();
        let here = buffer.len().min((memory.capacity() - at) as usize);
        let (first, second) = buffer.split_at_mut(here);
        memory.read(at, first);
        if !second.is_empty() {
            memory.read(0, second);
        }
        self.head = (self.head + buffer.len() as u32) % WRAP;
    }

    /// Publishes that nothing more will be taken, for a producer that waits for space (the returned wake-ups)
    /// and one that does not (`QUIT`).
    pub(crate) fn end<G: RingMemory>(&mut self, memory: &G) -> Wakeups {
        if std::mem::replace(&mut self.ended, true) {
            return Wakeups::default();
        }
        memory.tail().set(QUIT);
        Wakeups::from(memory.head().replace(self.head << FLAGS | END))
    }

    /// The number of octets taken so far, modulo 2^28.
    pub(crate) fn position(&self) -> u32 {
        self.head
    }
}

/// Whether a consumer at `head` can make progress with this published `tail`.
///
/// An impossible position counts as progress, since the attempt reports it. So `head` may be out of date.
pub(crate) fn is_readable(tail: u32, head: u32) -> bool {
    tail & END != 0 || position(tail) != head
}

/// Whether a producer at `tail` can make progress with this published `head`. As [`is_readable`].
pub(crate) fn is_writable(head: u32, tail: u32, capacity: u32) -> bool {
    head & END != 0 || ahead(tail, position(head)) != capacity
}
