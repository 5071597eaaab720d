//! Queues of messages with flow control (paper 002, 2.3.3).

mod item;
mod state;

use std::fmt;

use crossbeam_utils::CachePadded;
use spandrel_sync::atomic::Ordering;
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, Guarded, Monitor, Mutex};

pub use self::item::{DequeueError, EnqueueError, EnqueueFailure, Position, Queued, WaterMarks};
use self::state::{Front, FrontItems, Looks, Signals, State};
use crate::LockWaits;
use crate::excess::Excess;
use crate::wait::{Wait, WaitEnd};

/// A queue with flow control, for several producers and consumers (`ACE_Message_Queue`).
///
/// `L` is the locking strategy: [`Mutex`], [`AdaptiveMutex`](spandrel_sync::AdaptiveMutex), or
/// [`NullMutex`](spandrel_sync::NullMutex) for one thread alone, whose waits fail at once. Producers and consumers have
/// a lock each. Before a thread sleeps, it looks at the queue a few times within some microseconds, unless that was in
/// vain in its last waits.
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
    front: CachePadded<Front<T, L>>,
    state: CachePadded<Guarded<State<T>, L>>,
    signals: CachePadded<Signals>,
    not_empty: L::Condition,
    not_full: L::Condition,
}

impl<T: Queued, L: Monitor> MessageQueue<T, L> {
    /// Creates an empty queue with these water marks.
    #[must_use]
    pub fn new(marks: WaterMarks) -> Self {
        Self {
            front: CachePadded::default(),
            state: CachePadded::new(Guarded::new(State::new(marks))),
            signals: CachePadded::default(),
            not_empty: L::Condition::default(),
            not_full: L::Condition::default(),
        }
    }

    /// Queues an item; waits while the queue is full.
    ///
    /// # Errors
    /// [`EnqueueError`] with the item.
    pub fn enqueue(&self, item: T, position: Position, wait: Wait) -> Result<(), EnqueueError<T>> {
        if position != Position::Tail {
            return self.enqueue_among(item, position, wait.end());
        }
        let mut state = self.lock_state();
        let mut refusal = self.refusal(&mut state);
        if refusal == Some(EnqueueFailure::Full) {
            (state, refusal) = self.wait_for_room(state, wait.end());
        }
        if let Some(reason) = refusal {
            return Err(EnqueueError { reason, item });
        }
        self.insert(state, item, position);
        Ok(())
    }

    /// Takes the lock of the state; a wait for it is counted.
    #[inline]
    fn lock_state(&self) -> L::Guard<'_, State<T>> {
        self.state.try_lock().unwrap_or_else(|| lock_waiting(&self.state, |state| &mut state.lock_waits))
    }

    /// Takes the lock of the front; a wait for it is counted.
    #[inline]
    fn lock_front(&self) -> L::Guard<'_, FrontItems<T>> {
        let front = &self.front.items;
        front.try_lock().unwrap_or_else(|| lock_waiting(front, |front| &mut front.lock_waits))
    }

    /// Queues an item at a place that may be in the front.
    #[cold]
    fn enqueue_among(&self, item: T, position: Position, end: WaitEnd) -> Result<(), EnqueueError<T>> {
        loop {
            let front = self.front.items.lock();
            let mut state = self.state.lock();
            let mut refusal = self.refusal(&mut state);
            if refusal.is_none() {
                self.take_back(front, &mut state);
                self.insert(state, item, position);
                return Ok(());
            }
            drop(front);
            if refusal == Some(EnqueueFailure::Full) {
                refusal = self.wait_for_room(state, end).1;
            }
            if let Some(reason) = refusal {
                return Err(EnqueueError { reason, item });
            }
        }
    }

    /// Makes the items of the front the first ones behind it.
    fn take_back(&self, mut front: L::Guard<'_, FrontItems<T>>, state: &mut State<T>) {
        if !front.items.is_empty() {
            front.items.append(&mut state.items);
            std::mem::swap(&mut front.items, &mut state.items);
            state.octets = state.octets.saturating_add(self.front.octets.load(Ordering::Relaxed));
        }
        (state.front_len, state.front_octets) = (0, 0);
        self.front.set(0, 0);
    }

    /// Makes the counts of all items those of this moment.
    fn refresh(&self, state: &mut State<T>) {
        state.front_len = self.front.len.load(Ordering::Relaxed);
        state.front_octets = self.front.octets.load(Ordering::Relaxed);
    }

    /// Whether a producer has to wait.
    fn is_full_now(&self, state: &mut State<T>) -> bool {
        if !state.is_flow_controlled && state.len() < state.marks.messages {
            return false;
        }
        self.refresh(state);
        state.is_flow_controlled = state.is_flow_controlled && !state.is_low();
        state.is_flow_controlled || state.len() >= state.marks.messages
    }

    /// The reason for which no item is queued now.
    fn refusal(&self, state: &mut State<T>) -> Option<EnqueueFailure> {
        match state.is_closed {
            true => Some(EnqueueFailure::Closed),
            false => self.is_full_now(state).then_some(EnqueueFailure::Full),
        }
    }

    /// Waits until the queue is closed or has room; returns the reason for which there is none at the end.
    #[cold]
    fn wait_for_room<'q>(
        &'q self,
        mut state: L::Guard<'q, State<T>>,
        end: WaitEnd,
    ) -> (L::Guard<'q, State<T>>, Option<EnqueueFailure>) {
        if matches!(end, WaitEnd::Now) {
            return (state, Some(EnqueueFailure::Full));
        }
        let mut looks = state.producers.looks();
        drop(state);
        let mut is_over = false;
        loop {
            // A consumer takes an item, and looks at the signals, with the lock of the front held. So it has taken it
            // before this look at the counts, or finds that a producer waits.
            let front = self.front.items.lock();
            let mut state = self.state.lock();
            let refusal = self.refusal(&mut state);
            if refusal != Some(EnqueueFailure::Full) || is_over {
                state.producers.looked(looks, true);
                return (state, refusal);
            }
            let Err((mut state, front)) = looks.next((state, front)) else { continue };
            state.producers.looked(std::mem::replace(&mut looks, Looks::NONE), false);
            state.producers.waiting += 1;
            state.signal(&self.signals);
            drop(front);
            is_over = wait_once::<_, L>(&self.not_full, &mut state, end);
            state.producers.waiting -= 1;
            state.producers.woken();
            state.signal(&self.signals);
        }
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
        let front = (position != Position::Tail).then(|| self.front.items.lock());
        let mut state = self.state.lock();
        if let Some(front) = front {
            self.take_back(front, &mut state);
        }
        if state.is_closed {
            return Err(EnqueueError { reason: EnqueueFailure::Closed, item });
        }
        if self.is_full_now(&mut state) {
            state.beyond += 1;
            state.excess.as_ref().inspect(|excess| excess.add());
            state.signal(&self.signals);
        }
        self.insert(state, item, position);
        Ok(())
    }

    /// Inserts the item, and wakes a consumer.
    fn insert(&self, mut state: L::Guard<'_, State<T>>, item: T, position: Position) {
        let is_first = state.notification.is_some() && {
            self.refresh(&mut state);
            state.len() == 0
        };
        state.insert(item, position);
        if state.is_above_high() {
            self.refresh(&mut state);
            state.is_flow_controlled |= state.is_above_high();
        }
        let notify_consumer = !state.is_paused && state.consumers.notify();
        // One producer wakes the next while there is room.
        let notify_producer = self.next_producer(&mut state);
        let notification = if is_first { state.notification.clone() } else { None };
        drop(state);
        if notify_consumer {
            L::notify_one(&self.not_empty);
        }
        if notify_producer {
            L::notify_one(&self.not_full);
        }
        notification.inspect(|notify| notify());
    }

    /// Whether a producer is to be notified, since there is room for it; the caller does that without the lock.
    #[inline]
    fn next_producer(&self, state: &mut State<T>) -> bool {
        let is_any = state.producers.waiting > state.producers.notified && !self.is_full_now(state);
        if is_any {
            state.producers.notified += 1;
            state.signal(&self.signals);
        }
        is_any
    }

    /// Takes the first item; waits while there is none, or while the queue is paused.
    ///
    /// # Errors
    /// [`DequeueError`].
    pub fn dequeue(&self, wait: Wait) -> Result<T, DequeueError> {
        self.dequeue_after(&mut self.pulses(), wait.end())
    }

    /// The number of calls of [`pulse`](Self::pulse).
    #[inline]
    pub(crate) fn pulses(&self) -> u64 {
        self.signals.pulses.load(Ordering::SeqCst)
    }

    /// As [`dequeue`](Self::dequeue), but a pulse after those that are known ends the wait even if it came
    /// before the call; the known ones are updated.
    pub(crate) fn dequeue_after(&self, known_pulses: &mut u64, end: WaitEnd) -> Result<T, DequeueError> {
        let pulses = std::mem::replace(known_pulses, self.pulses());
        let mut is_over = matches!(end, WaitEnd::Now);
        let mut looks: Option<Looks> = None;
        loop {
            let mut front = self.lock_front();
            if !front.is_paused
                && let Some(item) = self.pop(&mut front)
            {
                let need_look = self.signals.need_look(front.items.len(), self.front.octets.load(Ordering::Relaxed));
                drop(front);
                if need_look {
                    self.taken(self.state.lock());
                }
                return Ok(item);
            }
            let mut state = self.lock_state();
            if !state.is_paused || state.is_closed {
                if front.items.is_empty() && !state.items.is_empty() {
                    std::mem::swap(&mut front.items, &mut state.items);
                    (state.front_len, state.front_octets) = (front.items.len(), std::mem::take(&mut state.octets));
                    self.front.set(state.front_len, state.front_octets);
                    // With the lock of the front held, so that the next consumer compares with the new counts.
                    state.signal(&self.signals);
                }
                if let Some(item) = self.pop(&mut front) {
                    drop(front);
                    if let Some(looks) = looks {
                        state.consumers.looked(looks, true);
                    }
                    self.taken(state);
                    return Ok(item);
                }
            }
            drop(front);
            *known_pulses = self.pulses();
            if state.is_closed {
                return Err(DequeueError::Closed);
            }
            if *known_pulses != pulses {
                return Err(DequeueError::Pulsed);
            }
            if is_over {
                return Err(DequeueError::Empty);
            }
            let looks = looks.get_or_insert_with(|| state.consumers.looks());
            let Err(mut state) = looks.next(state) else { continue };
            state.consumers.looked(std::mem::replace(looks, Looks::NONE), false);
            let may_end = |state: &State<T>| {
                let is_any = || !state.items.is_empty() || self.front.len.load(Ordering::Relaxed) > 0;
                state.is_closed || self.pulses() != pulses || (!state.is_paused && is_any())
            };
            state.consumers.waiting += 1;
            while !is_over {
                is_over = wait_once::<_, L>(&self.not_empty, &mut state, end);
                state.consumers.woken();
                if may_end(&state) {
                    break;
                }
            }
            state.consumers.waiting -= 1;
        }
    }

    /// Takes the first item of the front.
    #[inline]
    fn pop(&self, front: &mut FrontItems<T>) -> Option<T> {
        let item = front.items.pop_front()?;
        let octets = self.front.octets.load(Ordering::Relaxed).saturating_sub(item.octets());
        self.front.set(front.items.len(), octets);
        Some(item)
    }

    /// Accounts for an item that was taken, and wakes a producer if there is room for it.
    fn taken(&self, mut state: L::Guard<'_, State<T>>) {
        state.take_from_excess(1);
        let notify_producer = self.next_producer(&mut state);
        state.signal(&self.signals);
        drop(state);
        if notify_producer {
            L::notify_one(&self.not_full);
        }
    }

    /// Drops all items; returns their number.
    pub fn flush(&self) -> usize {
        let front = self.front.items.lock();
        let mut state = self.state.lock();
        self.take_back(front, &mut state);
        let items = std::mem::take(&mut state.items);
        state.take_from_excess(items.len());
        state.signal(&self.signals);
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
        let state = self.state.lock();
        self.signals.pulses.fetch_add(1, Ordering::SeqCst);
        drop(state);
        L::notify_all(&self.not_empty);
    }

    /// Makes consumers wait (`true`), although there are items, or lets them go on.
    pub fn pause(&self, is_paused: bool) {
        let mut front = self.front.items.lock();
        let mut state = self.state.lock();
        (front.is_paused, state.is_paused) = (is_paused, is_paused);
        drop((state, front));
        L::notify_all(&self.not_empty);
    }

    /// Sets the function that is called when an item enters the empty queue, or none.
    ///
    /// It serves an event loop, which then takes items until the queue is empty: a reactor's handler is
    /// notified by it. It runs in the producer's thread, without a lock.
    pub fn set_notification(&self, notification: Option<Arc<dyn Fn() + Send + Sync>>) {
        self.state.lock().notification = notification;
    }

    /// Replaces the water marks; waiting producers see the new ones.
    pub fn set_water_marks(&self, marks: WaterMarks) {
        let mut state = self.state.lock();
        self.is_full_now(&mut state); // the end of flow control by the old marks
        self.refresh(&mut state);
        state.marks = WaterMarks { low: marks.low.min(marks.high), ..marks };
        let is_controlled = state.is_above_high() || state.is_flow_controlled;
        state.is_flow_controlled = is_controlled && !state.is_low();
        drop(state);
        L::notify_all(&self.not_full);
    }

    /// The octets and items at which flow control begins and ends at present.
    pub fn water_marks(&self) -> WaterMarks {
        self.state.lock().marks
    }

    /// The number of queued items; it may have changed by the time the caller sees it.
    pub fn len(&self) -> usize {
        let mut state = self.state.lock();
        self.refresh(&mut state);
        state.len()
    }

    /// Whether no item is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The octets of the queued items, as [`Queued::octets`] counts them.
    pub fn octets(&self) -> usize {
        let mut state = self.state.lock();
        self.refresh(&mut state);
        state.octets()
    }

    /// Whether flow control makes producers wait.
    pub fn is_full(&self) -> bool {
        self.is_full_now(&mut self.state.lock())
    }

    /// The number of threads that wait for it: producers and consumers.
    pub fn waiting(&self) -> usize {
        let state = self.state.lock();
        (state.producers.waiting + state.consumers.waiting) as usize
    }

    /// The waits of producers and consumers for the queue's locks.
    pub fn lock_waits(&self) -> LockWaits {
        let front = self.front.items.lock().lock_waits;
        front + self.state.lock().lock_waits
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }
}

/// Takes a lock that another thread holds, and counts the wait.
#[cold]
fn lock_waiting<V, L: Monitor>(lock: &Guarded<V, L>, waits: fn(&mut V) -> &mut LockWaits) -> L::Guard<'_, V> {
    let begin = Instant::now();
    let mut guard = lock.lock();
    waits(&mut guard).record(begin.elapsed());
    guard
}

/// Waits for a notification once; returns whether the wait is over without one.
fn wait_once<T, L: Monitor>(condition: &L::Condition, state: &mut L::Guard<'_, State<T>>, end: WaitEnd) -> bool {
    match end {
        WaitEnd::Now => true,
        WaitEnd::At(deadline) => match deadline.remaining() {
            // Without another thread, the wait would never end.
            None => L::wait(condition, state).is_err(),
            Some(left) => left.is_zero() || L::wait_for(condition, state, left).timed_out(),
        },
    }
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
                .field("len", &(state.items.len() + self.front.len.load(Ordering::Relaxed)))
                .field("octets", &state.octets.saturating_add(self.front.octets.load(Ordering::Relaxed)))
                .field("marks", &state.marks)
                .field("is_closed", &state.is_closed)
                .finish_non_exhaustive(),
            None => f.write_str("MessageQueue(<locked>)"),
        }
    }
}
