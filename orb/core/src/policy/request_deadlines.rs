//! Deadlines on the server: the time that a client has left bounds the calls that are made for its request,
//! and expired requests are not run.
//!
//! A server reads the deadline from the request's contexts ([`RequestDeadline`]). While the servant runs, the
//! thread has it ([`InheritedDeadline`]): calls from there end at the same time, whatever their own policies
//! say. The service contexts with deadlines are in `policy/deadline_contexts.rs`, the limits of single calls in
//! `policy/time_limits.rs`; `cancellation` notifies servants.
//!
//! The crate of the server side refuses an expired request (`upcall`: `begin_in_time`), or a deferred one
//! (`upcall::deferred`).

use std::{cell::Cell, time::Duration};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::{thread_local, time::Instant};

use crate::policy::thread_flags::{self, ThreadFlag};

/// The limits on the time of a request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RequestDeadline {
    /// The time from which on the reply is not needed.
    pub answer: Option<Instant>,
    /// The time before which the upcall must not begin.
    pub start: Option<Instant>,
    /// The time after which the upcall must not begin.
    pub delivery: Option<Instant>,
}

impl RequestDeadline {
    /// Checks whether the upcall may still begin.
    ///
    /// # Errors
    /// TIMEOUT, COMPLETED_NO.
    pub fn check(&self) -> Result<(), SystemException> {
        let now = Instant::now();
        let has_passed = |limit: Option<Instant>| limit.is_some_and(|limit| now >= limit);
        let minor = if has_passed(self.delivery) {
            minor::REQUEST_EXPIRED
        } else if has_passed(self.answer) {
            minor::ROUND_TRIP_EXPIRED
        } else {
            return Ok(());
        };
        Err(SystemException::timeout(minor, CompletionStatus::No)
            .with_detail("the client's deadline had passed before the request could be run"))
    }
}

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Returns the time that is left for the request that this thread serves: zero once its deadline has passed,
/// and `None` without a deadline or without a request. Calls that the thread makes end at the same deadline.
#[must_use]
pub fn remaining_time() -> Option<Duration> {
    inherited().map(|deadline| deadline.saturating_duration_since(Instant::now()))
}

/// The deadline of the request that this thread serves; `None` without one. Calls of the thread end by it,
/// too.
pub fn inherited() -> Option<Instant> {
    DEADLINE.with(Cell::get)
}

/// Sets the deadline that calls of this thread inherit, and returns the previous one.
pub(crate) fn replace_inherited(deadline: Option<Instant>) -> Option<Instant> {
    thread_flags::set(ThreadFlag::Deadline, deadline.is_some());
    DEADLINE.with(|now| now.replace(deadline))
}

/// The time in which a thread serves a request with a deadline. If nested, the earlier deadline counts.
#[derive(Debug)]
pub struct InheritedDeadline {
    outer: Option<Instant>,
}

impl InheritedDeadline {
    /// Lets calls of this thread inherit `deadline`, or an earlier one that is in force, until the value is
    /// dropped.
    pub fn enter(deadline: Instant) -> Self {
        let deadline = inherited().map_or(deadline, |outer| outer.min(deadline));
        Self { outer: replace_inherited(Some(deadline)) }
    }
}

impl Drop for InheritedDeadline {
    fn drop(&mut self) {
        replace_inherited(self.outer);
    }
}
