//! The components of a reactor, and one round of its leader: wait, and gather the items to dispatch.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::time::Duration;

use spandrel_ipc::Interest;
use spandrel_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use spandrel_sync::{Arc, Mutex};

use crate::demux::{Demultiplexer, ReadyHandle};
use crate::key::Key;
use crate::leader_followers::Leadership;
use crate::options::BeforeWait;
use crate::queue::{DueTimer, Expired, Item, ItemKind, ListedReady, Mail, Queue};
use crate::table::Table;
use crate::timer::{Clock, Full, Time, TimerId, TimerQueue};
use crate::wakeup::Wakeup;
use crate::{Options, ThreadStrategy};

/// No timer is scheduled.
const NEVER: u64 = u64::MAX;

/// The interval in the queue of a timer that expires once: 146 years.
const ONCE: Duration = Duration::from_nanos(1 << 62);

/// The interval of a timer in the queue.
fn queue_interval(interval: Option<Duration>) -> Duration {
    interval.filter(|interval| !interval.is_zero()).map_or(ONCE, |interval| interval.min(ONCE))
}

/// A reactor of handlers of type `H` and jobs of type `J`; their behaviour is not known here.
pub(crate) struct Core<H: ?Sized, J> {
    pub(crate) table: Table<H>,
    pub(crate) demux: Box<dyn Demultiplexer>,
    pub(crate) leadership: Leadership<Item<J>>,
    pub(crate) wakeup: Wakeup,
    pub(crate) queue: Queue<J>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) threads: ThreadStrategy,
    pub(crate) before_wait: Option<BeforeWait>,
    /// The number of threads inside of `run` and its variants.
    pub(crate) running: AtomicUsize,
    /// The number of waits that have begun.
    round: AtomicU64,
    /// Whether the last round did not look at the handles.
    has_passed_look: AtomicBool,
    /// The maximum number of items of each kind dispatched between two waits.
    max_events: usize,
    timers: Mutex<Box<dyn TimerQueue<(Key, u64)>>>,
    /// The earliest timer in nanoseconds, readable without the lock; [`NEVER`] if there is none.
    earliest: AtomicU64,
    /// The buffers of a thread that has left, for the next leader.
    spare: Mutex<Option<Scratch<J>>>,
    ready_list: Mutex<VecDeque<(Key, ListedReady)>>,
    /// Length of `ready_list`, readable without the lock.
    ready_list_len: AtomicUsize,
    #[cfg(unix)]
    pub(crate) signals: crate::signal::Signals,
}

/// The result of putting something into a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostResult {
    /// The mailbox was empty: the caller must arrange its delivery.
    NeedsDelivery,
    /// Delivery is arranged already.
    DeliveryPending,
    /// The handler has been removed.
    Refused,
}

/// Buffers of one thread that leads.
pub(crate) struct Scratch<J> {
    /// The ready handles of the wait.
    ready_handles: Vec<ReadyHandle>,
    /// The mail, work and expired timers of the wait.
    items: Vec<Item<J>>,
}

impl<J> Default for Scratch<J> {
    fn default() -> Self {
        Self { ready_handles: Vec::new(), items: Vec::new() }
    }
}

impl<J> Scratch<J> {
    /// Takes out the only item, if it is a ready handle.
    #[inline]
    pub(crate) fn take_single(&mut self) -> Option<(Key, Interest)> {
        if self.ready_handles.len() != 1 || !self.items.is_empty() {
            return None;
        }
        self.ready_handles.pop().map(|ReadyHandle { key, ready }| (Key(key), ready))
    }

    /// Takes all items out: timers before notices and jobs, then handlers that are ready by themselves, then
    /// ready handles.
    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, Item<J>> {
        let ready_handles = self.ready_handles.drain(..);
        self.items.extend(
            ready_handles.map(|ReadyHandle { key, ready }| Item { key: Key(key), kind: ItemKind::ReadyHandle(ready) }),
        );
        self.items.drain(..)
    }

    pub(crate) fn len(&self) -> usize {
        self.ready_handles.len() + self.items.len()
    }
}

impl<H: ?Sized, J> Core<H, J> {
    pub(crate) fn new(options: &Options, demux: Box<dyn Demultiplexer>) -> Self {
        let bound = match options.threads {
            ThreadStrategy::HalfSyncHalfAsync { queue, .. } => queue.max(1),
            _ => usize::MAX,
        };
        let is_alone = options.threads == ThreadStrategy::Reactive;
        Self {
            table: Table::new(options.max_handlers),
            demux,
            leadership: Leadership::new(
                options.takeover_after,
                options.share_after,
                options.processors,
                bound,
                is_alone,
            ),
            wakeup: Wakeup::new(),
            queue: Queue::new(options.max_notices),
            clock: Arc::clone(&options.clock),
            threads: options.threads,
            before_wait: options.before_wait.clone(),
            running: AtomicUsize::new(0),
            round: AtomicU64::new(0),
            has_passed_look: AtomicBool::new(false),
            max_events: options.max_events_per_wait,
            timers: Mutex::new(options.timers.queue_with(&options.timer_options)),
            earliest: AtomicU64::new(NEVER),
            spare: Mutex::new(None),
            ready_list: Mutex::new(VecDeque::new()),
            ready_list_len: AtomicUsize::new(0),
            #[cfg(unix)]
            signals: crate::signal::Signals::default(),
        }
    }

    /// For the leader: waits, and gathers the items to dispatch into `scratch`, which is empty, a limited
    /// number of each kind.
    #[inline]
    pub(crate) fn gather(&self, scratch: &mut Scratch<J>, timeout: Option<Duration>) -> io::Result<()> {
        // The peer of a handler often answers only what a job sends: a look at the handles before the job would find
        // nothing. After the items of this round, the handles are looked at in any case.
        let passes_look = self.has_items() && !self.has_passed_look.load(Ordering::Relaxed);
        self.has_passed_look.store(passes_look, Ordering::Relaxed);
        if passes_look {
            self.take_items(&mut scratch.items);
            return Ok(());
        }
        // In this order: a thread that adds an item while we check finds us asleep.
        let sleeps = self.wakeup.fall_asleep();
        let (until_timer, is_due) = self.until_timer();
        let timeout = if sleeps && !self.is_ready() { shorter(timeout, until_timer) } else { Some(Duration::ZERO) };
        // Before the wait: a thread that releases a handler during the wait or later records this round.
        let order = if self.leadership.is_alone() { Ordering::Relaxed } else { Ordering::SeqCst };
        self.round.store(self.round.load(Ordering::Relaxed) + 1, order);
        let waited = self.demux.wait(&mut scratch.ready_handles, self.max_events, timeout);
        self.wakeup.woke();
        waited?;
        // A timer that expires while a wait returns events is found before the next wait.
        if is_due || scratch.ready_handles.is_empty() && self.earliest.load(Ordering::SeqCst) != NEVER {
            self.expire(&mut scratch.items);
        }
        self.take_items(&mut scratch.items);
        Ok(())
    }

    /// Takes what can be dispatched without a look at the handles.
    fn take_items(&self, items: &mut Vec<Item<J>>) {
        if !self.queue.is_empty() {
            self.queue.take(self.max_events, items);
        }
        if self.ready_list_len.load(Ordering::SeqCst) > 0 {
            self.take_ready_list(items);
        }
    }

    /// The number of the present or last wait.
    #[inline]
    pub(crate) fn round(&self) -> u64 {
        self.round.load(Ordering::SeqCst)
    }

    /// Whether there are threads that only dispatch.
    #[inline]
    pub(crate) fn has_workers(&self) -> bool {
        matches!(self.threads, ThreadStrategy::HalfSyncHalfAsync { .. })
    }

    /// Buffers for a thread that may lead, so that `run_once` does not allocate each time.
    pub(crate) fn borrow_scratch(&self) -> Scratch<J> {
        self.spare.lock().take().unwrap_or_default()
    }

    pub(crate) fn return_scratch(&self, scratch: Scratch<J>) {
        *self.spare.lock() = Some(scratch);
    }

    /// Whether there is something to dispatch without a look at the handles.
    fn has_items(&self) -> bool {
        !self.queue.is_empty() || self.ready_list_len.load(Ordering::SeqCst) > 0
    }

    /// Whether the leader must not wait.
    fn is_ready(&self) -> bool {
        self.has_items() || self.leadership.is_stopped()
    }

    /// The time until the next timer, and whether it is due. No clock is read without timers.
    fn until_timer(&self) -> (Option<Duration>, bool) {
        let earliest = self.earliest.load(Ordering::SeqCst);
        if earliest == NEVER {
            return (None, false);
        }
        let left = Time::from_nanos(earliest).saturating_since(self.clock.now());
        (Some(left), left.is_zero())
    }

    #[cold]
    fn expire(&self, items: &mut Vec<Item<J>>) {
        let now = self.clock.now();
        if self.earliest.load(Ordering::SeqCst) > now.as_nanos() {
            return;
        }
        let mut timers = self.timers.lock();
        for _ in 0..self.max_events {
            let Some(expired) = timers.pop_expired(now) else { break };
            let (key, argument) = expired.payload;
            let due = DueTimer {
                expired: Expired { id: expired.id, argument, missed: expired.missed },
                due: expired.due,
                armed: timers.due(expired.id),
                is_last: expired.next.is_none_or(|next| next.saturating_since(expired.due) >= ONCE),
            };
            match self.post(key, Mail::Timeout(due)) {
                PostResult::NeedsDelivery => items.push(Item { key, kind: ItemKind::Mail }),
                PostResult::DeliveryPending => {}
                // A timer of a removed handler.
                PostResult::Refused => drop(timers.cancel(expired.id)),
            }
        }
        self.publish_earliest(timers.as_ref());
    }

    /// Schedules a timer for a handler.
    ///
    /// One that expires once has an interval beyond all times in use, so that it stays in the queue and can be
    /// cancelled or rescheduled until its handler is [called](Self::begin_timeout).
    pub(crate) fn schedule(
        &self,
        key: Key,
        at: Time,
        interval: Option<Duration>,
        argument: u64,
    ) -> Result<TimerId, Full> {
        self.with_timers(|timers| timers.schedule(at, Some(queue_interval(interval)), (key, argument)))
    }

    /// Sets a new time and interval of a timer. False if its last call has begun or it was cancelled.
    pub(crate) fn reschedule(&self, id: TimerId, at: Time, interval: Option<Duration>) -> bool {
        self.with_timers(|timers| timers.reschedule(id, at, Some(queue_interval(interval))))
    }

    /// Whether the handler of an expired timer is to be called: false if the timer was cancelled or got another
    /// time since. A timer that expires no more leaves the queue.
    pub(crate) fn begin_timeout(&self, due: &DueTimer) -> bool {
        let Some(armed) = due.armed else { return true };
        let mut timers = self.timers.lock();
        let is_valid = timers.due(due.expired.id) == Some(armed);
        if is_valid && due.is_last {
            let _ = timers.cancel(due.expired.id);
            self.publish_earliest(timers.as_ref());
        }
        is_valid
    }

    fn publish_earliest(&self, timers: &dyn TimerQueue<(Key, u64)>) {
        let earliest = timers.earliest().map_or(NEVER, Time::as_nanos);
        self.earliest.store(earliest, Ordering::SeqCst);
    }

    /// Changes the timers, and wakes the leader if it would sleep too long.
    pub(crate) fn with_timers<R>(&self, work: impl FnOnce(&mut dyn TimerQueue<(Key, u64)>) -> R) -> R {
        let mut timers = self.timers.lock();
        let before = self.earliest.load(Ordering::Relaxed);
        let result = work(timers.as_mut());
        self.publish_earliest(timers.as_ref());
        let is_sooner = self.earliest.load(Ordering::Relaxed) < before;
        drop(timers);
        if is_sooner {
            self.nudge();
        }
        result
    }

    /// Puts something into a handler's mailbox.
    pub(crate) fn post(&self, key: Key, mail: Mail) -> PostResult {
        let Some(slot) = self.table.slot(key) else { return PostResult::Refused };
        let mut mailbox = slot.mailbox.lock();
        // Under the lock: closing a handler first marks it, and then empties the mailbox.
        if !slot.state.load().is(key.generation()) {
            return PostResult::Refused;
        }
        if mailbox.put(mail) { PostResult::NeedsDelivery } else { PostResult::DeliveryPending }
    }

    /// As [`post`](Self::post), and arranges the delivery. False if the handler has been removed.
    pub(crate) fn send(&self, key: Key, mail: Mail) -> bool {
        let posted = self.post(key, mail);
        if posted == PostResult::NeedsDelivery {
            self.queue.push(Item { key, kind: ItemKind::Mail });
            self.nudge();
        }
        posted != PostResult::Refused
    }

    fn take_ready_list(&self, items: &mut Vec<Item<J>>) {
        let mut ready_list = self.ready_list.lock();
        let max_events = self.max_events.min(ready_list.len());
        items.extend(ready_list.drain(..max_events).map(|(key, entry)| Item { key, kind: ItemKind::Ready(entry) }));
        self.ready_list_len.store(ready_list.len(), Ordering::SeqCst);
    }

    /// Lists a handler that is ready although its handle does not show it; not again if `is_listed`.
    pub(crate) fn list(&self, key: Key, entry: ListedReady, is_listed: bool) {
        let mut ready_list = self.ready_list.lock();
        match ready_list.iter_mut().find(|(there, _)| is_listed && *there == key) {
            Some((_, there)) => {
                there.ready |= entry.ready;
                there.marked |= entry.marked;
            }
            None => ready_list.push_back((key, entry)),
        }
        self.ready_list_len.store(ready_list.len(), Ordering::SeqCst);
        drop(ready_list);
        self.nudge();
    }

    /// Wakes the leader for work that it can see when it checks.
    pub(crate) fn nudge(&self) {
        if self.wakeup.nudge() {
            self.ring();
        }
    }

    /// Wakes the leader for something that it cannot see when it checks.
    pub(crate) fn raise(&self) {
        if self.wakeup.raise() {
            self.ring();
        }
    }

    fn ring(&self) {
        if let Err(error) = self.demux.wake() {
            tracing::error!(%error, "a reactor cannot be woken");
        }
    }
}

/// The shorter of two timeouts; `None` is an unlimited one.
fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

impl<H: ?Sized, J> fmt::Debug for Core<H, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("demux", &self.demux)
            .field("threads", &self.threads)
            .field("handlers", &self.table.len())
            .finish_non_exhaustive()
    }
}
