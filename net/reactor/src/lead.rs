//! Who leads: the leader/followers protocol, without the operating system.
//!
//! Of the threads in a reactor at most one leads: it waits for the handles. What the wait brings is dispatched in one of two ways.
//! A single event is dispatched *in place*: the leader goes on to lead, and if nobody interferes, a round costs two atomic
//! operations and no system call. Several are *shared*: the leader puts them into a queue and resigns; each thread takes one item
//! after the other, and leads only when none is left, so that no handle whose event still waits in the queue is waited for.
//!
//! A dispatch in place may turn out to be long. The `turn` says in which phase the leader is and counts the dispatches, so that
//! another can take the leadership away by a compare-and-swap: the handler itself, by [`promote`](Leadership::promote), or the
//! follower that looks about every millisecond and sees the same dispatch twice. That one sleeps when there has been nothing to
//! see for a while; the next dispatch wakes it.

use std::collections::VecDeque;
use std::time::Duration;

use spandrel_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use spandrel_sync::time::Instant;
use spandrel_sync::{Condition, Mutex, MutexGuard};

/// Looks without anything to see before the watching follower sleeps. (Models would only be longer for more of them.)
const IDLE_TICKS: u32 = if cfg!(shuttle) { 2 } else { 32 };

/// Phases, in the low two bits of the turn.
const FREE: u64 = 0;
const LEADING: u64 = 1;
const DISPATCHING: u64 = 2;
const PHASE: u64 = 3;
const ONE_MORE: u64 = 4;

/// What the leader has to know of the followers before it dispatches: whether it must wake one to watch it.
const NOBODY_WAITS: u8 = 0;
const NOBODY_WATCHES: u8 = 1;
const WATCHED: u8 = 2;

/// Which dispatch in place; zero is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn(u64);

impl Turn {
    /// For what is not dispatched in place.
    pub(crate) const NONE: Self = Self(0);
}

/// What a thread is to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<I> {
    /// Lead: wait for the handles, then share, dispatch in place, or resign.
    Lead,
    /// Dispatch this.
    Work(I),
    /// Look whether what it runs for has come true.
    Look,
    /// Go: the time is up.
    TimedOut,
    /// Go: the reactor was stopped.
    Stopped,
}

#[derive(Debug)]
pub(crate) struct Leadership<I> {
    turn: AtomicU64,
    watch: AtomicU8,
    stopped: AtomicBool,
    /// Threads that run until something comes true.
    lookers: AtomicUsize,
    tick: Duration,
    /// How many items the leader may put before it waits for room.
    bound: usize,
    shared: Mutex<Shared<I>>,
    followers: Condition,
    /// Workers of a half-sync/half-async reactor, who never lead.
    workers: Condition,
    room: Condition,
}

#[derive(Debug)]
struct Shared<I> {
    items: VecDeque<I>,
    waiting: usize,
    /// A follower was told to wake and has not yet said that it did.
    is_waking: bool,
    idle_workers: usize,
    leader_waits_for_room: bool,
    is_watched: bool,
    /// The leader asked for a follower to watch.
    watcher_wanted: bool,
    /// How often everybody was told to look.
    looks: u64,
    /// The workers are to finish what is there and end.
    ends: bool,
}

impl<I> Leadership<I> {
    pub(crate) fn new(tick: Duration, bound: usize) -> Self {
        let shared = Shared {
            items: VecDeque::new(),
            waiting: 0,
            is_waking: false,
            idle_workers: 0,
            leader_waits_for_room: false,
            is_watched: false,
            watcher_wanted: false,
            looks: 0,
            ends: false,
        };
        Self {
            turn: AtomicU64::new(ONE_MORE),
            watch: AtomicU8::new(NOBODY_WAITS),
            stopped: AtomicBool::new(false),
            lookers: AtomicUsize::new(0),
            tick,
            bound,
            shared: Mutex::new(shared),
            followers: Condition::new(),
            workers: Condition::new(),
            room: Condition::new(),
        }
    }

    /// Waits until there is something to do. `claim` is asked, under the lock, whether an item is still worth doing.
    ///
    /// `looks` is what [`looks`](Self::looks) was before the caller looked whether to go on; `None` if it runs until stopped.
    pub(crate) fn next(
        &self,
        until: Option<Instant>,
        looks: Option<u64>,
        mut claim: impl FnMut(&mut I) -> bool,
    ) -> Part<I> {
        let mut shared = self.shared.lock();
        let mut watcher = Watcher::default();
        let part = loop {
            if self.is_stopped() {
                break Part::Stopped;
            }
            if let Some(item) = shared.take(&mut claim) {
                self.make_room(&mut shared);
                break Part::Work(item);
            }
            // Before leading, for a leader sleeps without looking again.
            if looks.is_some_and(|looks| looks != shared.looks) {
                break Part::Look;
            }
            if self.lead_if_free() || watcher.takes_over && self.take_over(&watcher) {
                break Part::Lead;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break Part::TimedOut;
            }
            self.follow(&mut shared, &mut watcher, left);
        };
        if watcher.is_watching {
            shared.is_watched = false;
        }
        self.publish_watch(&shared);
        // Whoever leaves with one thing wakes another for the next.
        if !shared.items.is_empty() || self.phase() == FREE {
            self.wake_one(&mut shared);
        }
        part
    }

    /// One wait of a follower, and if it watches, one look at the leader.
    fn follow(&self, shared: &mut MutexGuard<'_, Shared<I>>, watcher: &mut Watcher, left: Option<Duration>) {
        let begins = !shared.is_watched && (shared.watcher_wanted || !watcher.has_slept);
        if begins {
            *watcher = Watcher { is_watching: true, seen: self.turn.load(Ordering::SeqCst), ..Watcher::default() };
            shared.is_watched = true;
            shared.watcher_wanted = false;
        }
        shared.waiting += 1;
        self.publish_watch(shared);
        if watcher.is_watching && watcher.idle >= IDLE_TICKS {
            self.stop_watching(shared, watcher);
        }
        let tick = watcher.is_watching.then_some(self.tick);
        match tick.into_iter().chain(left).min() {
            Some(wait) => drop(self.followers.wait_for(shared, wait)),
            None => self.followers.wait(shared),
        }
        shared.waiting -= 1;
        shared.is_waking = false;
        if watcher.is_watching {
            watcher.look(self.turn.load(Ordering::SeqCst));
        }
    }

    /// Goes to sleep, unless a dispatch has begun meanwhile.
    ///
    /// Sequentially consistent on both sides: either the leader's load sees that nobody watches, or this load sees its dispatch.
    fn stop_watching(&self, shared: &mut Shared<I>, watcher: &mut Watcher) {
        shared.is_watched = false;
        self.publish_watch(shared);
        if self.phase() == DISPATCHING {
            shared.is_watched = true;
            self.publish_watch(shared);
        } else {
            watcher.is_watching = false;
            watcher.has_slept = true;
        }
        watcher.idle = 0;
    }

    fn publish_watch(&self, shared: &Shared<I>) {
        let watch = match shared.waiting {
            0 => NOBODY_WAITS,
            _ if shared.is_watched || shared.watcher_wanted => WATCHED,
            _ => NOBODY_WATCHES,
        };
        if self.watch.load(Ordering::Relaxed) != watch {
            self.watch.store(watch, Ordering::SeqCst);
        }
    }

    fn phase(&self) -> u64 {
        self.turn.load(Ordering::SeqCst) & PHASE
    }

    fn lead_if_free(&self) -> bool {
        let turn = self.turn.load(Ordering::SeqCst);
        turn & PHASE == FREE && self.swap(turn, turn + ONE_MORE + LEADING)
    }

    /// Takes the leadership of a dispatch that was seen twice.
    fn take_over(&self, watcher: &Watcher) -> bool {
        self.swap(watcher.seen, (watcher.seen & !PHASE) + ONE_MORE + LEADING)
    }

    fn swap(&self, old: u64, new: u64) -> bool {
        self.turn.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// The leader begins to dispatch in place.
    #[inline]
    pub(crate) fn begin(&self) -> Turn {
        // Only the leader changes the turn while it leads.
        let turn = (self.turn.load(Ordering::Relaxed) & !PHASE) + ONE_MORE + DISPATCHING;
        self.turn.swap(turn, Ordering::SeqCst);
        if self.watch.load(Ordering::SeqCst) == NOBODY_WATCHES {
            self.rouse();
        }
        Turn(turn)
    }

    #[cold]
    fn rouse(&self) {
        let mut shared = self.shared.lock();
        if shared.waiting > 0 && !shared.is_watched {
            shared.watcher_wanted = true;
            self.wake_one(&mut shared);
        }
        self.publish_watch(&shared);
    }

    /// The leader has dispatched in place. False: it leads no longer.
    #[inline]
    pub(crate) fn end(&self, turn: Turn) -> bool {
        self.swap(turn.0, (turn.0 & !PHASE) + LEADING)
    }

    /// Lets another lead while this dispatch in place goes on.
    pub(crate) fn promote(&self, turn: Turn) {
        if turn.0 & PHASE == DISPATCHING && self.swap(turn.0, (turn.0 & !PHASE) + FREE) {
            self.appoint();
        }
    }

    /// As [`promote`](Self::promote), for whatever dispatch in place there is: for a thread that runs the reactor inside of a
    /// handler, which cannot tell whether it leads. Where it does not, the leader merely has to lead anew.
    pub(crate) fn promote_any(&self) {
        self.promote(Turn(self.turn.load(Ordering::SeqCst)));
    }

    fn appoint(&self) {
        self.wake_one(&mut self.shared.lock());
    }

    /// Wakes a follower, unless one is on its way: that one wakes the next if there is more to do than it takes.
    fn wake_one(&self, shared: &mut Shared<I>) {
        if shared.waiting > 0 && !shared.is_waking {
            shared.is_waking = true;
            self.followers.notify_one();
        }
    }

    /// The leader leads no longer.
    pub(crate) fn resign(&self) {
        self.leave();
        self.appoint();
    }

    fn leave(&self) {
        self.turn.store((self.turn.load(Ordering::Relaxed) & !PHASE) + FREE, Ordering::SeqCst);
    }

    /// The leader shares what the wait brought, and resigns.
    pub(crate) fn share(&self, items: impl IntoIterator<Item = I>) {
        let mut shared = self.shared.lock();
        shared.items.extend(items);
        self.leave();
        self.wake_one(&mut shared);
    }

    /// Takes one of the items that are shared, if there is one.
    pub(crate) fn take(&self, mut claim: impl FnMut(&mut I) -> bool) -> Option<I> {
        self.shared.lock().take(&mut claim)
    }

    /// The leader hands something to the workers, and waits while their queue is full. It goes on to lead. Gives it back if there
    /// are no workers any more.
    pub(crate) fn hand_over(&self, item: I) -> Result<(), I> {
        let mut shared = self.shared.lock();
        while shared.items.len() >= self.bound && !shared.ends {
            shared.leader_waits_for_room = true;
            self.room.wait(&mut shared);
        }
        if shared.ends {
            return Err(item);
        }
        shared.items.push_back(item);
        if shared.idle_workers > 0 {
            self.workers.notify_one();
        }
        Ok(())
    }

    fn make_room(&self, shared: &mut Shared<I>) {
        if shared.leader_waits_for_room {
            shared.leader_waits_for_room = false;
            self.room.notify_one();
        }
    }

    /// A worker waits for something to dispatch; `None` at the end.
    pub(crate) fn next_work(&self) -> Option<I> {
        let mut shared = self.shared.lock();
        loop {
            if let Some(item) = shared.items.pop_front() {
                self.make_room(&mut shared);
                return Some(item);
            }
            if shared.ends {
                return None;
            }
            shared.idle_workers += 1;
            self.workers.wait(&mut shared);
            shared.idle_workers -= 1;
        }
    }

    /// The workers end when they have done what is there.
    pub(crate) fn end_workers(&self) {
        let mut shared = self.shared.lock();
        shared.ends = true;
        self.workers.notify_all();
        self.room.notify_all();
    }

    /// How often [`look`](Self::look) was called.
    pub(crate) fn looks(&self) -> u64 {
        self.shared.lock().looks
    }

    /// Counts a thread that runs until something comes true, or no longer does.
    pub(crate) fn looker(&self, comes: bool) {
        if comes {
            self.lookers.fetch_add(1, Ordering::SeqCst);
        } else {
            self.lookers.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Tells the followers among those threads to look.
    pub(crate) fn look(&self) {
        if self.lookers.load(Ordering::SeqCst) > 0 {
            let mut shared = self.shared.lock();
            shared.looks += 1;
            self.followers.notify_all();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Sends everybody home; the leader has to be woken besides.
    pub(crate) fn stop(&self) {
        let _shared = self.shared.lock();
        self.stopped.store(true, Ordering::SeqCst);
        self.followers.notify_all();
    }

    /// Undoes [`stop`](Self::stop).
    pub(crate) fn restart(&self) {
        self.stopped.store(false, Ordering::SeqCst);
    }

    /// Takes out all that is shared and not yet begun.
    pub(crate) fn drain(&self) -> VecDeque<I> {
        std::mem::take(&mut self.shared.lock().items)
    }
}

impl<I> Shared<I> {
    fn take(&mut self, claim: &mut impl FnMut(&mut I) -> bool) -> Option<I> {
        while let Some(mut item) = self.items.pop_front() {
            if claim(&mut item) {
                return Some(item);
            }
        }
        None
    }
}

/// What a follower knows of the leader.
#[derive(Default)]
struct Watcher {
    is_watching: bool,
    /// It watched before, and stopped because nothing happened.
    has_slept: bool,
    seen: u64,
    idle: u32,
    takes_over: bool,
}

impl Watcher {
    fn look(&mut self, turn: u64) {
        let is_same = turn == self.seen;
        let in_dispatch = turn & PHASE == DISPATCHING;
        self.takes_over = is_same && in_dispatch;
        self.idle = if is_same && !in_dispatch { self.idle + 1 } else { 0 };
        self.seen = turn;
    }
}
