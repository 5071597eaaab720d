//! Queues of messages with flow control, without locks while nothing waits.
//!
//! Two words count the items and octets that have ever been queued and taken; their difference is what the
//! queue holds. A producer *reserves* the place of its item by a compare-and-swap of the first word, which
//! fails if the queue is closed or flow controlled, and then pushes it. So the limits hold exactly, and each
//! item whose place was reserved before [`close`](LockFreeQueue::close) is taken before the queue counts as
//! empty. Producers do not read the consumers' word before the limits seem to be reached, so that it stays
//! with the consumers' processors.

use std::collections::VecDeque;
use std::fmt;
use std::sync::OnceLock;

use crossbeam_queue::ArrayQueue;
use crossbeam_utils::{Backoff, CachePadded};
use spandrel_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use spandrel_sync::{Arc, Mutex, thread};

use crate::event_count::EventCount;
use crate::excess::Excess;
use crate::wait::{Wait, WaitEnd};
use crate::{DequeueError, EnqueueError, EnqueueFailure, LockWaits, Queued, WaterMarks};

/// In the word of the producers: no further place can be reserved.
const CLOSED: u64 = 1;
/// In the word of the producers: the high water mark was reached.
const CONTROLLED: u64 = 1 << 1;
/// The first bit of the number of items.
const ITEMS: u32 = 2;
/// The first bit of the number of octets.
const OCTETS: u32 = 24;

/// The most items and octets that a difference of the words can hold, with room for those beyond the limits.
const MOST_ITEMS: usize = 1 << (OCTETS - ITEMS - 1);
const MOST_OCTETS: u64 = 1 << (64 - OCTETS - 2);

/// The most items in the ring.
const MOST_IN_RING: usize = 1 << 16;

/// Items and octets as a summand of the words. The sums wrap; their difference is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Weight(u64);

impl Weight {
    /// That of one item.
    #[inline]
    fn one(octets: usize) -> Self {
        Self((octets as u64).min(MOST_OCTETS) << OCTETS | 1 << ITEMS)
    }

    /// That of all items that are in `reserved` and not in `taken`.
    #[inline]
    fn between(reserved: u64, taken: u64) -> Self {
        Self((reserved & !(CLOSED | CONTROLLED)).wrapping_sub(taken))
    }

    #[inline]
    fn items(self) -> usize {
        (self.0 >> ITEMS) as usize & ((1 << (OCTETS - ITEMS)) - 1)
    }

    #[inline]
    fn octets(self) -> usize {
        usize::try_from(self.0 >> OCTETS).unwrap_or(usize::MAX)
    }
}

/// A queue with flow control, for several producers and consumers, that takes no lock unless it has to wait
/// or to wake a waiting thread.
///
/// Items leave it in the order in which they were pushed, those of one producer in its order. There is no
/// [`Position`](crate::Position): a lock-free queue has no other places than its ends. Where priorities,
/// deadlines or the head are needed, [`MessageQueue`](crate::MessageQueue) has them.
///
/// Its ring has room for [`WaterMarks::messages`] as of the first item, and at most 65,536. It takes 16
/// octets for each beside the item's own size, which are allocated with the first item. If the limit is
/// raised later, or is higher, items beyond the ring wait in a queue with a lock. At most 2^21 items are
/// counted, and 2^38 octets.
///
/// The limits are those of [`WaterMarks`], at any number of producers: at most `high` octets and one item
/// more, and at most `messages` items. A flow-controlled queue takes items again when its octets have fallen
/// to `low` and below `high`.
///
/// ```
/// use spandrel_stream::{DequeueError, EnqueueFailure, LockFreeQueue, Message, Wait, WaterMarks};
///
/// let queue = LockFreeQueue::<Message>::new(WaterMarks::new(8, 4));
/// let message = |text: &[u8]| Message::data(text.into());
/// queue.enqueue(message(b"12345678"), Wait::Never)?;
/// let refused = queue.enqueue(message(b"9"), Wait::Never).unwrap_err();
/// assert_eq!(refused.reason, EnqueueFailure::Full);
///
/// assert_eq!(queue.dequeue(Wait::Forever)?.octets(), 8);
/// queue.enqueue(refused.item, Wait::Never)?;
/// queue.close(); // what is queued can still be taken
/// assert_eq!(queue.dequeue(Wait::Forever)?.octets(), 1);
/// assert_eq!(queue.dequeue(Wait::Forever).unwrap_err(), DequeueError::Closed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A position does not compile:
///
/// ```compile_fail,E0061
/// use spandrel_stream::{LockFreeQueue, Message, Position, Wait, WaterMarks};
///
/// let queue = LockFreeQueue::<Message>::new(WaterMarks::DEFAULT);
/// _ = queue.enqueue(Message::data(b"1"[..].into()), Position::Head, Wait::Never);
/// ```
pub struct LockFreeQueue<T> {
    ring: OnceLock<ArrayQueue<(T, Weight)>>,
    /// Items for which the ring has no room, behind those that are there.
    overflow: Mutex<VecDeque<(T, Weight)>>,
    producers: CachePadded<Producers>,
    /// The sum of the weights of all items taken.
    taken: CachePadded<AtomicU64>,
    shared: CachePadded<Shared>,
    not_empty: CachePadded<EventCount>,
    not_full: CachePadded<EventCount>,
}

/// The words that producers change.
#[derive(Default)]
struct Producers {
    /// The sum of the weights of all items, with `CLOSED` and `CONTROLLED`.
    reserved: AtomicU64,
    /// A former value of `taken`.
    known_taken: AtomicU64,
}

/// The words that rarely change.
struct Shared {
    high: AtomicUsize,
    low: AtomicUsize,
    messages: AtomicUsize,
    is_paused: AtomicBool,
    pulses: AtomicU64,
    /// The items that were queued beyond the limits and not taken since then.
    beyond: AtomicUsize,
    /// The number of items in the overflow, changed with its lock held.
    overflowing: AtomicUsize,
    /// Counts the items beyond the limits, with those of other queues.
    excess: Mutex<Option<Arc<Excess>>>,
}

impl Shared {
    fn set_marks(&self, marks: WaterMarks) {
        self.high.store(marks.high.min(usize::try_from(MOST_OCTETS).unwrap_or(usize::MAX)), Ordering::SeqCst);
        self.low.store(marks.low.min(marks.high), Ordering::SeqCst);
        self.messages.store(marks.messages, Ordering::SeqCst);
    }

    fn marks(&self) -> WaterMarks {
        let load = |mark: &AtomicUsize| mark.load(Ordering::Relaxed);
        WaterMarks { high: load(&self.high), low: load(&self.low), messages: load(&self.messages) }
    }

    /// So many items have left the queue.
    fn take_from_excess(&self, items: usize) {
        let mut left = 0;
        let subtract = |beyond: usize| {
            left = beyond.min(items);
            Some(beyond - left)
        };
        _ = self.beyond.fetch_update(Ordering::SeqCst, Ordering::SeqCst, subtract);
        let excess = self.excess.lock().clone();
        excess.inspect(|excess| excess.subtract(left));
    }
}

/// Whether flow control has ended where a queue holds `present`.
#[inline]
fn is_low(present: Weight, marks: &WaterMarks) -> bool {
    let octets = present.octets();
    present.items() == 0 || (octets <= marks.low && octets < marks.high)
}

/// Whether a queue that holds `present` takes no further item.
#[inline]
fn is_full(reserved: u64, present: Weight, marks: &WaterMarks) -> bool {
    present.items() >= marks.messages.min(MOST_ITEMS) || (reserved & CONTROLLED != 0 && !is_low(present, marks))
}

impl<T: Queued> LockFreeQueue<T> {
    /// Creates an empty queue with these water marks.
    #[must_use]
    pub fn new(marks: WaterMarks) -> Self {
        let shared = Shared {
            high: AtomicUsize::new(0),
            low: AtomicUsize::new(0),
            messages: AtomicUsize::new(0),
            is_paused: AtomicBool::new(false),
            pulses: AtomicU64::new(0),
            beyond: AtomicUsize::new(0),
            overflowing: AtomicUsize::new(0),
            excess: Mutex::new(None),
        };
        shared.set_marks(marks);
        Self {
            ring: OnceLock::new(),
            overflow: Mutex::default(),
            producers: CachePadded::default(),
            taken: CachePadded::new(AtomicU64::new(0)),
            shared: CachePadded::new(shared),
            not_empty: CachePadded::default(),
            not_full: CachePadded::default(),
        }
    }

    /// Queues an item behind all others; waits while the queue is full.
    ///
    /// # Errors
    /// [`EnqueueError`] with the item.
    pub fn enqueue(&self, item: T, wait: Wait) -> Result<(), EnqueueError<T>> {
        let weight = Weight::one(item.octets());
        let mut reserved = self.reserve(weight);
        if reserved == Err(EnqueueFailure::Full) && wait != Wait::Never {
            reserved = self.reserve_waiting(weight, wait.end());
        }
        if let Err(reason) = reserved {
            return Err(EnqueueError { reason, item });
        }
        self.push(item, weight);
        // One producer wakes the next while there is room.
        self.notify_producer();
        Ok(())
    }

    /// Counts items beyond the limits.
    pub(crate) fn set_excess(&self, excess: Arc<Excess>) {
        *self.shared.excess.lock() = Some(excess);
    }

    /// Queues an item although the queue may be full, which exceeds its limits.
    ///
    /// # Errors
    /// [`EnqueueError`] with the item, if the queue is closed.
    pub(crate) fn enqueue_beyond(&self, item: T) -> Result<(), EnqueueError<T>> {
        let weight = Weight::one(item.octets());
        loop {
            match self.try_reserve(weight, false) {
                Some(Ok(())) => break,
                Some(Err(EnqueueFailure::Closed)) => {
                    return Err(EnqueueError { reason: EnqueueFailure::Closed, item });
                }
                Some(Err(EnqueueFailure::Full)) => {
                    // Counted first, so that its end is seen when it is taken.
                    self.shared.beyond.fetch_add(1, Ordering::SeqCst);
                    let excess = self.shared.excess.lock().clone();
                    excess.as_ref().inspect(|excess| excess.add());
                    if let Some(Ok(())) = self.try_reserve(weight, true) {
                        break;
                    }
                    self.shared.take_from_excess(1);
                }
                None => {}
            }
        }
        self.push(item, weight);
        Ok(())
    }

    /// Pushes an item whose place is reserved.
    #[inline]
    fn push(&self, item: T, weight: Weight) {
        let ring = self.ring.get().unwrap_or_else(|| self.make_ring());
        if self.shared.overflowing.load(Ordering::SeqCst) > 0 {
            self.push_overflow(ring, (item, weight));
        } else if let Err(item) = ring.push((item, weight)) {
            self.push_overflow(ring, item);
        }
        if !self.shared.is_paused.load(Ordering::SeqCst) {
            self.not_empty.notify_one();
        }
    }

    #[cold]
    fn make_ring(&self) -> &ArrayQueue<(T, Weight)> {
        let messages = self.shared.messages.load(Ordering::Relaxed);
        self.ring.get_or_init(|| ArrayQueue::new(messages.clamp(1, MOST_IN_RING)))
    }

    /// Pushes an item behind those in the overflow. An item of the same producer that is in the ring was
    /// pushed before it.
    #[cold]
    fn push_overflow(&self, ring: &ArrayQueue<(T, Weight)>, item: (T, Weight)) {
        let mut overflow = self.overflow.lock();
        let item = match overflow.is_empty() {
            true => ring.push(item).err(),
            false => Some(item),
        };
        overflow.extend(item);
        self.shared.overflowing.store(overflow.len(), Ordering::SeqCst);
    }

    /// Takes the first item that was pushed.
    #[inline]
    fn pop(&self) -> Option<(T, Weight)> {
        let ring = self.ring.get()?;
        ring.pop().or_else(|| self.pop_overflow(ring))
    }

    /// Takes the first item of the overflow, unless one has come into the ring since it was found empty: that
    /// may be an earlier one of the same producer.
    fn pop_overflow(&self, ring: &ArrayQueue<(T, Weight)>) -> Option<(T, Weight)> {
        if self.shared.overflowing.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut overflow = self.overflow.lock();
        let item = ring.pop().or_else(|| overflow.pop_front());
        self.shared.overflowing.store(overflow.len(), Ordering::SeqCst);
        item
    }

    /// Reserves the place of an item, or returns the reason for which there is none.
    #[inline]
    fn reserve(&self, weight: Weight) -> Result<(), EnqueueFailure> {
        loop {
            if let Some(done) = self.try_reserve(weight, false) {
                return done;
            }
        }
    }

    /// As [`reserve`](Self::reserve), also `beyond` the limits; `None` if another thread came first.
    #[inline]
    fn try_reserve(&self, weight: Weight, beyond: bool) -> Option<Result<(), EnqueueFailure>> {
        let reserved = self.producers.reserved.load(Ordering::SeqCst);
        if reserved & CLOSED != 0 {
            return Some(Err(EnqueueFailure::Closed));
        }
        let marks = self.shared.marks();
        let known = self.producers.known_taken.load(Ordering::Relaxed);
        let mut present = Weight::between(reserved, known);
        let is_above_high = |present: Weight| Weight(present.0.wrapping_add(weight.0)).octets() >= marks.high;
        if reserved & CONTROLLED != 0 || is_above_high(present) || present.items() >= marks.messages {
            let taken_items = self.taken.load(Ordering::SeqCst);
            if self.producers.reserved.load(Ordering::SeqCst) != reserved {
                return None; // `taken` may be newer
            }
            // A thread that comes late does not replace a newer value.
            let known_taken = &self.producers.known_taken;
            _ = known_taken.compare_exchange(known, taken_items, Ordering::SeqCst, Ordering::Relaxed);
            present = Weight::between(reserved, taken_items);
            if !beyond && is_full(reserved, present, &marks) {
                return Some(Err(EnqueueFailure::Full));
            }
        }
        let is_controlled = is_above_high(present) || (beyond && reserved & CONTROLLED != 0);
        let flags = if is_controlled { CONTROLLED } else { 0 };
        let next = (reserved & !CONTROLLED).wrapping_add(weight.0) | flags;
        let word = &self.producers.reserved;
        word.compare_exchange(reserved, next, Ordering::SeqCst, Ordering::Relaxed).ok().map(|_| Ok(()))
    }

    #[cold]
    fn reserve_waiting(&self, weight: Weight, end: WaitEnd) -> Result<(), EnqueueFailure> {
        loop {
            let may_end = || self.is_closed() || !self.is_full();
            let is_over = !spin_until(may_end) && !self.not_full.wait_until(end, may_end);
            match self.reserve(weight) {
                Err(EnqueueFailure::Full) if !is_over => {}
                done => return done,
            }
        }
    }

    /// Takes the first item; waits while there is none, or while the queue is paused.
    ///
    /// # Errors
    /// [`DequeueError`].
    #[inline]
    pub fn dequeue(&self, wait: Wait) -> Result<T, DequeueError> {
        match self.try_dequeue() {
            Err(DequeueError::Empty) if wait != Wait::Never => self.dequeue_after(&mut self.pulses(), wait.end()),
            done => done,
        }
    }

    /// The number of calls of [`pulse`](Self::pulse).
    pub(crate) fn pulses(&self) -> u64 {
        self.shared.pulses.load(Ordering::SeqCst)
    }

    /// As [`dequeue`](Self::dequeue), but a pulse after those that are known ends the wait even if it came
    /// before the call; the known ones are updated.
    pub(crate) fn dequeue_after(&self, known_pulses: &mut u64, end: WaitEnd) -> Result<T, DequeueError> {
        let pulses = *known_pulses;
        loop {
            // Before the attempt: a pulse during it ends the next wait.
            *known_pulses = self.pulses();
            match self.try_dequeue() {
                Err(DequeueError::Empty) if *known_pulses != pulses => return Err(DequeueError::Pulsed),
                Err(DequeueError::Empty) => {}
                done => return done,
            }
            let may_end = || self.is_closed() || self.pulses() != pulses || self.has_items();
            if matches!(end, WaitEnd::Now) || !spin_until(may_end) && !self.not_empty.wait_until(end, may_end) {
                return Err(DequeueError::Empty);
            }
        }
    }

    /// Takes the first item, if there is one.
    #[inline]
    fn try_dequeue(&self) -> Result<T, DequeueError> {
        loop {
            let is_held = self.shared.is_paused.load(Ordering::SeqCst) && !self.is_closed();
            if is_held {
                return Err(DequeueError::Empty);
            }
            if let Some((item, weight)) = self.pop() {
                self.taken.fetch_add(weight.0, Ordering::SeqCst);
                if self.shared.beyond.load(Ordering::SeqCst) > 0 {
                    self.shared.take_from_excess(1);
                }
                self.notify_producer();
                return Ok(item);
            }
            let (reserved, present) = self.present();
            if present.items() == 0 {
                let is_closed = reserved & CLOSED != 0;
                return Err(if is_closed { DequeueError::Closed } else { DequeueError::Empty });
            }
            // Another thread is about to push an item or to count one as taken.
            thread::yield_now();
        }
    }

    /// Wakes a producer if there is room.
    #[inline]
    fn notify_producer(&self) {
        if self.not_full.is_awaited() && !self.is_full() {
            self.not_full.notify_one();
        }
    }

    /// The word of the producers, and what the queue holds, at one time.
    fn present(&self) -> (u64, Weight) {
        let mut taken_items = self.taken.load(Ordering::SeqCst);
        loop {
            let reserved = self.producers.reserved.load(Ordering::SeqCst);
            match self.taken.load(Ordering::SeqCst) {
                unchanged if unchanged == taken_items => return (reserved, Weight::between(reserved, taken_items)),
                newer => taken_items = newer,
            }
        }
    }

    /// Whether a consumer can take an item.
    fn has_items(&self) -> bool {
        !self.shared.is_paused.load(Ordering::SeqCst) && self.present().1.items() > 0
    }

    /// Drops the items that are there; returns their number.
    pub fn flush(&self) -> usize {
        let mut count = 0;
        for _ in 0..self.len() {
            let Some((item, weight)) = self.pop() else { break };
            self.taken.fetch_add(weight.0, Ordering::SeqCst);
            drop(item);
            count += 1;
        }
        if self.shared.beyond.load(Ordering::SeqCst) > 0 {
            self.shared.take_from_excess(count);
        }
        self.not_full.notify_all();
        count
    }

    /// Refuses all further items and ends all waits. Items that are queued can still be taken, also while it
    /// is paused.
    pub fn close(&self) {
        self.producers.reserved.fetch_or(CLOSED, Ordering::SeqCst);
        self.not_full.notify_all();
        self.not_empty.notify_all();
    }

    /// Ends the waits of all consumers with [`DequeueError::Pulsed`].
    pub fn pulse(&self) {
        self.shared.pulses.fetch_add(1, Ordering::SeqCst);
        self.not_empty.notify_all();
    }

    /// Makes consumers wait (`true`), although there are items, or lets them go on.
    pub fn pause(&self, is_paused: bool) {
        self.shared.is_paused.store(is_paused, Ordering::SeqCst);
        self.not_empty.notify_all();
    }

    /// Replaces the water marks; waiting producers see the new ones.
    pub fn set_water_marks(&self, marks: WaterMarks) {
        let update = |change: &dyn Fn(u64, Weight) -> u64| {
            let update =
                |reserved| Some(change(reserved, Weight::between(reserved, self.taken.load(Ordering::SeqCst))));
            _ = self.producers.reserved.fetch_update(Ordering::SeqCst, Ordering::SeqCst, update);
        };
        // The end of flow control by the old marks.
        let old = self.shared.marks();
        update(&|reserved, present| if is_low(present, &old) { reserved & !CONTROLLED } else { reserved });
        self.shared.set_marks(marks);
        update(&|reserved, present| if present.octets() >= marks.high { reserved | CONTROLLED } else { reserved });
        self.not_full.notify_all();
    }

    /// The octets and items at which flow control begins and ends at present.
    pub fn water_marks(&self) -> WaterMarks {
        self.shared.marks()
    }

    /// The number of queued items; it may have changed by the time the caller sees it.
    pub fn len(&self) -> usize {
        self.present().1.items()
    }

    /// Whether no item is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The octets of the queued items, as [`Queued::octets`] counts them.
    pub fn octets(&self) -> usize {
        self.present().1.octets()
    }

    /// Whether flow control makes producers wait.
    pub fn is_full(&self) -> bool {
        let (reserved, present) = self.present();
        is_full(reserved, present, &self.shared.marks())
    }

    /// The number of threads that wait for it: producers and consumers.
    pub fn waiting(&self) -> usize {
        self.not_full.waiting() + self.not_empty.waiting()
    }

    /// None: it has no lock.
    pub(crate) fn lock_waits(&self) -> LockWaits {
        LockWaits::default()
    }

    /// Whether [`close`](Self::close) was called.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.producers.reserved.load(Ordering::SeqCst) & CLOSED != 0
    }
}

/// The looks at a condition, with growing pauses of some microseconds in total, before a thread sleeps.
const SPINS: usize = if cfg!(shuttle) { 0 } else { 8 };

/// Waits for a moment, as long as a wait of another kind would cost; returns whether the condition holds.
///
/// It does not yield the processor. On a busy one the thread would get it back after the time slices of others,
/// whereas a thread that sleeps gets it when it is notified. The model checker has no such moment: each of its
/// steps may be the last before the wait.
fn spin_until(is_done: impl Fn() -> bool) -> bool {
    let backoff = Backoff::new();
    (0..SPINS).any(|_| {
        let is_over = is_done();
        if !is_over {
            backoff.spin();
        }
        is_over
    })
}

impl<T> Drop for LockFreeQueue<T> {
    fn drop(&mut self) {
        self.shared.take_from_excess(usize::MAX);
    }
}

impl<T: Queued> Default for LockFreeQueue<T> {
    /// A queue with the default limits.
    fn default() -> Self {
        Self::new(WaterMarks::DEFAULT)
    }
}

impl<T: Queued> fmt::Debug for LockFreeQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockFreeQueue")
            .field("len", &self.len())
            .field("octets", &self.octets())
            .field("marks", &self.water_marks())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
