//! The leader/followers protocol, without the operating system.
//!
//! Of the threads in a reactor at most one leads: it waits for the handles. The events of a wait are
//! dispatched in one of two ways. A single event is dispatched *in place*: the leader stays leader, and
//! without interference a round costs two atomic operations and no system call. Several are *shared*: the
//! leader puts them into a queue and resigns. Each thread takes one item after the other, and leads only when
//! none is left, so that no handle with an event in the queue is waited for.
//!
//! Waking a follower costs more than a short dispatch. So the thread that shared the items dispatches them alone at
//! first. It wakes followers after the sharing delay, as long as fewer threads are active than there are processors: more
//! would only take them from each other. One follower, the *watcher*, checks every millisecond whether items are left,
//! or the leadership is vacant, for longer than that. If no item was taken meanwhile, it counts the active threads as
//! *stuck*, and followers are woken for all that is left. A thread that only waits for a processor is not stuck: another
//! one would wait as well.
//!
//! A dispatch in place may turn out to be long, too. The `state` word holds the phase of the leader and counts the
//! dispatches, so that another thread can take the leadership away by a compare-and-swap: the handler itself,
//! through [`promote`](Leadership::promote), or the watcher, when it finds the same dispatch twice. The watcher sleeps
//! when nothing has happened for a while; the next dispatch wakes it.
//!
//! A thread may run the reactor inside of a handler, while it waits for something. Such a *nested* run leads and
//! dispatches only when no other follower is idle: what it dispatches has to end before its own handler goes on.
//!
//! The bounded queue between the waiting thread and the workers of half-sync/half-async is here, too
//! ([`hand_over`](Leadership::hand_over), [`next_work`](Leadership::next_work)).

use std::collections::VecDeque;
use std::time::Duration;

use spandrel_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use spandrel_sync::time::{Deadline, Instant};
use spandrel_sync::{Condition, Mutex, MutexGuard, ProcessorShortage, WorkingThread};

/// Checks without a dispatch before the watching follower sleeps. (Fewer in models, which would only take
/// longer.)
const IDLE_TICKS: u32 = if cfg!(shuttle) { 2 } else { 32 };

/// Phases, in the low two bits of the word.
const FREE: u64 = 0;
const LEADING: u64 = 1;
const DISPATCHING: u64 = 2;
const PHASE: u64 = 3;
const ONE_MORE: u64 = 4;

/// The state of the followers as the leader needs it before a dispatch: whether it must wake one to watch.
const NO_FOLLOWERS: u8 = 0;
const NO_WATCHER: u8 = 1;
const WATCHED: u8 = 2;

/// Identifies a dispatch in place; zero is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DispatchId(u64);

impl DispatchId {
    /// For items that are not dispatched in place.
    pub(crate) const NONE: Self = Self(0);
}

/// The number of times at which threads had been found stuck when a thread took its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StuckEpoch(u64);

/// The caller of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nesting {
    /// A thread that is inside of no handler of the reactor.
    Outermost,
    /// A handler of the reactor. The run leaves work to idle followers.
    Nested,
}

/// The next action of a thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action<I> {
    /// Lead: wait for the handles, then share, dispatch in place, or resign.
    Lead,
    /// Dispatch this item, without leading.
    Work(I),
    /// Check the condition of its run.
    CheckCondition,
    /// Return: the caller's time limit has passed.
    TimedOut,
    /// Return: the reactor was stopped.
    Stopped,
}

#[derive(Debug)]
pub(crate) struct Leadership<I> {
    state: AtomicU64,
    watch_state: AtomicU8,
    stopped: AtomicBool,
    /// Threads that run until a condition holds.
    conditional_runs: AtomicUsize,
    /// The threads in the reactor.
    threads: AtomicUsize,
    /// The active threads above which none is woken to share the items.
    processors: usize,
    tick: Duration,
    /// The time for which shared items wait for the thread that shared them, and its leadership is vacant, before
    /// another thread is woken.
    sharing_delay: Duration,
    /// The number of items that the leader may queue before it waits for room.
    bound: usize,
    /// One thread at a time runs the reactor. It alone changes `state`, and needs no read-modify-write operations.
    is_alone: bool,
    /// The thread that leads, or led last.
    leader: WorkingThread,
    /// The thread that took an item last.
    taker: WorkingThread,
    shared: Mutex<Shared<I>>,
    /// Idle followers other than the watcher.
    followers: Condition,
    /// Nested runs among the followers, other than the watcher.
    nested: Condition,
    watcher: Condition,
    /// Workers of a half-sync/half-async reactor, which never lead.
    workers: Condition,
    room: Condition,
}

/// Whether a follower watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    None,
    /// The leader has requested a watching follower.
    Requested,
    ByFollower,
    ByNestedRun,
}

#[derive(Debug)]
struct Shared<I> {
    items: VecDeque<I>,
    /// The time when items were shared last; `None` if others are to take them, or to lead, at once.
    shared_at: Option<Instant>,
    /// The time when an item was taken last, or the watch began.
    taken_at: Instant,
    /// Whether the thread that took it lacks a processor.
    shortage: ProcessorShortage,
    /// The active threads that have taken nothing for too long.
    stuck: usize,
    /// Counts the times at which threads were found stuck.
    stuck_epoch: StuckEpoch,
    /// The followers, the watcher included.
    waiting: usize,
    /// The nested runs among them.
    nested_waiting: usize,
    /// A follower was notified and has not yet woken.
    is_waking: bool,
    idle_workers: usize,
    leader_waits_for_room: bool,
    watch: Watch,
    /// Counts the calls of [`check_conditions`](Leadership::check_conditions).
    condition_checks: u64,
    /// The workers are to finish the queued items and end.
    ends: bool,
}

impl<I> Leadership<I> {
    pub(crate) fn new(
        tick: Duration,
        sharing_delay: Duration,
        processors: usize,
        bound: usize,
        is_alone: bool,
    ) -> Self {
        let shared = Shared {
            items: VecDeque::new(),
            shared_at: None,
            taken_at: Instant::now(),
            shortage: ProcessorShortage::default(),
            stuck: 0,
            stuck_epoch: StuckEpoch::default(),
            waiting: 0,
            nested_waiting: 0,
            is_waking: false,
            idle_workers: 0,
            leader_waits_for_room: false,
            watch: Watch::None,
            condition_checks: 0,
            ends: false,
        };
        Self {
            state: AtomicU64::new(ONE_MORE),
            watch_state: AtomicU8::new(NO_FOLLOWERS),
            stopped: AtomicBool::new(false),
            conditional_runs: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            processors,
            tick,
            sharing_delay,
            bound,
            is_alone,
            leader: WorkingThread::none(),
            taker: WorkingThread::none(),
            shared: Mutex::new(shared),
            followers: Condition::new(),
            nested: Condition::new(),
            watcher: Condition::new(),
            workers: Condition::new(),
            room: Condition::new(),
        }
    }

    /// Counts one more thread in the reactor, unless it is a nested run, and returns its epoch.
    pub(crate) fn enter(&self, nesting: Nesting) -> StuckEpoch {
        if nesting == Nesting::Outermost {
            self.threads.fetch_add(1, Ordering::SeqCst);
        }
        self.shared.lock().stuck_epoch
    }

    /// Counts one thread less, unless the end is a nested run's.
    pub(crate) fn exit(&self, nesting: Nesting, epoch: &mut StuckEpoch) {
        if nesting == Nesting::Outermost {
            self.shared.lock().end_work(epoch);
            self.threads.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Waits until there is something to do. `claim` is called, under the lock, to check that an item is
    /// still to be dispatched.
    ///
    /// `epoch` is the thread's own, and shows whether it was found stuck.
    ///
    /// `condition_checks` is the value of [`condition_checks`](Self::condition_checks) before the caller checked its
    /// condition; `None` if it runs until stopped.
    pub(crate) fn next(
        &self,
        deadline: Deadline,
        condition_checks: Option<u64>,
        nesting: Nesting,
        epoch: &mut StuckEpoch,
        mut claim: impl FnMut(&mut I) -> bool,
    ) -> Action<I> {
        let mut shared = self.shared.lock();
        shared.end_work(epoch);
        let mut follower = Follower { nesting, was_notified: false, duty: Duty::Undecided };
        let part = loop {
            if self.is_stopped() {
                break Action::Stopped;
            }
            let yields = nesting == Nesting::Nested && shared.has_idle();
            let leaves_items = yields || follower.is_unprompted() && !self.lacks_threads(&mut shared);
            if !leaves_items && let Some(item) = self.take_item(&mut shared, &mut claim) {
                self.make_room(&mut shared);
                break Action::Work(item);
            }
            // Before leading, since a leader sleeps without checking again.
            if condition_checks.is_some_and(|condition_checks| condition_checks != shared.condition_checks) {
                break Action::CheckCondition;
            }
            if yields {
                self.leave_to_idle(&mut shared, &follower);
            } else if !leaves_items && self.lead_if_free()
                || follower.long_dispatch().is_some_and(|state| self.take_over(state, &mut shared))
            {
                self.leader.record_current();
                break Action::Lead;
            }
            let left = deadline.remaining();
            if left.is_some_and(|left| left.is_zero()) {
                break Action::TimedOut;
            }
            self.follow(&mut shared, &mut follower, left);
        };
        if follower.is_watching() {
            // A dispatch that has begun finds no other watcher by itself.
            let is_needed = shared.waiting > 0 && self.phase() == DISPATCHING;
            shared.watch = if is_needed { Watch::Requested } else { Watch::None };
        }
        *epoch = shared.stuck_epoch;
        self.publish_watch(&shared);
        self.wake_in_time(&mut shared);
        part
    }

    /// Leaves items, and the leadership if it is vacant or to be taken from a long dispatch, to an idle follower.
    fn leave_to_idle(&self, shared: &mut Shared<I>, follower: &Follower) {
        if let Some(state) = follower.long_dispatch() {
            // If it fails, the dispatch has ended.
            let _ = self.swap(state, (state & !PHASE) + FREE);
        }
        if !shared.items.is_empty() || self.phase() == FREE {
            self.wake_one(shared);
        }
    }

    /// Wakes a follower for the remaining items, to lead, or to watch: at once, unless the watcher will see to it.
    fn wake_in_time(&self, shared: &mut Shared<I>) {
        let has_work = !shared.items.is_empty() || self.phase() == FREE;
        let wakes = match shared.watch {
            Watch::None => has_work,
            Watch::Requested => true,
            Watch::ByFollower | Watch::ByNestedRun if has_work => {
                shared.taken_at = Instant::now();
                self.is_overdue(shared, shared.taken_at) && self.has_free_processor(shared, 0)
            }
            Watch::ByFollower | Watch::ByNestedRun => false,
        };
        if wakes {
            self.wake_one(shared);
        }
    }

    /// Whether the sharing delay has passed.
    fn is_overdue(&self, shared: &Shared<I>, now: Instant) -> bool {
        shared.shared_at.is_none_or(|since| now.saturating_duration_since(since) >= self.sharing_delay)
    }

    /// Whether another thread would find a processor, or others are to take the items at once. `idle`: the threads that are
    /// in no wait, and have no work.
    fn has_free_processor(&self, shared: &Shared<I>, idle: usize) -> bool {
        let leaders = usize::from(self.phase() == LEADING);
        let threads = self.threads.load(Ordering::SeqCst);
        shared.shared_at.is_none()
            || threads.saturating_sub(shared.waiting + leaders + shared.stuck + idle) < self.processors
    }

    /// For the watcher: whether what is left needs one more thread. If the active ones have taken nothing for the sharing
    /// delay, they are stuck, unless the last that took something lacks a processor.
    fn lacks_threads(&self, shared: &mut Shared<I>) -> bool {
        let now = Instant::now();
        if !self.is_overdue(shared, now) {
            return false;
        }
        if now.saturating_duration_since(shared.taken_at) >= self.sharing_delay
            && self.phase() == FREE
            && !shared.shortage.delays(&self.taker)
        {
            self.record_stuck(shared);
            shared.shared_at = None;
        }
        self.has_free_processor(shared, 1)
    }

    /// Counts all threads as stuck but those that wait, and the watcher, which calls this.
    fn record_stuck(&self, shared: &mut Shared<I>) {
        let threads = self.threads.load(Ordering::SeqCst);
        shared.stuck = threads.saturating_sub(shared.waiting + 1);
        shared.stuck_epoch.0 += 1;
    }

    /// Wakes a follower if nobody leads: for a thread that leaves the reactor.
    pub(crate) fn promote_if_free(&self) {
        if !self.is_alone && self.phase() == FREE {
            self.promote_follower();
        }
    }

    /// One wait of a follower, and if it watches, one check of the leader.
    fn follow(&self, shared: &mut MutexGuard<'_, Shared<I>>, follower: &mut Follower, left: Option<Duration>) {
        let nesting = follower.nesting;
        let nested_runs = usize::from(nesting == Nesting::Nested);
        let begins = match shared.watch {
            Watch::None => !matches!(follower.duty, Duty::Slept),
            Watch::Requested => true,
            Watch::ByFollower | Watch::ByNestedRun => false,
        };
        if begins {
            let last_state = self.state.load(Ordering::SeqCst);
            follower.duty =
                Duty::Watches { last_state, idle: 0, is_long: false, shortage: ProcessorShortage::default() };
            shared.watch = Watch::by(nesting);
            shared.taken_at = Instant::now();
        }
        shared.waiting += 1;
        shared.nested_waiting += nested_runs;
        self.publish_watch(shared);
        if let Duty::Watches { idle, .. } = &mut follower.duty
            && *idle >= IDLE_TICKS
        {
            *idle = 0;
            if self.stop_watching(shared, nesting) {
                follower.duty = Duty::Slept;
            }
        }
        if follower.is_watching() {
            let wait = left.map_or(self.tick, |left| left.min(self.tick));
            self.watcher.wait_for(shared, wait);
        } else {
            let wake = match nesting {
                Nesting::Outermost => &self.followers,
                Nesting::Nested => &self.nested,
            };
            match left {
                Some(left) => drop(wake.wait_for(shared, left)),
                None => wake.wait(shared),
            }
        }
        shared.waiting -= 1;
        shared.nested_waiting -= nested_runs;
        follower.was_notified = std::mem::take(&mut shared.is_waking);
        follower.check(self.state.load(Ordering::SeqCst), &self.leader);
    }

    /// Lets the watcher sleep, unless a dispatch has begun, or items were shared, meanwhile. Returns whether it may.
    ///
    /// Sequentially consistent on both sides: either the leader's load finds no watcher, or this load finds
    /// its dispatch.
    fn stop_watching(&self, shared: &mut Shared<I>, nesting: Nesting) -> bool {
        shared.watch = Watch::None;
        self.publish_watch(shared);
        let may_sleep = self.phase() == LEADING;
        if !may_sleep {
            shared.watch = Watch::by(nesting);
            self.publish_watch(shared);
        }
        may_sleep
    }

    fn publish_watch(&self, shared: &Shared<I>) {
        let watch_state = match shared.waiting {
            0 => NO_FOLLOWERS,
            _ if shared.watch == Watch::None => NO_WATCHER,
            _ => WATCHED,
        };
        if self.watch_state.load(Ordering::Relaxed) != watch_state {
            self.watch_state.store(watch_state, Ordering::SeqCst);
        }
    }

    fn phase(&self) -> u64 {
        self.state.load(Ordering::SeqCst) & PHASE
    }

    fn lead_if_free(&self) -> bool {
        let state = self.state.load(Ordering::SeqCst);
        state & PHASE == FREE && self.swap(state, state + ONE_MORE + LEADING)
    }

    /// Takes the leadership from a dispatch that was found twice, in this state.
    fn take_over(&self, state: u64, shared: &mut Shared<I>) -> bool {
        let takes_over = self.swap(state, (state & !PHASE) + ONE_MORE + LEADING);
        if takes_over {
            self.record_stuck(shared);
        }
        takes_over
    }

    fn swap(&self, old: u64, new: u64) -> bool {
        self.state.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Whether one thread at a time runs the reactor.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Begins a dispatch in place.
    #[inline]
    pub(crate) fn begin(&self) -> DispatchId {
        // Only the leader changes the word while it leads.
        let state = (self.state.load(Ordering::Relaxed) & !PHASE) + ONE_MORE + DISPATCHING;
        if self.is_alone {
            self.state.store(state, Ordering::Relaxed);
            return DispatchId(state);
        }
        self.state.swap(state, Ordering::SeqCst);
        if self.watch_state.load(Ordering::SeqCst) == NO_WATCHER {
            self.wake_watcher();
        }
        DispatchId(state)
    }

    #[cold]
    fn wake_watcher(&self) {
        let mut shared = self.shared.lock();
        if shared.waiting > 0 && !shared.watch.has_watcher() {
            shared.watch = Watch::Requested;
            self.wake_one(&mut shared);
        }
        self.publish_watch(&shared);
    }

    /// Ends a dispatch in place. False: the thread is no longer the leader.
    #[inline]
    pub(crate) fn end(&self, dispatch_id: DispatchId) -> bool {
        let state = (dispatch_id.0 & !PHASE) + LEADING;
        if self.is_alone {
            // It differs if the reactor was run inside of the handler.
            let leads = self.state.load(Ordering::Relaxed) == dispatch_id.0;
            if leads {
                self.state.store(state, Ordering::Relaxed);
            }
            return leads;
        }
        self.swap(dispatch_id.0, state)
    }

    /// Lets another thread lead, and dispatch the other items, while this dispatch continues.
    pub(crate) fn promote(&self, dispatch_id: DispatchId) {
        let is_in_place = dispatch_id.0 & PHASE == DISPATCHING;
        if is_in_place && self.swap(dispatch_id.0, (dispatch_id.0 & !PHASE) + FREE) {
            self.promote_follower();
        } else {
            self.promote_if_free();
        }
    }

    /// As [`promote`](Self::promote), for any dispatch in place: for a thread that runs the reactor inside of
    /// a handler, and does not know whether it leads. If it does not, the leader merely has to start leading
    /// again.
    pub(crate) fn promote_any(&self) {
        let state = self.state.load(Ordering::SeqCst);
        if state & PHASE == DISPATCHING {
            self.promote(DispatchId(state));
        }
    }

    fn promote_follower(&self) {
        let mut shared = self.shared.lock();
        shared.shared_at = None; // also a thread that is waking for an item wakes the next at once
        self.wake_one(&mut shared);
    }

    /// Wakes a follower, unless one is waking: that one wakes the next if there is more to do than it takes. Idle ones
    /// come before nested runs, and of each kind the watcher as the last.
    fn wake_one(&self, shared: &mut Shared<I>) {
        if shared.waiting > 0 && !shared.is_waking {
            shared.is_waking = true;
            let (nesting, waiting, wake) = if shared.has_idle() {
                (Nesting::Outermost, shared.waiting - shared.nested_waiting, &self.followers)
            } else {
                (Nesting::Nested, shared.nested_waiting, &self.nested)
            };
            let is_watcher = shared.watch == Watch::by(nesting) && waiting == 1;
            if is_watcher { self.watcher.notify_one() } else { wake.notify_one() }
        }
    }

    fn wake_all(&self) {
        self.followers.notify_all();
        self.nested.notify_all();
        self.watcher.notify_all();
    }

    /// The leader gives up the leadership.
    pub(crate) fn resign(&self) {
        self.leave();
        self.promote_follower();
    }

    fn leave(&self) {
        self.state.store((self.state.load(Ordering::Relaxed) & !PHASE) + FREE, Ordering::SeqCst);
    }

    /// The leader shares the items of a wait, and resigns.
    pub(crate) fn share(&self, items: impl IntoIterator<Item = I>, epoch: &mut StuckEpoch) {
        let mut shared = self.shared.lock();
        shared.items.extend(items);
        self.leave();
        *epoch = shared.stuck_epoch; // while it led, it was not counted
        if shared.waiting > 0 {
            shared.shared_at = Some(Instant::now());
            if shared.watch == Watch::None {
                shared.watch = Watch::Requested;
            }
            self.wake_in_time(&mut shared);
            self.publish_watch(&shared);
        }
    }

    /// The leader, a nested run, passes the items of a wait to idle followers at once, and resigns.
    pub(crate) fn pass_on(&self, items: impl IntoIterator<Item = I>) {
        self.shared.lock().items.extend(items);
        self.resign();
    }

    /// Takes one of the shared items, if any. A nested run takes none while another follower is idle.
    pub(crate) fn take(
        &self,
        nesting: Nesting,
        epoch: &mut StuckEpoch,
        mut claim: impl FnMut(&mut I) -> bool,
    ) -> Option<I> {
        let mut shared = self.shared.lock();
        shared.end_work(epoch);
        if nesting == Nesting::Nested && shared.has_idle() {
            return None;
        }
        let item = self.take_item(&mut shared, &mut claim)?;
        self.wake_in_time(&mut shared);
        Some(item)
    }

    /// Takes a shared item for the calling thread.
    fn take_item(&self, shared: &mut Shared<I>, claim: &mut impl FnMut(&mut I) -> bool) -> Option<I> {
        let item = shared.take(claim)?;
        shared.shortage = ProcessorShortage::default();
        self.taker.record_current();
        Some(item)
    }

    /// Whether a follower is idle: it waits, and not inside of a handler.
    pub(crate) fn has_idle(&self) -> bool {
        self.shared.lock().has_idle()
    }

    /// Whether each further event is dispatched by a thread that is not inside of a handler.
    #[cfg(all(test, shuttle))]
    pub(crate) fn is_nested_run_last(&self) -> bool {
        let shared = self.shared.lock();
        shared.has_idle() || shared.nested_waiting > 0 && self.phase() == LEADING
    }

    /// The leader passes an item to the workers, and waits while their queue is full. It stays leader.
    /// Returns the item if the workers have ended.
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

    /// A worker waits for an item to dispatch; `None` at the end.
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

    /// Makes the workers end after the queued items.
    pub(crate) fn end_workers(&self) {
        let mut shared = self.shared.lock();
        shared.ends = true;
        self.workers.notify_all();
        self.room.notify_all();
    }

    /// The number of calls of [`check_conditions`](Self::check_conditions).
    pub(crate) fn condition_checks(&self) -> u64 {
        self.shared.lock().condition_checks
    }

    /// Counts a thread that begins or ends a run with a condition.
    pub(crate) fn count_conditional(&self, comes: bool) {
        if comes {
            self.conditional_runs.fetch_add(1, Ordering::SeqCst);
        } else {
            self.conditional_runs.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Makes the followers among those threads check their conditions.
    pub(crate) fn check_conditions(&self) {
        if self.conditional_runs.load(Ordering::SeqCst) > 0 {
            let mut shared = self.shared.lock();
            shared.condition_checks += 1;
            self.wake_all();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Makes all threads return; the leader has to be woken separately.
    pub(crate) fn stop(&self) {
        let _shared = self.shared.lock();
        self.stopped.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// Allows threads to run again after [`stop`](Self::stop).
    pub(crate) fn restart(&self) {
        self.stopped.store(false, Ordering::SeqCst);
    }

    /// Takes out all shared items that were not started.
    pub(crate) fn drain(&self) -> VecDeque<I> {
        std::mem::take(&mut self.shared.lock().items)
    }
}

impl<I> Shared<I> {
    /// Whether a follower waits that is no nested run.
    fn has_idle(&self) -> bool {
        self.waiting > self.nested_waiting
    }

    /// A thread is back from its work. If it was found stuck since, it no longer is.
    fn end_work(&mut self, epoch: &mut StuckEpoch) {
        if std::mem::replace(epoch, self.stuck_epoch) != self.stuck_epoch {
            self.stuck = self.stuck.saturating_sub(1);
        }
    }

    fn take(&mut self, claim: &mut impl FnMut(&mut I) -> bool) -> Option<I> {
        while let Some(mut item) = self.items.pop_front() {
            if claim(&mut item) {
                return Some(item);
            }
        }
        None
    }
}

impl Watch {
    /// The watcher is a nested run, or another follower.
    fn by(nesting: Nesting) -> Self {
        match nesting {
            Nesting::Outermost => Self::ByFollower,
            Nesting::Nested => Self::ByNestedRun,
        }
    }

    fn has_watcher(self) -> bool {
        matches!(self, Self::ByFollower | Self::ByNestedRun)
    }
}

/// A thread without work.
struct Follower {
    nesting: Nesting,
    /// Another thread has woken it.
    was_notified: bool,
    duty: Duty,
}

/// The part that a follower has in watching the leader.
enum Duty {
    /// It has not waited yet.
    Undecided,
    Watches {
        /// The state of the leader at the last check.
        last_state: u64,
        /// The checks without a dispatch.
        idle: u32,
        /// Whether the last two checks have found the same dispatch, and the leader does not merely lack a processor.
        is_long: bool,
        shortage: ProcessorShortage,
    },
    /// It watched, and stopped because nothing happened.
    Slept,
}

impl Follower {
    fn is_watching(&self) -> bool {
        matches!(self.duty, Duty::Watches { .. })
    }

    /// It watches, and woke by itself.
    fn is_unprompted(&self) -> bool {
        self.is_watching() && !self.was_notified
    }

    /// The state of a dispatch in place that lasts long.
    fn long_dispatch(&self) -> Option<u64> {
        match self.duty {
            Duty::Watches { last_state, is_long: true, .. } => Some(last_state),
            _ => None,
        }
    }

    /// Checks the state of the leader, if it watches.
    fn check(&mut self, state: u64, leader: &WorkingThread) {
        let Duty::Watches { last_state, idle, is_long, shortage } = &mut self.duty else { return };
        let is_same = state == *last_state;
        let in_dispatch = state & PHASE == DISPATCHING;
        if !is_same {
            *shortage = ProcessorShortage::default();
        }
        *is_long = is_same && in_dispatch && !shortage.delays(leader);
        *idle = if is_same && !in_dispatch { *idle + 1 } else { 0 };
        *last_state = state;
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::thread::{self, ScopedJoinHandle};

    use super::*;

    const LATER: Duration = Duration::from_secs(600);

    /// A leader that shares some items, beside one follower.
    struct Pair(Leadership<u32>, StuckEpoch);

    fn next(leadership: &Leadership<u32>, epoch: &mut StuckEpoch) -> Action<u32> {
        leadership.next(Deadline::after(None), None, Nesting::Outermost, epoch, |_| true)
    }

    impl Pair {
        /// `tick`: the interval of the watcher.
        fn new(tick: Duration, processors: usize) -> Self {
            let leadership = Leadership::new(tick, Duration::ZERO, processors, usize::MAX, false);
            let mut epoch = leadership.enter(Nesting::Outermost);
            assert_eq!(next(&leadership, &mut epoch), Action::Lead);
            Self(leadership, epoch)
        }

        /// Starts the follower, and waits until it watches. It takes one item.
        fn follow<'s>(&'s self, scope: &'s thread::Scope<'s, '_>) -> ScopedJoinHandle<'s, Action<u32>> {
            let follower = scope.spawn(|| next(&self.0, &mut self.0.enter(Nesting::Outermost)));
            while self.0.shared.lock().waiting == 0 {
                thread::yield_now();
            }
            follower
        }
    }

    #[test]
    fn one_thread_dispatches_all_on_one_processor() {
        let pair = Pair::new(LATER, 1);
        let (leadership, mut epoch) = (&pair.0, pair.1);
        thread::scope(|scope| {
            let follower = pair.follow(scope);
            leadership.share(0..100, &mut epoch);
            for item in 0..100 {
                assert_eq!(next(leadership, &mut epoch), Action::Work(item));
                assert!(!leadership.shared.lock().is_waking, "the follower was woken");
            }
            leadership.stop();
            assert_eq!(follower.join().expect("it does not panic"), Action::Stopped);
        });
    }

    #[test]
    fn two_threads_dispatch_on_two_processors() {
        let pair = Pair::new(LATER, 2);
        let (leadership, mut epoch) = (&pair.0, pair.1);
        thread::scope(|scope| {
            let follower = pair.follow(scope);
            leadership.share(0..2, &mut epoch);
            assert!(matches!(follower.join().expect("it does not panic"), Action::Work(0)));
            assert_eq!(next(leadership, &mut epoch), Action::Work(1));
        });
    }

    #[test]
    fn the_watcher_replaces_a_stuck_thread() {
        let pair = Pair::new(Duration::from_millis(1), 1);
        let (leadership, mut epoch) = (&pair.0, pair.1);
        thread::scope(|scope| {
            let follower = pair.follow(scope);
            leadership.share(0..2, &mut epoch);
            let first = next(leadership, &mut epoch);
            // This thread does not come back before the other has taken an item.
            let second = follower.join().expect("it does not panic");
            assert!([first, second].iter().all(|action| matches!(action, Action::Work(_))));
            assert_ne!(leadership.shared.lock().stuck_epoch, StuckEpoch(0));
            assert_eq!(next(leadership, &mut epoch), Action::Lead);
            assert_eq!(leadership.shared.lock().stuck, 0, "it is back");
        });
    }
}
