//! The one table of a manager's threads, and what can be done to some or all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::orders::Orders;
use super::{Joined, StillRunning, ThreadPanic};
use crate::deadline::Deadline;
use crate::thread::{JoinHandle, ThreadId, current};
use crate::{Arc, Condition, Mutex, MutexGuard, Weak};

/// How many panics are kept for those who have not asked yet.
const KEPT_PANICS: usize = 64;

pub(super) struct Registry {
    pub(super) limit: usize,
    pub(super) state: Mutex<State>,
    /// Some thread's orders have changed; threads wait for it.
    pub(super) ordered: Condition,
    /// Some thread's phase has changed; managers wait for it.
    pub(super) progressed: Condition,
}

#[derive(Default)]
pub(super) struct State {
    /// All threads that have not been joined, in the order in which they were spawned.
    pub(super) members: BTreeMap<u64, Member>,
    next: u64,
    /// All groups that can take more threads.
    groups: Vec<Weak<Group>>,
    /// What groups made later are told from the start.
    orders: u8,
    panics: Vec<Kept>,
    forgotten_panics: usize,
}

pub(super) struct Member {
    pub(super) group: u64,
    pub(super) named: Named,
    pub(super) phase: Phase,
    /// Known once the thread runs.
    pub(super) thread: Option<ThreadId>,
    /// Known once the spawner has it; this may be after the thread has ended.
    pub(super) handle: Option<JoinHandle<()>>,
}

/// What the table and the thread itself both keep.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) name: Arc<str>,
    pub(super) group: Arc<str>,
    pub(super) orders: Arc<Orders>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    /// At a checkpoint, or not begun.
    Stopped,
    Running,
    Ended,
}

/// A group as its handles and its threads know it.
pub(super) struct Group {
    pub(super) id: u64,
    pub(super) name: Arc<str>,
    /// What threads spawned later are told from the start.
    pub(super) orders: Orders,
}

/// Which threads something is done to: those of one group, or all.
pub(super) type Which = Option<u64>;

fn is(which: Which, group: u64) -> bool {
    which.is_none_or(|which| which == group)
}

impl Registry {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default(), ordered: Condition::new(), progressed: Condition::new() }
    }

    pub(super) fn group(&self, name: &str, orders: u8) -> Arc<Group> {
        let mut state = self.state.lock();
        let id = state.number();
        let group = Arc::new(Group { id, name: name.into(), orders: Orders::new(state.orders | orders) });
        state.groups.retain(|group| group.strong_count() > 0);
        state.groups.push(Arc::downgrade(&group));
        group
    }

    pub(super) fn note_handle(&self, id: u64, thread: std::io::Result<JoinHandle<()>>) -> std::io::Result<()> {
        let mut state = self.state.lock();
        let noted = thread.map(|handle| {
            if let Some(member) = state.members.get_mut(&id) {
                member.handle = Some(handle);
            }
        });
        if noted.is_err() {
            state.members.remove(&id);
        }
        self.progressed.notify_all();
        noted
    }

    /// Takes a thread out of the table that never begins, and sees it end.
    pub(super) fn forget(&self, id: u64) {
        let member = self.state.lock().members.remove(&id);
        if let Some(handle) = member.and_then(|member| member.handle) {
            let _ = handle.join();
        }
        self.progressed.notify_all();
    }

    /// Changes the orders of these threads, and of those spawned into the same groups later.
    pub(super) fn order(&self, which: Which, add: u8, remove: u8) {
        let mut state = self.state.lock();
        if which.is_none() {
            state.orders = (state.orders | add & Orders::SUSPEND) & !remove;
        }
        for group in state.groups.iter().filter_map(Weak::upgrade).filter(|group| is(which, group.id)) {
            group.orders.change(add, remove);
        }
        for member in state.matching(which) {
            member.named.orders.change(add, remove);
        }
        self.ordered.notify_all();
    }

    /// Changes the orders of single threads.
    pub(super) fn order_these(&self, threads: &[u64], add: u8, remove: u8) {
        let state = self.state.lock();
        for member in threads.iter().filter_map(|id| state.members.get(id)) {
            member.named.orders.change(add, remove);
        }
        self.ordered.notify_all();
    }

    /// Waits until each of these threads but the caller is at a checkpoint or has ended; false if the time runs out.
    pub(super) fn until_stopped(&self, which: Which, timeout: Duration) -> bool {
        let me = current().id();
        let is_at_rest =
            |member: &mut Member| matches!(member.phase, Phase::Stopped | Phase::Ended) || member.thread == Some(me);
        self.until(Some(timeout), |state| state.matching(which).all(is_at_rest)).1
    }

    /// Waits until each of these threads but the caller has ended, and tells how.
    pub(super) fn wait(&self, which: Which, timeout: Option<Duration>) -> Result<Joined, StillRunning> {
        let me = current().id();
        let is_awaited = |member: &&mut Member| !member.can_be_joined() && member.thread != Some(me);
        let (mut state, have_ended) = self.until(timeout, |state| state.matching(which).find(is_awaited).is_none());
        if !have_ended {
            let running = state.matching(which).filter(is_awaited);
            return Err(StillRunning { threads: running.map(|member| Arc::clone(&member.named.name)).collect() });
        }
        let ended = state.take_ended(which);
        drop(state);
        let panics: Vec<_> = ended.into_iter().filter_map(Ended::join).collect();
        let mut state = self.state.lock();
        state.keep(panics);
        Ok(state.tell(which))
    }

    /// Waits until `is_over`, and says whether it is.
    fn until(
        &self,
        timeout: Option<Duration>,
        mut is_over: impl FnMut(&mut State) -> bool,
    ) -> (MutexGuard<'_, State>, bool) {
        let deadline = timeout.map(Deadline::after);
        let mut state = self.state.lock();
        while !is_over(&mut state) {
            match deadline {
                None => self.progressed.wait(&mut state),
                Some(deadline) => {
                    if self.progressed.wait_for(&mut state, deadline.remaining()).timed_out() {
                        let is_over = is_over(&mut state);
                        return (state, is_over);
                    }
                }
            }
        }
        (state, true)
    }

    /// Joins what has ended, so that a manager whose threads nobody waits for does not grow.
    pub(super) fn reap(&self) {
        let ended = self.state.lock().take_ended(None);
        if !ended.is_empty() {
            let panics = ended.into_iter().filter_map(Ended::join).collect();
            self.state.lock().keep(panics);
        }
    }

    /// The number of threads that have not ended.
    pub(super) fn running(&self, which: Which) -> usize {
        self.state.lock().matching(which).filter(|member| member.phase != Phase::Ended).count()
    }
}

impl State {
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn matching(&mut self, which: Which) -> impl Iterator<Item = &mut Member> {
        self.members.values_mut().filter(move |member| is(which, member.group))
    }

    fn take_ended(&mut self, which: Which) -> Vec<Ended> {
        let ended = |_: &u64, member: &mut Member| is(which, member.group) && member.can_be_joined();
        self.members.extract_if(.., ended).map(|(id, member)| Ended(id, member)).collect()
    }

    fn keep(&mut self, panics: Vec<Kept>) {
        self.panics.extend(panics);
        let excess = self.panics.len().saturating_sub(KEPT_PANICS);
        self.panics.drain(..excess);
        self.forgotten_panics += excess;
    }

    fn tell(&mut self, which: Which) -> Joined {
        let mut told: Vec<_> = self.panics.extract_if(.., |kept| is(which, kept.group)).collect();
        told.sort_by_key(|kept| kept.id);
        let panics = told.into_iter().map(|kept| kept.panic).collect();
        Joined { panics, forgotten_panics: std::mem::take(&mut self.forgotten_panics) }
    }
}

/// A thread that has been taken out of the table.
struct Ended(u64, Member);

/// A panic that nobody has been told of.
struct Kept {
    id: u64,
    group: u64,
    panic: ThreadPanic,
}

impl Ended {
    /// How it panicked, if it did.
    fn join(self) -> Option<Kept> {
        let Self(id, Member { group, named, handle, .. }) = self;
        let payload = handle.expect("only what can be joined is taken out").join().err()?;
        Some(Kept { id, group, panic: ThreadPanic::new(named.name, named.group, &*payload) })
    }
}

/// Where a thread stands among those spawned with it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) is_alone: bool,
    /// Orders for it alone, from the start.
    pub(super) orders: u8,
}

impl Place {
    pub(super) const ALONE: Self = Self { index: 0, is_alone: true, orders: 0 };

    pub(super) fn name(self, name: &str) -> String {
        if self.is_alone { name.to_owned() } else { format!("{name}-{}", self.index) }
    }
}
