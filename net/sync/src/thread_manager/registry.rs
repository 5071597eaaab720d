//! The table of a manager's threads, and the operations on some or all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::requests::Requests;
use super::{Joined, StillRunning, ThreadPanic};
use crate::thread::{JoinHandle, ThreadId, current};
use crate::time::Deadline;
use crate::{Arc, Condition, Mutex, MutexGuard, Weak};

/// Maximum number of panics that are kept until a wait returns them.
const MAX_UNREPORTED_PANICS: usize = 64;

pub(super) struct Registry {
    pub(super) limit: usize,
    pub(super) state: Mutex<State>,
    /// The requests to some thread have changed; threads wait for it.
    pub(super) requests_changed: Condition,
    /// The phase of some thread has changed; managers wait for it.
    pub(super) phase_changed: Condition,
}

#[derive(Default)]
pub(super) struct State {
    /// All threads that have not been joined, in the order in which they were spawned.
    pub(super) members: BTreeMap<u64, Member>,
    next: u64,
    /// All groups that accept more threads.
    groups: Vec<Weak<Group>>,
    /// The initial requests to groups made later.
    requests: u8,
    panics: Vec<UnreportedPanic>,
    forgotten_panics: usize,
}

pub(super) struct Member {
    pub(super) group: u64,
    pub(super) identity: ThreadIdentity,
    pub(super) phase: Phase,
    /// None until the thread runs.
    pub(super) thread: Option<ThreadId>,
    /// None until the spawner has stored it, perhaps after the thread has ended.
    pub(super) handle: Option<JoinHandle<()>>,
}

/// The fields that the table and the thread itself both keep.
#[derive(Clone)]
pub(super) struct ThreadIdentity {
    pub(super) name: Arc<str>,
    pub(super) group: Arc<str>,
    pub(super) requests: Arc<Requests>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    /// At a checkpoint, or not begun.
    Stopped,
    Running,
    Ended,
}

/// A group, shared by its handles and its threads.
pub(super) struct Group {
    pub(super) id: u64,
    pub(super) name: Arc<str>,
    /// The initial requests to threads spawned later.
    pub(super) requests: Requests,
}

/// The threads that an operation applies to: those of one group, or all.
pub(super) type Selection = Option<u64>;

fn is_selected(selection: Selection, group: u64) -> bool {
    selection.is_none_or(|selection| selection == group)
}

impl Registry {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default(), requests_changed: Condition::new(), phase_changed: Condition::new() }
    }

    pub(super) fn group(&self, name: &str, requests: u8) -> Arc<Group> {
        let mut state = self.state.lock();
        let id = state.number();
        let group = Arc::new(Group { id, name: name.into(), requests: Requests::new(state.requests | requests) });
        state.groups.retain(|group| group.strong_count() > 0);
        state.groups.push(Arc::downgrade(&group));
        group
    }

    pub(super) fn set_handle(&self, id: u64, thread: std::io::Result<JoinHandle<()>>) -> std::io::Result<()> {
        let mut state = self.state.lock();
        let stored = thread.map(|handle| {
            if let Some(member) = state.members.get_mut(&id) {
                member.handle = Some(handle);
            }
        });
        if stored.is_err() {
            state.members.remove(&id);
        }
        self.phase_changed.notify_all();
        stored
    }

    /// Removes a thread that never begins from the table, and joins it.
    pub(super) fn discard_unstarted(&self, id: u64) {
        let member = self.state.lock().members.remove(&id);
        if let Some(handle) = member.and_then(|member| member.handle) {
            let _ = handle.join();
        }
        self.phase_changed.notify_all();
    }

    /// Changes the requests to these threads, and to those spawned into the same groups later.
    pub(super) fn change_requests(&self, selection: Selection, add: u8, remove: u8) {
        let mut state = self.state.lock();
        if selection.is_none() {
            state.requests = (state.requests | add & Requests::SUSPEND) & !remove;
        }
        for group in state.groups.iter().filter_map(Weak::upgrade).filter(|group| is_selected(selection, group.id)) {
            group.requests.change(add, remove);
        }
        for member in state.matching(selection) {
            member.identity.requests.change(add, remove);
        }
        self.requests_changed.notify_all();
    }

    /// Changes the requests to single threads.
    pub(super) fn change_requests_of(&self, threads: &[u64], add: u8, remove: u8) {
        let state = self.state.lock();
        for member in threads.iter().filter_map(|id| state.members.get(id)) {
            member.identity.requests.change(add, remove);
        }
        self.requests_changed.notify_all();
    }

    /// Waits until each of these threads but the caller is at a checkpoint or has ended; false after a
    /// timeout.
    pub(super) fn until_stopped(&self, selection: Selection, timeout: Duration) -> bool {
        let me = current().id();
        let is_at_rest =
            |member: &mut Member| matches!(member.phase, Phase::Stopped | Phase::Ended) || member.thread == Some(me);
        self.until(Some(timeout), |state| state.matching(selection).all(is_at_rest)).1
    }

    /// Waits until each of these threads but the caller has ended, and reports their panics.
    pub(super) fn wait(&self, selection: Selection, timeout: Option<Duration>) -> Result<Joined, StillRunning> {
        let me = current().id();
        let is_awaited = |member: &&mut Member| !member.can_be_joined() && member.thread != Some(me);
        let (mut state, have_ended) = self.until(timeout, |state| state.matching(selection).find(is_awaited).is_none());
        if !have_ended {
            let running = state.matching(selection).filter(is_awaited);
            return Err(StillRunning { threads: running.map(|member| Arc::clone(&member.identity.name)).collect() });
        }
        let ended = state.take_ended(selection);
        drop(state);
        let panics: Vec<_> = ended.into_iter().filter_map(EndedThread::join).collect();
        let mut state = self.state.lock();
        state.add_panics(panics);
        Ok(state.take_report(selection))
    }

    /// Waits until `is_over` returns true; also returns whether it did before the timeout.
    fn until(
        &self,
        timeout: Option<Duration>,
        mut is_over: impl FnMut(&mut State) -> bool,
    ) -> (MutexGuard<'_, State>, bool) {
        let deadline = Deadline::after(timeout);
        let mut state = self.state.lock();
        while !is_over(&mut state) {
            if self.phase_changed.wait_until(&mut state, deadline).timed_out() {
                let is_over = is_over(&mut state);
                return (state, is_over);
            }
        }
        (state, true)
    }

    /// Joins the threads that have ended, so that a manager without calls of `wait` does not grow.
    pub(super) fn reap(&self) {
        let ended = self.state.lock().take_ended(None);
        if !ended.is_empty() {
            let panics = ended.into_iter().filter_map(EndedThread::join).collect();
            self.state.lock().add_panics(panics);
        }
    }

    /// The number of threads that have not ended.
    pub(super) fn running(&self, selection: Selection) -> usize {
        self.state.lock().matching(selection).filter(|member| member.phase != Phase::Ended).count()
    }
}

impl State {
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn matching(&mut self, selection: Selection) -> impl Iterator<Item = &mut Member> {
        self.members.values_mut().filter(move |member| is_selected(selection, member.group))
    }

    fn take_ended(&mut self, selection: Selection) -> Vec<EndedThread> {
        let ended = |_: &u64, member: &mut Member| is_selected(selection, member.group) && member.can_be_joined();
        self.members.extract_if(.., ended).map(|(id, member)| EndedThread(id, member)).collect()
    }

    fn add_panics(&mut self, panics: Vec<UnreportedPanic>) {
        self.panics.extend(panics);
        let excess = self.panics.len().saturating_sub(MAX_UNREPORTED_PANICS);
        self.panics.drain(..excess);
        self.forgotten_panics += excess;
    }

    fn take_report(&mut self, selection: Selection) -> Joined {
        let mut unreported: Vec<_> =
            self.panics.extract_if(.., |unreported_panic| is_selected(selection, unreported_panic.group)).collect();
        unreported.sort_by_key(|unreported_panic| unreported_panic.id);
        let panics = unreported.into_iter().map(|unreported_panic| unreported_panic.panic).collect();
        Joined { panics, forgotten_panics: std::mem::take(&mut self.forgotten_panics) }
    }
}

/// A thread that has been removed from the table.
struct EndedThread(u64, Member);

/// A panic that no wait has returned yet.
struct UnreportedPanic {
    id: u64,
    group: u64,
    panic: ThreadPanic,
}

impl EndedThread {
    /// Joins the thread and returns its panic, if any.
    fn join(self) -> Option<UnreportedPanic> {
        let Self(id, Member { group, identity, handle, .. }) = self;
        let payload = handle.expect("only threads that can be joined are taken out").join().err()?;
        Some(UnreportedPanic { id, group, panic: ThreadPanic::new(identity.name, identity.group, &*payload) })
    }
}

/// The position of a thread among those spawned in the same call.
#[derive(Clone, Copy)]
pub(super) struct SpawnPosition {
    pub(super) index: usize,
    pub(super) is_alone: bool,
    /// Initial requests to this thread alone.
    pub(super) requests: u8,
}

impl SpawnPosition {
    pub(super) const ALONE: Self = Self { index: 0, is_alone: true, requests: 0 };

    pub(super) fn name(self, name: &str) -> String {
        if self.is_alone { name.to_owned() } else { format!("{name}-{}", self.index) }
    }
}
