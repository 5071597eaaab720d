//! What a managed thread knows of itself, and how it hears what its manager wants.

use std::fmt;
use std::time::Duration;

use super::orders::Orders;
use super::registry::{Member, Phase, Registry, State};
use super::{Cancelled, SpawnError};
use crate::deadline::Deadline;
use crate::{Arc, MutexGuard, thread};

/// What a managed thread is given: who it is, and what its manager wants of it.
///
/// Suspension and cancellation are cooperative: a thread honours them where it calls [`checkpoint`](Self::checkpoint)
/// or [`pause`](Self::pause), so never in the middle of a change that others would find half done. A thread that
/// blocks elsewhere hears of them when that ends.
pub struct ThreadContext {
    pub(super) registry: Arc<Registry>,
    pub(super) id: u64,
    pub(super) name: Arc<str>,
    pub(super) group: Arc<str>,
    pub(super) index: usize,
    pub(super) orders: Arc<Orders>,
}

impl ThreadContext {
    /// The thread's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its group's name.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Its number among those spawned with it at once, from zero.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Waits here while the thread is suspended. One load of an atomic while nothing is asked of it.
    ///
    /// # Errors
    /// [`Cancelled`] if it is to end, suspended or not.
    #[inline]
    pub fn checkpoint(&self) -> Result<(), Cancelled> {
        if self.orders.get() == 0 { Ok(()) } else { self.obey(self.registry.state.lock()) }
    }

    /// Whether the thread is to end; it does not stop here if suspended.
    #[inline]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.orders.is_cancelled()
    }

    /// A checkpoint that takes so long: for what is done from time to time. A suspension counts as part of it.
    ///
    /// # Errors
    /// [`Cancelled`], at once, if the thread is to end.
    pub fn pause(&self, duration: Duration) -> Result<(), Cancelled> {
        let deadline = Deadline::after(duration);
        let mut state = self.registry.state.lock();
        loop {
            if self.orders.get() != 0 {
                self.obey(state)?;
                state = self.registry.state.lock();
            }
            let remaining = deadline.remaining();
            if remaining.is_zero() || self.registry.ordered.wait_for(&mut state, remaining).timed_out() {
                drop(state);
                return self.checkpoint();
            }
        }
    }

    /// Stops while the orders say so.
    fn obey(&self, mut state: MutexGuard<'_, State>) -> Result<(), Cancelled> {
        while self.orders.is_stopped() && !self.orders.is_cancelled() {
            self.enter(&mut state, Phase::Stopped);
            self.registry.ordered.wait(&mut state);
        }
        self.enter(&mut state, Phase::Running);
        if self.orders.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    fn enter(&self, state: &mut State, phase: Phase) {
        if let Some(member) = state.members.get_mut(&self.id)
            && member.phase != phase
        {
            member.phase = phase;
            self.registry.progressed.notify_all();
        }
    }

    /// The whole life of a managed thread.
    pub(super) fn run(
        self,
        startup: impl FnOnce() -> Result<(), SpawnError>,
        report: impl FnOnce(Result<(), SpawnError>),
        body: impl FnOnce(&Self),
    ) {
        let _ended = Ended(&self);
        let started = startup();
        let is_fit = started.is_ok();
        report(started);
        if !is_fit {
            return;
        }
        let mut state = self.registry.state.lock();
        if let Some(member) = state.members.get_mut(&self.id) {
            member.thread = Some(thread::current().id());
        }
        if self.obey(state).is_ok() {
            body(&self);
        }
    }
}

/// Notes that the thread has ended, also by a panic.
struct Ended<'a>(&'a ThreadContext);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let context = self.0;
        context.enter(&mut context.registry.state.lock(), Phase::Ended);
    }
}

impl Member {
    /// Whether nothing of the thread is left to wait for. One that ended before its spawner noted its handle is not.
    pub(super) fn can_be_joined(&self) -> bool {
        self.phase == Phase::Ended && self.handle.is_some()
    }
}

impl fmt::Debug for ThreadContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadContext").field("name", &self.name).field("group", &self.group).finish_non_exhaustive()
    }
}
