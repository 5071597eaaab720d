//! The state of a slot of the handler table, and the right to use it: one atomic word, without the operating
//! system.
//!
//! The thread that sets `BUSY` by compare-and-swap has *claimed* the slot: it alone calls the handler, arms
//! its handle in the demultiplexer, and closes it. Other threads leave a note in the word, which the claiming
//! thread finds when it releases, because its compare-and-swap then fails. So no thread waits for a handler,
//! and a note is never lost.

use std::fmt;

use spandrel_ipc::Interest;
use spandrel_sync::atomic::{AtomicU64, Ordering};

use crate::Trigger;

/// Bits 0 to 2: the interest of the handler. Bits 3 to 5: events reported while it was busy, which will not
/// be repeated.
const MISSED_SHIFT: u32 = 3;
const MISSED: u64 = 7 << MISSED_SHIFT;
/// The slot holds a handler.
pub(crate) const LIVE: u64 = 1 << 6;
/// A thread runs the handler.
pub(crate) const BUSY: u64 = 1 << 7;
/// Note: to be closed.
pub(crate) const REMOVED: u64 = 1 << 8;
/// Not to be waited for.
pub(crate) const SUSPENDED: u64 = 1 << 9;
/// Note: the interest has changed.
pub(crate) const DIRTY: u64 = 1 << 10;
/// Note: its handle was reported while it was busy.
const SHOWN: u64 = 1 << 11;
/// Note: removed from the demultiplexer, because its handle was reported again and again while it was busy.
pub(crate) const DISARMED: u64 = 1 << 12;
/// `handle_open` is still to be called.
pub(crate) const UNOPENED: u64 = 1 << 13;
/// Its handle alone does not show all events.
pub(crate) const DECODES: u64 = 1 << 14;
const EDGE: u64 = 1 << 15;
const ONE_SHOT: u64 = 1 << 16;
/// Note: its mail could not be delivered.
pub(crate) const MAIL: u64 = 1 << 17;
/// On the list of handlers that are ready although their handles do not show it.
pub(crate) const LISTED: u64 = 1 << 18;
/// Bits 19 to 31: the round of waiting in which it was last released.
const ROUND_SHIFT: u32 = 19;
const ROUND: u64 = 0x1fff << ROUND_SHIFT;
const GENERATION_SHIFT: u32 = 32;
/// The bits that a releasing thread has to check.
const NOTES: u64 = MISSED | REMOVED | DIRTY | SHOWN | DISARMED | MAIL;

/// A value of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    /// The word of a new handler, claimed by the registering thread.
    pub(crate) fn new(generation: u32, interest: Interest, trigger: Trigger, decodes: bool) -> Self {
        let trigger = match trigger {
            Trigger::Level => 0,
            #[cfg(unix)]
            Trigger::Edge => EDGE,
            Trigger::OneShot => ONE_SHOT,
        };
        let decodes = if decodes { DECODES } else { 0 };
        let flags = LIVE | BUSY | UNOPENED | trigger | decodes;
        Self(u64::from(generation) << GENERATION_SHIFT | flags | u64::from(interest.bits()))
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> GENERATION_SHIFT) as u32
    }

    #[inline]
    pub(crate) fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the low octet is meant")]
    pub(crate) fn wanted(self) -> Interest {
        Interest::from_bits(self.0 as u8)
    }

    /// The events to wait for.
    pub(crate) fn awaited(self) -> Interest {
        if self.has(SUSPENDED) { Interest::NONE } else { self.wanted() }
    }

    #[allow(clippy::cast_possible_truncation, reason = "three bits are meant")]
    pub(crate) fn missed(self) -> Interest {
        Interest::from_bits((self.0 >> MISSED_SHIFT) as u8)
    }

    /// With a note of events that will not be reported again.
    pub(crate) fn missing(self, ready: Interest) -> Self {
        Self(self.0 | u64::from(ready.bits()) << MISSED_SHIFT)
    }

    pub(crate) fn trigger(self) -> Trigger {
        #[cfg(unix)]
        if self.has(EDGE) {
            return Trigger::Edge;
        }
        if self.has(ONE_SHOT) { Trigger::OneShot } else { Trigger::Level }
    }

    /// The same state, with this interest in place of the former one.
    pub(crate) fn with_interest(self, interest: Interest) -> Self {
        Self(self.0 & !u64::from(Interest::ALL.bits()) | u64::from(interest.bits()))
    }

    pub(crate) fn with(self, flags: u64) -> Self {
        Self(self.0 | flags)
    }

    pub(crate) fn without(self, flags: u64) -> Self {
        Self(self.0 & !flags)
    }

    /// Whether it holds the handler of that generation, and that one is not about to be closed.
    #[inline]
    pub(crate) fn is(self, generation: u32) -> bool {
        self.generation() == generation && self.0 & (LIVE | REMOVED) == LIVE
    }

    /// The word once the arming is up to date, and mail is noted.
    pub(crate) fn armed(self) -> Self {
        self.without(DIRTY | SHOWN | DISARMED | MISSED | MAIL)
    }

    /// The word after a release in that round.
    #[inline]
    pub(crate) fn released(self, round: u64) -> Self {
        Self(self.0 & !(BUSY | ROUND) | (round << ROUND_SHIFT) & ROUND)
    }

    /// Whether events of that round's wait may have been dispatched meanwhile by another thread: the thread
    /// that was in the handler when the wait began has left it since. If they were not, a level-triggered
    /// event is reported again. (Round numbers wrap around, so rarely this is true without a reason, which
    /// costs a wait.)
    #[inline]
    fn is_stale(self, round: u64) -> bool {
        (self.0 ^ round << ROUND_SHIFT) & ROUND == 0 && self.0 & (EDGE | ONE_SHOT) == 0
    }

    /// Whether releasing it only has to clear `BUSY`, as far as this value shows.
    #[inline]
    pub(crate) fn is_clean(self) -> bool {
        !self.has(NOTES | DECODES | UNOPENED)
    }

    /// Whether a releasing thread has to update the arming.
    pub(crate) fn is_to_arm(self) -> bool {
        self.has(DIRTY | DISARMED | DECODES | MISSED)
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}:{:#x}", self.generation(), self.0 & 0xffff_ffff)
    }
}

/// The result of an attempt to claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It succeeded, with this word.
    Claimed(Word),
    /// Another thread has claimed it, and will find a note.
    Deferred,
    /// Another thread has claimed it, and the handle was reported again since then: it must be disarmed, or
    /// the leader spins. That thread may be about to disarm it itself.
    MustDisarm,
    /// There is nothing to do: the handler was removed, is suspended, does not want this, or may have been
    /// called for it already.
    NotNeeded,
}

/// The word of one slot.
#[derive(Debug)]
pub(crate) struct State(AtomicU64);

impl State {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn load(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn swap(&self, old: Word, new: Word) -> bool {
        self.0.compare_exchange(old.0, new.0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Without a comparison: for a thread that has claimed a slot unknown to others.
    pub(crate) fn store(&self, word: Word) {
        self.0.store(word.0, Ordering::Release);
    }

    /// Claims the slot of a ready handler: for a handle reported in that round of waiting, or, for `None`,
    /// for an endpoint that is ready by itself.
    #[inline]
    pub(crate) fn claim_ready(&self, generation: u32, ready: Interest, round: Option<u64>) -> Claim {
        let word = self.load();
        let flags = LIVE | BUSY | REMOVED | SUSPENDED | ONE_SHOT | DECODES;
        let is_plain_and_idle = word.generation() == generation && word.0 & flags == LIVE;
        let is_wanted = word.wanted().intersects(ready) && !round.is_some_and(|round| word.is_stale(round));
        if is_plain_and_idle && is_wanted && self.swap(word, word.with(BUSY)) {
            return Claim::Claimed(word.with(BUSY));
        }
        self.claim_ready_slowly(generation, ready, round)
    }

    #[cold]
    fn claim_ready_slowly(&self, generation: u32, ready: Interest, round: Option<u64>) -> Claim {
        loop {
            let word = self.load();
            if word.generation() != generation || !word.has(LIVE) {
                return Claim::NotNeeded;
            }
            let (new, claim) = if !word.has(BUSY) {
                // The events of a decoding endpoint's handle need not be the wanted ones.
                let is_wanted = word.has(DECODES) || word.wanted().intersects(ready);
                if word.has(SUSPENDED) || !is_wanted || round.is_some_and(|round| word.is_stale(round)) {
                    return Claim::NotNeeded;
                }
                let new = word.with(if word.has(ONE_SHOT) { BUSY | SUSPENDED } else { BUSY });
                (new, Claim::Claimed(new))
            } else if word.has(EDGE | ONE_SHOT) {
                (word.missing(ready), Claim::Deferred)
            } else if word.has(SHOWN) {
                return Claim::MustDisarm;
            } else {
                (word.with(SHOWN), Claim::Deferred)
            };
            if self.swap(word, new) {
                return claim;
            }
        }
    }

    /// Claims the slot for something other than input or output, also while it is suspended.
    pub(crate) fn claim(&self, generation: u32, note: u64) -> Claim {
        loop {
            let word = self.load();
            if !word.is(generation) {
                return Claim::NotNeeded;
            }
            let (new, claim) = if word.has(BUSY) {
                (word.with(note), Claim::Deferred)
            } else {
                (word.with(BUSY), Claim::Claimed(word.with(BUSY)))
            };
            if self.swap(word, new) {
                return claim;
            }
        }
    }

    /// Changes the events to wait for. If the slot was not claimed, the caller has claimed it now, and
    /// updates the arming.
    pub(crate) fn alter(&self, generation: u32, change: impl Fn(Word) -> Word) -> Claim {
        loop {
            let word = self.load();
            if !word.is(generation) {
                return Claim::NotNeeded;
            }
            let new = change(word).with(BUSY | DIRTY);
            if self.swap(word, new) {
                return if word.has(BUSY) { Claim::Deferred } else { Claim::Claimed(new) };
            }
        }
    }

    /// Notes that the handler is to be closed. If the slot was not claimed, the caller has claimed it now,
    /// and closes the handler.
    pub(crate) fn remove(&self, generation: u32) -> Claim {
        loop {
            let word = self.load();
            if !word.is(generation) {
                return Claim::NotNeeded;
            }
            let new = word.with(BUSY | REMOVED);
            if self.swap(word, new) {
                return if word.has(BUSY) { Claim::Deferred } else { Claim::Claimed(new) };
            }
        }
    }

    /// For the claiming thread: leaves itself a note.
    pub(crate) fn note(&self, note: u64) {
        self.0.fetch_or(note, Ordering::AcqRel);
    }

    /// Clears a flag of a slot that the caller has claimed.
    pub(crate) fn clear(&self, flag: u64) {
        self.0.fetch_and(!flag, Ordering::AcqRel);
    }

    /// Removes the mark that the handler of that generation is on the list of ready ones.
    pub(crate) fn unlist(&self, generation: u32) {
        loop {
            let word = self.load();
            if word.generation() != generation || self.swap(word, word.without(LISTED)) {
                return;
            }
        }
    }
}
