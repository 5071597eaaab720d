//! The context of a managed thread: its identity, and the requests of its manager.

use std::fmt;
use std::time::Duration;

use super::registry::{Member, Phase, Registry, State};
use super::requests::Requests;
use super::{Cancelled, SpawnError};
use crate::time::Deadline;
use crate::{Arc, MutexGuard, thread};

/// The argument of a managed thread's body: its identity, and the requests of its manager.
///
/// Suspension and cancellation are cooperative. A thread honours them where it calls
/// [`checkpoint`](Self::checkpoint) or [`pause`](Self::pause), so never in the middle of a change. A thread
/// that blocks elsewhere honours them after that.
pub struct ThreadContext {
    pub(super) registry: Arc<Registry>,
    pub(super) id: u64,
    pub(super) name: Arc<str>,
    pub(super) group: Arc<str>,
    pub(super) index: usize,
    pub(super) requests: Arc<Requests>,
}

impl ThreadContext {
    /// The name of the thread, as given when it was spawned.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the group in which the thread was spawned.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Its index among the threads spawned in the same call, from zero.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Waits here while the thread is suspended. Costs one atomic load while no request is pending.
    ///
    /// # Errors
    /// [`Cancelled`] if the thread is to end, suspended or not.
    #[inline]
    pub fn checkpoint(&self) -> Result<(), Cancelled> {
        if self.requests.get() == 0 { Ok(()) } else { self.wait_while_stopped(self.registry.state.lock()) }
    }

    /// Whether the thread is cancelled; does not wait if suspended.
    #[inline]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.requests.is_cancelled()
    }

    /// A checkpoint that lasts `duration`, for periodic work. A suspension counts as part of it.
    ///
    /// # Errors
    /// [`Cancelled`], at once, if the thread is to end.
    pub fn pause(&self, duration: Duration) -> Result<(), Cancelled> {
        let deadline = Deadline::after(duration);
        let mut state = self.registry.state.lock();
        loop {
            if self.requests.get() != 0 {
                self.wait_while_stopped(state)?;
                state = self.registry.state.lock();
            }
            if self.registry.requests_changed.wait_until(&mut state, deadline).timed_out() {
                drop(state);
                return self.checkpoint();
            }
        }
    }

    /// Waits while the thread is suspended or its group is held.
    fn wait_while_stopped(&self, mut state: MutexGuard<'_, State>) -> Result<(), Cancelled> {
        while self.requests.is_stopped() && !self.requests.is_cancelled() {
            self.enter(&mut state, Phase::Stopped);
            self.registry.requests_changed.wait(&mut state);
        }
        self.enter(&mut state, Phase::Running);
        if self.requests.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    fn enter(&self, state: &mut State, phase: Phase) {
        if let Some(member) = state.members.get_mut(&self.id)
            && member.phase != phase
        {
            member.phase = phase;
            self.registry.phase_changed.notify_all();
        }
    }

    /// Runs a managed thread from start to end.
    pub(super) fn run(
        self,
        startup: impl FnOnce() -> Result<(), SpawnError>,
        report: impl FnOnce(Result<(), SpawnError>),
        body: impl FnOnce(&Self),
    ) {
        let _end_guard = EndGuard(&self);
        let started = startup();
        let is_started = started.is_ok();
        report(started);
        if !is_started {
            return;
        }
        let mut state = self.registry.state.lock();
        if let Some(member) = state.members.get_mut(&self.id) {
            member.thread = Some(thread::current().id());
        }
        if self.wait_while_stopped(state).is_ok() {
            body(&self);
        }
    }
}

/// Records the end of the thread, also by a panic.
struct EndGuard<'a>(&'a ThreadContext);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        let context = self.0;
        context.enter(&mut context.registry.state.lock(), Phase::Ended);
    }
}

impl Member {
    /// Whether the thread can be joined. A thread that ended before its spawner stored its handle cannot be
    /// yet.
    pub(super) fn can_be_joined(&self) -> bool {
        self.phase == Phase::Ended && self.handle.is_some()
    }
}

impl fmt::Debug for ThreadContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadContext").field("name", &self.name).field("group", &self.group).finish_non_exhaustive()
    }
}
