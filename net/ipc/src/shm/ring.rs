//! The protocol of one ring: octets from one producer to one consumer that do not trust each other.
//!
//! All that both see is two words and the octets. `tail` is published by the producer, `head` by the consumer:
//!
//! ```text
//!  31                                   4     3      2       1        0
//! | position: octets so far, modulo 2^28 | END | QUIT | POLLING | WAITING |
//! ```
//!
//! `END` is its publisher's: nothing more will come of this side. The others are set by the other side: `WAITING`, it sleeps until
//! this word changes; `POLLING`, it waits for the doorbell; `QUIT` (of `tail` only), the consumer will take nothing more. A publisher
//! swaps the whole word, so that the same step that publishes tells it whom to wake and takes that request away.
//!
//! *Why nobody sleeps while there is work.* Announcing (`fetch_or`) and publishing (`swap`) are read-modify-write operations on the
//! same word, and those have one order. If the announcement comes first, the publication sees it and wakes. If the publication comes
//! first, the announcement returns it, and nobody goes to sleep. No order between different locations is needed, so there is no fence.
//!
//! *Why octets are seen whole.* The producer writes octets before the swap (release) and the consumer reads them after it has loaded
//! the position (acquire); the consumer reads octets before its swap (release) and the producer overwrites them after it has loaded that
//! position (acquire). Every operation on the words here is acquire and release.
//!
//! *Why a hostile peer does no harm.* Each side keeps its own position to itself. The other's is taken from the word once, and must say
//! that there are no more octets than the ring holds; if not, the connection is [`Corrupt`].
//!
//! Sleeping, waking and ringing are left to the callers, [`half`](super::half).

use std::io::{IoSlice, IoSliceMut};

/// Who published this will publish no more.
pub(crate) const END: u32 = 8;
/// The other side will take nothing more.
pub(crate) const QUIT: u32 = 4;
/// The other side waits for the doorbell.
pub(crate) const POLLING: u32 = 2;
/// The other side sleeps until the word changes.
pub(crate) const WAITING: u32 = 1;

/// The bits of a word below the position.
pub(crate) const FLAGS: u32 = 4;
/// Positions are modulo this.
pub(crate) const WRAP: u32 = 1 << (32 - FLAGS);
/// The largest ring, in octets: far from where two positions could be mistaken for each other.
pub(crate) const MAX_CAPACITY: u32 = WRAP / 4;

/// One shared number.
///
/// Everything acquires and releases.
pub(crate) trait Word {
    fn value(&self) -> u32;
    fn replace(&self, value: u32) -> u32;
    fn add(&self, value: u32) -> u32;
    fn set(&self, flags: u32) -> u32;
    fn clear(&self, flags: u32) -> u32;
}

/// Makes a [`Word`] of an atomic number: of the machine's, or of a model checker's.
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

/// What a ring lies on.
pub(crate) trait Ground {
    type Word: Word;

    /// How many octets it holds: a power of two, at most [`MAX_CAPACITY`], the same as long as it is used.
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

/// The peer published what cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt;

/// Whom to wake after a publication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct Call {
    /// The other side sleeps on the word just published.
    pub(crate) wake: bool,
    /// The other side waits for its doorbell.
    pub(crate) ring: bool,
}

impl Call {
    fn from(old: u32) -> Self {
        Self { wake: old & WAITING != 0, ring: old & POLLING != 0 }
    }
}

/// What came of an attempt to transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Step {
    /// So many octets were transferred, at least one.
    Done(usize, Call),
    /// Not possible until the other side's word differs from this one.
    Blocked(u32),
    /// Not possible any more.
    Ended,
}

/// Whether two values of a word tell a waiter the same.
#[inline]
pub(crate) fn is_same(one: u32, other: u32) -> bool {
    (one ^ other) & !(WAITING | POLLING | QUIT) == 0
}

fn position(word: u32) -> u32 {
    word >> FLAGS
}

/// How many octets are copied between two publications, so that the other side can copy some while this one copies others.
fn at_once<G: Ground>(ground: &G) -> u32 {
    (ground.capacity() / 4).max(1)
}

/// How far `to` is ahead of `from`.
fn ahead(to: u32, from: u32) -> u32 {
    to.wrapping_sub(from) % WRAP
}

/// The producer's own knowledge.
#[derive(Debug, Default)]
pub(crate) struct Producer {
    tail: u32,
    head: u32, // as last seen
    ended: bool,
    quit: bool,
}

impl Producer {
    /// In an empty ring whose positions are not at the beginning.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn at(position: u32) -> Self {
        Self { tail: position, head: position, ..Self::default() }
    }

    /// Copies some of `slices` into the ring and publishes them; `slices` are not all empty.
    #[inline]
    pub(crate) fn push<G: Ground>(&mut self, ground: &G, slices: &[IoSlice<'_>]) -> Result<Step, Corrupt> {
        // The line of `tail` is touched anyway, that of `head` only when the ring seems full.
        if self.ended || self.quit || ground.tail().value() & QUIT != 0 {
            return Ok(Step::Ended);
        }
        let mut space = ground.capacity() - ahead(self.tail, self.head);
        if space == 0 {
            let word = ground.head().value();
            if word & END != 0 {
                return Ok(Step::Ended);
            }
            space = self.look(ground, word)?;
            if space == 0 {
                return Ok(Step::Blocked(word));
            }
        }
        let before = self.tail;
        space = space.min(at_once(ground));
        for slice in slices {
            let n = slice.len().min(space as usize);
            self.copy(ground, &slice[..n]);
            space -= n as u32;
            if space == 0 {
                break;
            }
        }
        let pushed = ahead(self.tail, before) as usize;
        let old = ground.tail().replace(self.tail << FLAGS);
        self.quit |= old & QUIT != 0;
        Ok(Step::Done(pushed, Call::from(old)))
    }

    #[inline]
    fn copy<G: Ground>(&mut self, ground: &G, data: &[u8]) {
        let at = self.tail % ground.capacity();
        let (first, second) = data.split_at(data.len().min((ground.capacity() - at) as usize));
        ground.write(at, first);
        if !second.is_empty() {
            ground.write(0, second);
        }
        self.tail = (self.tail + data.len() as u32) % WRAP;
    }

    /// Believes the consumer's position if that can be, and tells how much space there is.
    fn look<G: Ground>(&mut self, ground: &G, word: u32) -> Result<u32, Corrupt> {
        let used = ahead(self.tail, position(word));
        if used > ground.capacity() {
            return Err(Corrupt);
        }
        self.head = position(word);
        Ok(ground.capacity() - used)
    }

    /// Publishes that nothing more will come.
    pub(crate) fn end<G: Ground>(&mut self, ground: &G) -> Call {
        if std::mem::replace(&mut self.ended, true) {
            return Call::default();
        }
        Call::from(ground.tail().replace(self.tail << FLAGS | END))
    }

    /// How many octets were published so far, modulo 2^28.
    pub(crate) fn position(&self) -> u32 {
        self.tail
    }
}

/// The consumer's own knowledge.
#[derive(Debug, Default)]
pub(crate) struct Consumer {
    head: u32,
    tail: u32, // as last seen
    ended: bool,
}

impl Consumer {
    /// In an empty ring whose positions are not at the beginning.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn at(position: u32) -> Self {
        Self { head: position, tail: position, ..Self::default() }
    }

    /// Copies some of what is in the ring into `slices`, which are not all empty, and gives its place free.
    #[inline]
    pub(crate) fn pop<G: Ground>(&mut self, ground: &G, slices: &mut [IoSliceMut<'_>]) -> Result<Step, Corrupt> {
        let mut used = ahead(self.tail, self.head);
        if used == 0 {
            let word = ground.tail().value();
            used = ahead(position(word), self.head);
            if used > ground.capacity() {
                return Err(Corrupt);
            }
            self.tail = position(word);
            if used == 0 {
                return Ok(if word & END != 0 { Step::Ended } else { Step::Blocked(word) });
            }
        }
        let before = self.head;
        let mut left = used.min(at_once(ground));
        for slice in slices {
            let n = slice.len().min(left as usize);
            self.copy(ground, &mut slice[..n]);
            left -= n as u32;
            if left == 0 {
                break;
            }
        }
        let popped = ahead(self.head, before);
        Ok(Step::Done(popped as usize, self.publish(ground, popped, used - popped)))
    }

    /// Gives the place of `popped` octets free. A producer that waits for space is called once half of the ring is free, so that the
    /// two do not take turns for every few octets.
    #[inline]
    fn publish<G: Ground>(&self, ground: &G, popped: u32, used: u32) -> Call {
        if self.ended || used > ground.capacity() / 2 {
            ground.head().add(popped << FLAGS); // keeps the flags: END, and the requests of the producer
            return Call::default();
        }
        Call::from(ground.head().replace(self.head << FLAGS))
    }

    #[inline]
    fn copy<G: Ground>(&mut self, ground: &G, buffer: &mut [u8]) {
        let at = self.head % ground.capacity();
        let here = buffer.len().min((ground.capacity() - at) as usize);
        let (first, second) = buffer.split_at_mut(here);
        ground.read(at, first);
        if !second.is_empty() {
            ground.read(0, second);
        }
        self.head = (self.head + buffer.len() as u32) % WRAP;
    }

    /// Publishes that nothing more will be taken, for a producer that waits for space (the call that is returned) and one that does
    /// not (`QUIT`).
    pub(crate) fn end<G: Ground>(&mut self, ground: &G) -> Call {
        if std::mem::replace(&mut self.ended, true) {
            return Call::default();
        }
        ground.tail().set(QUIT);
        Call::from(ground.head().replace(self.head << FLAGS | END))
    }

    /// How many octets were taken so far, modulo 2^28.
    pub(crate) fn position(&self) -> u32 {
        self.head
    }
}

/// Whether, with this `tail` published, a consumer at `head` has something to do.
///
/// What cannot be counts as something to do: the attempt will tell. So `head` may be out of date.
pub(crate) fn is_readable(tail: u32, head: u32) -> bool {
    tail & END != 0 || position(tail) != head
}

/// Whether, with this `head` published, a producer at `tail` has something to do. As [`is_readable`].
pub(crate) fn is_writable(head: u32, tail: u32, capacity: u32) -> bool {
    head & END != 0 || ahead(tail, position(head)) != capacity
}
