//! Queues of messages with flow control (paper 002, 2.3.3).

use std::collections::VecDeque;
use std::fmt;

use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, Guarded, Monitor, Mutex};

use crate::LockWaits;
use crate::excess::Excess;
use crate::wait::{Wait, WaitEnd};

/// An item of a [`MessageQueue`].
pub trait Queued {
    /// The octets for which it counts against the water marks.
    fn octets(&self) -> usize;

    /// The priority for [`Position::Priority`]; higher numbers come first.
    fn priority(&self) -> u32 {
        0
    }

    /// The time for [`Position::Deadline`]; items without one come last.
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// The place at which an item enters a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Behind all others.
    Tail,
    /// Before all others.
    Head,
    /// Behind the last item of the same or a higher priority.
    Priority,
    /// Behind the last item with the same or an earlier deadline.
    Deadline,
}

/// The limits of a queue.
///
/// A queue that has reached `high` octets is *flow controlled*: producers wait until its octets have fallen
/// to `low` or less. So it holds at most `high` octets and one item more. It also holds at most `messages`
/// items, because items without octets need memory, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaterMarks {
    /// The high water mark in octets.
    pub high: usize,
    /// The low water mark in octets, at most `high`.
    pub low: usize,
    /// The greatest number of items.
    pub messages: usize,
}

impl WaterMarks {
    /// 64 KiB and 32 KiB, and 4,096 items.
    pub const DEFAULT: Self = Self { high: 64 << 10, low: 32 << 10, messages: 4096 };

    /// These water marks in octets, and 4,096 items. A low water mark above the high one counts as equal to
    /// it.
    #[must_use]
    pub const fn new(high: usize, low: usize) -> Self {
        Self { high, low: if low < high { low } else { high }, messages: Self::DEFAULT.messages }
    }

    /// Sets the greatest number of items.
    #[must_use]
    pub const fn messages(mut self, messages: usize) -> Self {
        self.messages = messages;
        self
    }
}

impl Default for WaterMarks {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The reason for which an item was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueFailure {
    /// The queue was flow controlled for all the time that the operation could wait.
    Full,
    /// The queue is closed.
    Closed,
}

/// An item that was not queued.
#[derive(thiserror::Error)]
#[error("the item was not queued: {}", match reason {
    EnqueueFailure::Full => "the queue is full",
    EnqueueFailure::Closed => "the queue is closed",
})]
pub struct EnqueueError<T> {
    /// The reason.
    pub reason: EnqueueFailure,
    /// The item.
    pub item: T,
}

impl<T> fmt::Debug for EnqueueError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The reason for which no item was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DequeueError {
    /// There was none for all the time that the operation could wait, or the queue was paused.
    #[error("the queue is empty")]
    Empty,
    /// The queue is closed and empty.
    #[error("the queue is closed")]
    Closed,
    /// [`MessageQueue::pulse`] was called during the wait.
    #[error("the wait was ended")]
    Pulsed,
}

/// A queue with flow control, for several producers and consumers (`ACE_Message_Queue`).
///
/// `L` is the locking strategy: [`Mutex`], [`AdaptiveMutex`](spandrel_sync::AdaptiveMutex), or
/// [`NullMutex`](spandrel_sync::NullMutex) for one thread alone, whose waits fail at once.
///
/// ```
/// use spandrel_stream::{DequeueError, EnqueueFailure, Message, MessageQueue, Position, Wait, WaterMarks};
///
/// let queue = MessageQueue::<Message>::new(WaterMarks::new(8, 4));
/// let message = |text: &[u8]| Message::data(text.into());
/// queue.enqueue(message(b"12345678"), Position::Tail, Wait::Never)?;
/// let refused = queue.enqueue(message(b"9"), Position::Tail, Wait::Never).unwrap_err();
/// assert_eq!(refused.reason, EnqueueFailure::Full);
///
/// assert_eq!(queue.dequeue(Wait::Forever)?.octets(), 8);
/// queue.enqueue(refused.item, Position::Tail, Wait::Never)?;
/// queue.close(); // what is queued can still be taken
/// assert_eq!(queue.dequeue(Wait::Forever)?.octets(), 1);
/// assert_eq!(queue.dequeue(Wait::Forever).unwrap_err(), DequeueError::Closed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MessageQueue<T, L: Monitor = Mutex> {
    state: Guarded<State<T>, L>,
    not_empty: L::Condition,
    not_full: L::Condition,
}

/// In the order of its fields: those that each item changes come first, so that a lock's new holder fetches
/// few lines of memory from the other processor's cache.
#[repr(C)]
struct State<T> {
    items: VecDeque<T>,
    octets: usize,
    consumers: Waiters,
    producers: Waiters,
    /// The high water mark was reached, and the low one not since then.
    is_flow_controlled: bool,
    is_closed: bool,
    is_paused: bool,
    marks: WaterMarks,
    /// The number of calls of `pulse`.
    pulses: u64,
    notification: Option<Notification>,
    /// The items that were queued beyond the limits and not taken since then.
    beyond: usize,
    /// Counts them, with those of other queues.
    excess: Option<Arc<Excess>>,
    lock_waits: LockWaits,
}

/// The threads that wait for one condition.
///
/// A thread that was notified may need long until it runs. Until then it is notified by no further item,
/// which would cost a system call for each.
#[derive(Default)]
struct Waiters {
    waiting: u32,
    /// Those that were notified and have not run since then. Never too many.
    notified: u32,
}

impl Waiters {
    /// Whether one is to be notified, which the caller does without the lock.
    fn notify(&mut self) -> bool {
        let is_any = self.waiting > self.notified;
        self.notified += u32::from(is_any);
        is_any
    }
}

impl<T> Drop for State<T> {
    fn drop(&mut self) {
        self.take_from_excess(usize::MAX);
    }
}

/// The function that is called when an item enters an empty queue.
type Notification = Arc<dyn Fn() + Send + Sync>;

impl<T> State<T> {
    /// So many items have left the queue.
    fn take_from_excess(&mut self, items: usize) {
        if self.beyond == 0 {
            return;
        }
        let fewer = self.beyond.min(items);
        self.beyond -= fewer;
        self.excess.as_ref().inspect(|excess| excess.subtract(fewer));
    }

    fn consumers(&mut self) -> &mut Waiters {
        &mut self.consumers
    }

    fn producers(&mut self) -> &mut Waiters {
        &mut self.producers
    }

    /// Whether a producer has to wait.
    fn is_full(&self) -> bool {
        self.is_flow_controlled || self.items.len() >= self.marks.messages
    }

    fn is_above_high(&self) -> bool {
        self.octets >= self.marks.high
    }
}

impl<T: Queued> State<T> {
    fn insert(&mut self, item: T, position: Position) {
        self.octets = self.octets.saturating_add(item.octets());
        self.is_flow_controlled |= self.is_above_high();
        match position {
            Position::Tail => self.items.push_back(item),
            Position::Head => self.items.push_front(item),
            Position::Priority => {
                let place = self.place(|other| other.priority() >= item.priority());
                self.items.insert(place, item);
            }
            Position::Deadline => {
                let deadline = item.deadline();
                let place = self.place(|other| match (other.deadline(), deadline) {
                    (Some(other), Some(deadline)) => other <= deadline,
                    (Some(_), None) | (None, None) => true,
                    (None, Some(_)) => false,
                });
                self.items.insert(place, item);
            }
        }
    }

    /// The place behind the last item that comes first.
    fn place(&self, comes_first: impl Fn(&T) -> bool) -> usize {
        self.items.iter().rposition(comes_first).map_or(0, |last| last + 1)
    }

    /// Accounts for an item that was taken; returns whether producers may go on.
    fn taken(&mut self, item: &T) -> bool {
        let was_full = self.is_full() || self.items.len() + 1 >= self.marks.messages;
        self.take_from_excess(1);
        self.octets = self.octets.saturating_sub(item.octets());
        if self.octets <= self.marks.low {
            self.is_flow_controlled = false;
        }
        was_full && !self.is_full()
    }
}

impl<T: Queued, L: Monitor> MessageQueue<T, L> {
    /// An empty queue.
    #[must_use]
    pub fn new(marks: WaterMarks) -> Self {
        let state = State {
            items: VecDeque::new(),
            octets: 0,
            marks: WaterMarks { low: marks.low.min(marks.high), ..marks },
            is_flow_controlled: false,
            is_closed: false,
            is_paused: false,
            pulses: 0,
            consumers: Waiters::default(),
            producers: Waiters::default(),
            notification: None,
            beyond: 0,
            excess: None,
            lock_waits: LockWaits::default(),
        };
        Self { state: Guarded::new(state), not_empty: L::Condition::default(), not_full: L::Condition::default() }
    }

    /// Takes the lock; a wait for it is counted.
    #[inline]
    fn lock(&self) -> L::Guard<'_, State<T>> {
        match self.state.try_lock() {
            Some(state) => state,
            None => self.lock_waiting(),
        }
    }

    #[cold]
    fn lock_waiting(&self) -> L::Guard<'_, State<T>> {
        let begin = Instant::now();
        let mut state = self.state.lock();
        state.lock_waits.count += 1;
        state.lock_waits.time += begin.elapsed();
        state
    }

    /// Queues an item; waits while the queue is full.
    ///
    /// # Errors
    /// [`EnqueueError`] with the item.
    pub fn enqueue(&self, item: T, position: Position, wait: Wait) -> Result<(), EnqueueError<T>> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(EnqueueError { reason: EnqueueFailure::Closed, item });
        }
        if state.is_full() {
            let may_end = |state: &State<T>| state.is_closed || !state.is_full();
            let ended = wait_until::<_, L>(&self.not_full, &mut state, State::producers, wait.end(), may_end);
            let reason = if state.is_closed { Some(EnqueueFailure::Closed) } else { None };
            if let Some(reason) = reason.or_else(|| (!ended).then_some(EnqueueFailure::Full)) {
                return Err(EnqueueError { reason, item });
            }
        }
        self.insert(state, item, position);
        Ok(())
    }

    /// Counts items beyond the limits.
    pub(crate) fn set_excess(&self, excess: Arc<Excess>) {
        self.state.lock().excess = Some(excess);
    }

    /// Queues an item although the queue may be full, which exceeds its limits.
    ///
    /// # Errors
    /// [`EnqueueError`] with the item, if the queue is closed.
    pub(crate) fn enqueue_beyond(&self, item: T, position: Position) -> Result<(), EnqueueError<T>> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(EnqueueError { reason: EnqueueFailure::Closed, item });
        }
        if state.is_full() {
            state.beyond += 1;
            state.excess.as_ref().inspect(|excess| excess.add());
        }
        self.insert(state, item, position);
        Ok(())
    }

    /// Inserts the item, and wakes a consumer.
    fn insert(&self, mut state: L::Guard<'_, State<T>>, item: T, position: Position) {
        let was_empty = state.items.is_empty();
        state.insert(item, position);
        let notify_consumer = !state.is_paused && state.consumers.notify();
        // One producer wakes the next while there is room.
        let notify_producer = !state.is_full() && state.producers.notify();
        let notification = if was_empty { state.notification.clone() } else { None };
        drop(state);
        if notify_consumer {
            L::notify_one(&self.not_empty);
        }
        if notify_producer {
            L::notify_one(&self.not_full);
        }
        notification.inspect(|notify| notify());
    }

    /// Takes the first item; waits while there is none, or while the queue is paused.
    ///
    /// # Errors
    /// [`DequeueError`].
    pub fn dequeue(&self, wait: Wait) -> Result<T, DequeueError> {
        let state = self.lock();
        let mut pulses = state.pulses;
        self.dequeue_locked(state, &mut pulses, wait.end())
    }

    /// The number of calls of [`pulse`](Self::pulse).
    pub(crate) fn pulses(&self) -> u64 {
        self.state.lock().pulses
    }

    /// As [`dequeue`](Self::dequeue), but a pulse after those that are known ends the wait even if it came
    /// before the call; the known ones are updated.
    pub(crate) fn dequeue_after(&self, known_pulses: &mut u64, end: WaitEnd) -> Result<T, DequeueError> {
        self.dequeue_locked(self.lock(), known_pulses, end)
    }

    fn dequeue_locked(
        &self,
        mut state: L::Guard<'_, State<T>>,
        known_pulses: &mut u64,
        end: WaitEnd,
    ) -> Result<T, DequeueError> {
        let pulses = std::mem::replace(known_pulses, state.pulses);
        let is_ready = |state: &State<T>| !state.items.is_empty() && !state.is_paused;
        if !is_ready(&state) {
            let may_end = |state: &State<T>| state.is_closed || state.pulses != pulses || is_ready(state);
            if !may_end(&state) {
                wait_until::<_, L>(&self.not_empty, &mut state, State::consumers, end, may_end);
            }
            *known_pulses = state.pulses;
        }
        if is_ready(&state) || (state.is_closed && !state.items.is_empty()) {
            let item = state.items.pop_front().expect("it is not empty");
            let notify_producer = state.taken(&item) && state.producers.notify();
            drop(state);
            if notify_producer {
                L::notify_one(&self.not_full);
            }
            return Ok(item);
        }
        Err(if state.is_closed {
            DequeueError::Closed
        } else if state.pulses != pulses {
            DequeueError::Pulsed
        } else {
            DequeueError::Empty
        })
    }

    /// Drops all items; returns their number.
    pub fn flush(&self) -> usize {
        let mut state = self.state.lock();
        let items = std::mem::take(&mut state.items);
        state.take_from_excess(items.len());
        state.octets = 0;
        state.is_flow_controlled = false;
        drop(state);
        L::notify_all(&self.not_full);
        items.len() // they are dropped without the lock
    }

    /// Refuses all further items and ends all waits. Items that are queued can still be taken, also while it
    /// is paused.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        L::notify_all(&self.not_full);
        L::notify_all(&self.not_empty);
    }

    /// Ends the waits of all consumers with [`DequeueError::Pulsed`].
    pub fn pulse(&self) {
        self.state.lock().pulses += 1;
        L::notify_all(&self.not_empty);
    }

    /// Makes consumers wait (`true`), although there are items, or lets them go on.
    pub fn pause(&self, is_paused: bool) {
        self.state.lock().is_paused = is_paused;
        L::notify_all(&self.not_empty);
    }

    /// Sets the function that is called when an item enters the empty queue, or none.
    ///
    /// It serves an event loop, which then takes items until the queue is empty: a reactor's handler is
    /// notified by it. It runs in the producer's thread, without a lock.
    pub fn set_notification(&self, notification: Option<Arc<dyn Fn() + Send + Sync>>) {
        self.state.lock().notification = notification;
    }

    /// Changes the limits.
    pub fn set_water_marks(&self, marks: WaterMarks) {
        let mut state = self.state.lock();
        state.marks = WaterMarks { low: marks.low.min(marks.high), ..marks };
        let is_controlled = state.is_above_high() || state.is_flow_controlled;
        state.is_flow_controlled = is_controlled && state.octets > state.marks.low;
        drop(state);
        L::notify_all(&self.not_full);
    }

    /// The limits.
    pub fn water_marks(&self) -> WaterMarks {
        self.state.lock().marks
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.state.lock().items.len()
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The octets of all items.
    pub fn octets(&self) -> usize {
        self.state.lock().octets
    }

    /// Whether producers wait.
    pub fn is_full(&self) -> bool {
        self.state.lock().is_full()
    }

    /// The number of threads that wait for it: producers and consumers.
    pub fn waiting(&self) -> usize {
        let state = self.state.lock();
        (state.producers.waiting + state.consumers.waiting) as usize
    }

    /// The waits of producers and consumers for the queue's lock.
    pub fn lock_waits(&self) -> LockWaits {
        self.state.lock().lock_waits
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }
}

/// Waits until the condition holds; returns whether it does.
fn wait_until<T, L: Monitor>(
    condition: &L::Condition,
    state: &mut L::Guard<'_, State<T>>,
    waiters: fn(&mut State<T>) -> &mut Waiters,
    end: WaitEnd,
    is_done: impl Fn(&State<T>) -> bool,
) -> bool {
    waiters(state).waiting += 1;
    let done = loop {
        let is_over = match end {
            WaitEnd::Now => true,
            // Without another thread, the wait would never end.
            WaitEnd::Open => L::wait(condition, state).is_err(),
            WaitEnd::At(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                left.is_zero() || L::wait_for(condition, state, left).timed_out()
            }
        };
        let waiters = waiters(state);
        waiters.notified = waiters.notified.saturating_sub(1);
        if is_over || is_done(state) {
            break is_done(state);
        }
    };
    waiters(state).waiting -= 1;
    done
}

impl<T: Queued, L: Monitor> Default for MessageQueue<T, L> {
    /// A queue with the default limits.
    fn default() -> Self {
        Self::new(WaterMarks::DEFAULT)
    }
}

impl<T: Queued, L: Monitor> fmt::Debug for MessageQueue<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state.try_read() {
            Some(state) => f
                .debug_struct("MessageQueue")
                .field("len", &state.items.len())
                .field("octets", &state.octets)
                .field("marks", &state.marks)
                .field("is_closed", &state.is_closed)
                .finish_non_exhaustive(),
            None => f.write_str("MessageQueue(<locked>)"),
        }
    }
}
