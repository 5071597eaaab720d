//! The deadline of the request that a thread serves.

use std::{cell::Cell, time::Duration};

use spandrel_sync::{thread_local, time::Instant};

use crate::thread_policy::{self, ThreadPolicy};

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Returns the time that is left for the request that this thread serves: zero once its deadline has passed,
/// and `None` without a deadline or without a request. Calls that the thread makes end at the same deadline.
#[must_use]
pub fn remaining_time() -> Option<Duration> {
    inherited().map(|deadline| deadline.saturating_duration_since(Instant::now()))
}

/// The deadline of the request that this thread serves.
pub fn inherited() -> Option<Instant> {
    DEADLINE.with(Cell::get)
}

fn replace(deadline: Option<Instant>) -> Option<Instant> {
    thread_policy::set(ThreadPolicy::Deadline, deadline.is_some());
    DEADLINE.with(|now| now.replace(deadline))
}

/// The time in which a thread serves a request with a deadline. If nested, the earlier deadline counts.
#[derive(Debug)]
pub struct InheritedDeadline {
    outer: Option<Instant>,
}

impl InheritedDeadline {
    /// Enters the service of a request.
    pub fn enter(deadline: Instant) -> Self {
        let deadline = inherited().map_or(deadline, |outer| outer.min(deadline));
        Self { outer: replace(Some(deadline)) }
    }
}

impl Drop for InheritedDeadline {
    fn drop(&mut self) {
        replace(self.outer);
    }
}

/// The time in which a thread serves other requests while its own waits: they do not inherit its deadline.
#[derive(Debug)]
pub struct Unbounded {
    outer: Option<Instant>,
}

impl Unbounded {
    /// Takes the thread's deadline away until the value is dropped.
    pub fn enter() -> Self {
        Self { outer: replace(None) }
    }
}

impl Drop for Unbounded {
    fn drop(&mut self) {
        replace(self.outer);
    }
}
