//! The parts of a [`MessageQueue`](crate::MessageQueue), with the locks that guard them.

use std::collections::VecDeque;
use std::sync::LazyLock;

use spandrel_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use spandrel_sync::{Arc, Guarded, Monitor};

use super::item::{Position, Queued, WaterMarks};
use crate::LockWaits;
use crate::excess::Excess;

/// The items that are taken next: all those that were queued when a consumer found none here.
///
/// Consumers take them without the lock of [`State`], which is left to the producers. Both threads of a queue that is
/// in use would wait for one lock otherwise, and move its memory between their processors for each item. Its lock
/// is taken before that of the state.
pub(super) struct Front<T, L: Monitor> {
    pub(super) items: Guarded<FrontItems<T>, L>,
    /// The number of these items, and their octets. They grow with both locks held, and decrease with that of `items`.
    pub(super) len: AtomicUsize,
    pub(super) octets: AtomicUsize,
}

impl<T, L: Monitor> Default for Front<T, L> {
    fn default() -> Self {
        let items = FrontItems { items: VecDeque::new(), is_paused: false, lock_waits: LockWaits::default() };
        Self { items: Guarded::new(items), len: AtomicUsize::default(), octets: AtomicUsize::default() }
    }
}

impl<T, L: Monitor> Front<T, L> {
    /// Publishes the number of items and octets.
    #[inline]
    pub(super) fn set(&self, len: usize, octets: usize) {
        // Threads that hold no lock of the front use them as former counts; a lock orders all other uses.
        self.len.store(len, Ordering::Relaxed);
        self.octets.store(octets, Ordering::Relaxed);
    }
}

pub(super) struct FrontItems<T> {
    pub(super) items: VecDeque<T>,
    pub(super) is_paused: bool,
    pub(super) lock_waits: LockWaits,
}

/// The words that rarely change, with the lock of the state held. Consumers read them for each item.
#[derive(Default)]
pub(super) struct Signals {
    /// Whether a consumer has to look at the state after it has taken an item: [`PRODUCERS_WAIT`] and [`BEYOND`].
    pub(super) attention: AtomicUsize,
    /// For [`PRODUCERS_WAIT`]: the octets and the number of items in the front above which no producer can go on.
    pub(super) full_octets: AtomicUsize,
    pub(super) full_len: AtomicUsize,
    /// The number of calls of `pulse`.
    pub(super) pulses: AtomicU64,
}

impl Signals {
    /// Whether a consumer has to look at the state after it has left so much in the front.
    #[inline]
    pub(super) fn need_look(&self, front_len: usize, front_octets: usize) -> bool {
        match self.attention.load(Ordering::Relaxed) {
            0 => false,
            PRODUCERS_WAIT => {
                front_octets <= self.full_octets.load(Ordering::Relaxed)
                    && front_len <= self.full_len.load(Ordering::Relaxed)
            }
            _ => true,
        }
    }
}

/// Producers wait that have not been notified.
pub(super) const PRODUCERS_WAIT: usize = 1;
/// Items were queued beyond the limits.
pub(super) const BEYOND: usize = 2;

/// In the order of its fields: those that each item changes come first, so that a lock's new holder fetches
/// few lines of memory from the other processor's cache.
#[repr(C)]
pub(super) struct State<T> {
    /// The items behind those of the front, and their octets.
    pub(super) items: VecDeque<T>,
    pub(super) octets: usize,
    /// A former number of the items of the front, and of their octets. They have become no more since then.
    pub(super) front_len: usize,
    pub(super) front_octets: usize,
    pub(super) consumers: Waiters,
    pub(super) producers: Waiters,
    /// The high water mark was reached, and the low one was not found to be reached since then.
    pub(super) is_flow_controlled: bool,
    pub(super) is_closed: bool,
    pub(super) is_paused: bool,
    pub(super) marks: WaterMarks,
    pub(super) notification: Option<Notification>,
    /// The items that were queued beyond the limits and not taken since then.
    pub(super) beyond: usize,
    /// Counts them, with those of other queues.
    pub(super) excess: Option<Arc<Excess>>,
    pub(super) lock_waits: LockWaits,
}

/// The threads that wait for one condition.
///
/// A thread that was notified may need long until it runs. Until then no further item notifies it: each
/// notification would cost a system call.
#[derive(Default)]
pub(super) struct Waiters {
    pub(super) waiting: u32,
    /// Those that were notified and have not run since then. Never too many.
    pub(super) notified: u32,
    /// The waits so far, and how many further ones begin with looks since the last looks that succeeded.
    waits: u32,
    credit: u32,
}

/// The looks at a queue before a thread sleeps, between which it pauses for a microsecond or two. A thread that has
/// a processor of its own wakes after a much longer time. The pauses let items come together meanwhile.
const LOOKS: u32 = 5;
const PAUSES: u32 = 80;
/// The waits that begin with looks after those that succeeded, although all of them fail; then, one of so many does.
const CREDIT: u32 = 4;
const RARELY: u32 = 32;

/// The looks with which a wait begins.
#[derive(Clone, Copy)]
pub(super) struct Looks {
    left: u32,
    are_any: bool,
}

impl Looks {
    /// None, for a thread that has waited already.
    pub(super) const NONE: Self = Self { left: 0, are_any: false };

    /// Pauses before the next look; returns whether there is one.
    pub(super) fn next<S>(&mut self, state: S) -> Result<(), S> {
        if self.left == 0 {
            return Err(state);
        }
        self.left -= 1;
        drop(state); // its lock is free during the pause
        (0..PAUSES).for_each(|_| std::hint::spin_loop());
        Ok(())
    }
}

impl Waiters {
    /// Whether one is to be notified, which the caller does without the lock.
    pub(super) fn notify(&mut self) -> bool {
        let is_any = self.waiting > self.notified;
        self.notified += u32::from(is_any);
        is_any
    }

    /// The looks of a thread that is about to wait: none where they have failed in the last waits.
    pub(super) fn looks(&mut self) -> Looks {
        static ARE_USEFUL: LazyLock<bool> =
            LazyLock::new(|| !cfg!(shuttle) && std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1));
        let are_any = (self.credit > 0 || self.waits.is_multiple_of(RARELY)) && *ARE_USEFUL;
        self.waits = self.waits.wrapping_add(1);
        Looks { left: if are_any { LOOKS } else { 0 }, are_any }
    }

    /// The wait that began with the looks has ended by them, or has to go on without.
    pub(super) fn looked(&mut self, looks: Looks, is_over: bool) {
        if looks.are_any {
            self.credit = if is_over { CREDIT } else { self.credit.saturating_sub(1) };
        }
    }

    /// One of them has run again.
    pub(super) fn woken(&mut self) {
        self.notified = self.notified.saturating_sub(1);
    }
}

impl<T> Drop for State<T> {
    fn drop(&mut self) {
        self.take_from_excess(usize::MAX);
    }
}

/// The function that is called when an item enters an empty queue.
pub(super) type Notification = Arc<dyn Fn() + Send + Sync>;

impl<T> State<T> {
    pub(super) fn new(marks: WaterMarks) -> Self {
        Self {
            items: VecDeque::new(),
            octets: 0,
            front_len: 0,
            front_octets: 0,
            marks: WaterMarks { low: marks.low.min(marks.high), ..marks },
            is_flow_controlled: false,
            is_closed: false,
            is_paused: false,
            consumers: Waiters::default(),
            producers: Waiters::default(),
            notification: None,
            beyond: 0,
            excess: None,
            lock_waits: LockWaits::default(),
        }
    }

    /// So many items have left the queue.
    pub(super) fn take_from_excess(&mut self, items: usize) {
        if self.beyond == 0 {
            return;
        }
        let fewer = self.beyond.min(items);
        self.beyond -= fewer;
        self.excess.as_ref().inspect(|excess| excess.subtract(fewer));
    }

    /// The number of all items, at most.
    pub(super) fn len(&self) -> usize {
        self.items.len() + self.front_len
    }

    /// The octets of all items, at most.
    pub(super) fn octets(&self) -> usize {
        self.octets.saturating_add(self.front_octets)
    }

    pub(super) fn is_above_high(&self) -> bool {
        self.octets() >= self.marks.high
    }

    /// Whether flow control ends by the octets.
    pub(super) fn is_low(&self) -> bool {
        self.len() == 0 || (self.octets() <= self.marks.low && self.octets() < self.marks.high)
    }

    /// Tells consumers what they have to look at.
    pub(super) fn signal(&self, signals: &Signals) {
        let producers_wait = self.producers.waiting > self.producers.notified;
        if producers_wait {
            let low = self.marks.low.min(self.marks.high.saturating_sub(1));
            let octets = if self.is_flow_controlled { low.saturating_sub(self.octets) } else { usize::MAX };
            signals.full_octets.store(octets, Ordering::Relaxed);
            let len = self.marks.messages.saturating_sub(self.items.len() + 1);
            signals.full_len.store(len, Ordering::Relaxed);
        }
        let beyond = if self.beyond > 0 { BEYOND } else { 0 };
        let attention = beyond | if producers_wait { PRODUCERS_WAIT } else { 0 };
        if signals.attention.load(Ordering::Relaxed) != attention {
            signals.attention.store(attention, Ordering::Relaxed);
        }
    }
}

impl<T: Queued> State<T> {
    pub(super) fn insert(&mut self, item: T, position: Position) {
        self.octets = self.octets.saturating_add(item.octets());
        match position {
            Position::Tail => self.items.push_back(item),
            Position::Head => self.items.push_front(item),
            Position::Priority => {
                let position = self.place(|other| other.priority() >= item.priority());
                self.items.insert(position, item);
            }
            Position::Deadline => {
                let deadline = item.deadline();
                let position = self.place(|other| match (other.deadline(), deadline) {
                    (Some(other), Some(deadline)) => other <= deadline,
                    (Some(_), None) | (None, None) => true,
                    (None, Some(_)) => false,
                });
                self.items.insert(position, item);
            }
        }
    }

    /// The place behind the last item that comes first.
    pub(super) fn place(&self, comes_first: impl Fn(&T) -> bool) -> usize {
        self.items.iter().rposition(comes_first).map_or(0, |last| last + 1)
    }
}
