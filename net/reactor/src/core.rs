//! What a reactor consists of, and one round of its leader: wait, and gather what there is to dispatch.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::time::Duration;

use spandrel_ipc::Interest;
use spandrel_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use spandrel_sync::{Arc, Mutex};

use crate::demux::{Demultiplexer, Shown};
use crate::key::Key;
use crate::lead::Leadership;
use crate::queue::{Expired, Item, Listed, Mail, Queue, What};
use crate::table::Table;
use crate::timer::{Clock, Time, TimerQueue};
use crate::wakeup::Wakeup;
use crate::{Options, ThreadStrategy};

/// No timer is scheduled.
const NEVER: u64 = u64::MAX;

/// A reactor of handlers of type `H` and jobs of type `J`; what they do is not known here.
pub(crate) struct Core<H: ?Sized, J> {
    pub(crate) table: Table<H>,
    pub(crate) demux: Box<dyn Demultiplexer>,
    pub(crate) lead: Leadership<Item<J>>,
    pub(crate) wakeup: Wakeup,
    pub(crate) queue: Queue<J>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) threads: ThreadStrategy,
    /// Threads inside of `run` and its kin.
    pub(crate) running: AtomicUsize,
    /// Counts the waits.
    round: AtomicU64,
    /// How much of each kind is dispatched between two waits.
    most: usize,
    timers: Mutex<Box<dyn TimerQueue<(Key, u64)>>>,
    /// Of the timers, in nanoseconds, to be looked at without the lock; [`NEVER`] if there are none.
    earliest: AtomicU64,
    /// Of a thread that has left, for the next to lead.
    spare: Mutex<Option<Scratch<J>>>,
    listed: Mutex<VecDeque<(Key, Listed)>>,
    /// Length of `listed`, to be looked at without the lock.
    listed_len: AtomicUsize,
    #[cfg(unix)]
    pub(crate) signals: crate::signal::Signals,
}

/// What became of something that was put into a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// It is the only thing there: somebody has to deliver it.
    First,
    /// Somebody is about to deliver.
    Behind,
    /// The handler is gone.
    Refused,
}

/// Buffers of one thread that leads.
pub(crate) struct Scratch<J> {
    /// What the wait has shown.
    shown: Vec<Shown>,
    /// Everything else.
    items: Vec<Item<J>>,
}

impl<J> Default for Scratch<J> {
    fn default() -> Self {
        Self { shown: Vec::new(), items: Vec::new() }
    }
}

impl<J> Scratch<J> {
    /// If all there is to dispatch is one ready handle, takes it out.
    #[inline]
    pub(crate) fn take_single(&mut self) -> Option<(Key, Interest)> {
        if self.shown.len() != 1 || !self.items.is_empty() {
            return None;
        }
        self.shown.pop().map(|Shown { key, ready }| (Key(key), ready))
    }

    /// Takes everything out: timers before notices and jobs, then those that are ready by themselves, then what was shown.
    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, Item<J>> {
        let shown = self.shown.drain(..);
        self.items.extend(shown.map(|Shown { key, ready }| Item { key: Key(key), what: What::Shown(ready) }));
        self.items.drain(..)
    }

    pub(crate) fn len(&self) -> usize {
        self.shown.len() + self.items.len()
    }
}

impl<H: ?Sized, J> Core<H, J> {
    pub(crate) fn new(options: &Options, demux: Box<dyn Demultiplexer>) -> Self {
        let bound = match options.threads {
            ThreadStrategy::HalfSyncHalfAsync { queue, .. } => queue.max(1),
            _ => usize::MAX,
        };
        Self {
            table: Table::new(options.max_handlers),
            demux,
            lead: Leadership::new(options.patience, bound),
            wakeup: Wakeup::new(),
            queue: Queue::new(options.max_notices),
            clock: Arc::clone(&options.clock),
            threads: options.threads,
            running: AtomicUsize::new(0),
            round: AtomicU64::new(0),
            most: options.max_events_per_wait,
            timers: Mutex::new(options.timers.queue_with(&options.timer_options)),
            earliest: AtomicU64::new(NEVER),
            spare: Mutex::new(None),
            listed: Mutex::new(VecDeque::new()),
            listed_len: AtomicUsize::new(0),
            #[cfg(unix)]
            signals: crate::signal::Signals::default(),
        }
    }

    /// For the leader: waits, and gathers into `scratch`, which is empty, what there is to dispatch, a limited number of each kind.
    #[inline]
    pub(crate) fn gather(&self, scratch: &mut Scratch<J>, timeout: Option<Duration>) -> io::Result<()> {
        // In this order: who leaves something while we look finds us asleep.
        let sleeps = self.wakeup.fall_asleep();
        let timeout = if sleeps && !self.is_ready() { self.shorten(timeout) } else { Some(Duration::ZERO) };
        // Before the wait: who releases a handler during it or after says so.
        self.round.store(self.round.load(Ordering::Relaxed) + 1, Ordering::SeqCst);
        let waited = self.demux.wait(&mut scratch.shown, self.most, timeout);
        self.wakeup.woke();
        waited?;
        if self.earliest.load(Ordering::SeqCst) != NEVER {
            self.expire(&mut scratch.items);
        }
        if !self.queue.is_empty() {
            self.queue.take(self.most, &mut scratch.items);
        }
        if self.listed_len.load(Ordering::SeqCst) > 0 {
            self.take_listed(&mut scratch.items);
        }
        Ok(())
    }

    /// Which wait is under way, or was the last.
    #[inline]
    pub(crate) fn round(&self) -> u64 {
        self.round.load(Ordering::SeqCst)
    }

    /// Whether there are threads that only dispatch.
    #[inline]
    pub(crate) fn has_workers(&self) -> bool {
        matches!(self.threads, ThreadStrategy::HalfSyncHalfAsync { .. })
    }

    /// Buffers for a thread that may lead, so that `run_once` allocates none each time.
    pub(crate) fn borrow_scratch(&self) -> Scratch<J> {
        self.spare.lock().take().unwrap_or_default()
    }

    pub(crate) fn return_scratch(&self, scratch: Scratch<J>) {
        *self.spare.lock() = Some(scratch);
    }

    /// Whether there is something to dispatch already.
    fn is_ready(&self) -> bool {
        !self.queue.is_empty() || self.listed_len.load(Ordering::SeqCst) > 0 || self.lead.is_stopped()
    }

    /// Until the next timer, if that comes first. No clock is read if there is none.
    fn shorten(&self, timeout: Option<Duration>) -> Option<Duration> {
        let earliest = self.earliest.load(Ordering::SeqCst);
        if earliest == NEVER {
            return timeout;
        }
        let left = Time::from_nanos(earliest).saturating_since(self.clock.now());
        Some(timeout.map_or(left, |timeout| timeout.min(left)))
    }

    #[cold]
    fn expire(&self, items: &mut Vec<Item<J>>) {
        let now = self.clock.now();
        if self.earliest.load(Ordering::SeqCst) > now.as_nanos() {
            return;
        }
        let mut timers = self.timers.lock();
        for _ in 0..self.most {
            let Some(expired) = timers.pop_expired(now) else { break };
            let (key, argument) = expired.payload;
            match self.post(key, Mail::Timeout(Expired { id: expired.id, argument, missed: expired.missed })) {
                Posted::First => items.push(Item { key, what: What::Mail }),
                Posted::Behind => {}
                // An interval timer of a handler that is gone.
                Posted::Refused => drop(timers.cancel(expired.id)),
            }
        }
        self.publish_earliest(timers.as_ref());
    }

    fn publish_earliest(&self, timers: &dyn TimerQueue<(Key, u64)>) {
        let earliest = timers.earliest().map_or(NEVER, Time::as_nanos);
        self.earliest.store(earliest, Ordering::SeqCst);
    }

    /// Works at the timers, and wakes the leader if it would sleep too long.
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
    pub(crate) fn post(&self, key: Key, mail: Mail) -> Posted {
        let Some(slot) = self.table.slot(key) else { return Posted::Refused };
        let mut mailbox = slot.mailbox.lock();
        // Under the lock: who closes a handler first says so, and then empties the mailbox.
        if !slot.state.load().is(key.generation()) {
            return Posted::Refused;
        }
        if mailbox.put(mail) { Posted::First } else { Posted::Behind }
    }

    /// As [`post`](Self::post), and sees to it that it is delivered. False if the handler is gone.
    pub(crate) fn send(&self, key: Key, mail: Mail) -> bool {
        let posted = self.post(key, mail);
        if posted == Posted::First {
            self.queue.push(Item { key, what: What::Mail });
            self.nudge();
        }
        posted != Posted::Refused
    }

    fn take_listed(&self, items: &mut Vec<Item<J>>) {
        let mut listed = self.listed.lock();
        let most = self.most.min(listed.len());
        items.extend(listed.drain(..most).map(|(key, how)| Item { key, what: What::Ready(how) }));
        self.listed_len.store(listed.len(), Ordering::SeqCst);
    }

    /// Lists a handler that is ready whatever its handle shows; once, if it says that it `is_listed` already.
    pub(crate) fn list(&self, key: Key, how: Listed, is_listed: bool) {
        let mut listed = self.listed.lock();
        match listed.iter_mut().find(|(there, _)| is_listed && *there == key) {
            Some((_, there)) => {
                there.ready |= how.ready;
                there.marked |= how.marked;
            }
            None => listed.push_back((key, how)),
        }
        self.listed_len.store(listed.len(), Ordering::SeqCst);
        drop(listed);
        self.nudge();
    }

    /// Something was left to do that the leader can see.
    pub(crate) fn nudge(&self) {
        if self.wakeup.nudge() {
            self.ring();
        }
    }

    /// Something has happened that the leader cannot see.
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

impl<H: ?Sized, J> fmt::Debug for Core<H, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("demux", &self.demux)
            .field("threads", &self.threads)
            .field("handlers", &self.table.len())
            .finish_non_exhaustive()
    }
}
