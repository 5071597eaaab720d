//! The deadline of the request that a thread serves.

use std::{cell::Cell, time::Duration};

use spandrel_sync::{thread_local, time::Instant};

use crate::thread_policy::{self, ThreadPolicy};

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// How much time there is still for the request that this thread serves, as its client has said: nothing once it has passed, `None` if it has all the
/// time in the world, or no request is served here. Calls that are made meanwhile have as much time, and no more.
#[must_use]
pub fn remaining_time() -> Option<Duration> {
    inherited().map(|deadline| deadline.saturating_duration_since(Instant::now()))
}

/// When nobody waits any more for what this thread serves.
pub(crate) fn inherited() -> Option<Instant> {
    DEADLINE.with(Cell::get)
}

fn replace(deadline: Option<Instant>) -> Option<Instant> {
    thread_policy::set(ThreadPolicy::Deadline, deadline.is_some());
    DEADLINE.with(|now| now.replace(deadline))
}

/// The time in which a thread serves a request with a deadline. Within another such time the earlier deadline counts.
#[derive(Debug)]
pub(crate) struct InheritedDeadline {
    outer: Option<Instant>,
}

impl InheritedDeadline {
    /// A request that is made of what this thread serves.
    pub(crate) fn enter(deadline: Instant) -> Self {
        let deadline = inherited().map_or(deadline, |outer| outer.min(deadline));
        Self { outer: replace(Some(deadline)) }
    }
}

impl Drop for InheritedDeadline {
    fn drop(&mut self) {
        replace(self.outer);
    }
}

/// The time in which a thread serves others while its own request waits: these have nothing to do with its deadline.
#[derive(Debug)]
pub(crate) struct Unbounded {
    outer: Option<Instant>,
}

impl Unbounded {
    pub(crate) fn enter() -> Self {
        Self { outer: replace(None) }
    }
}

impl Drop for Unbounded {
    fn drop(&mut self) {
        replace(self.outer);
    }
}
