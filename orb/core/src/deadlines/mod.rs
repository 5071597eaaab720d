//! Deadlines on the server: the time that a client has left bounds the calls that are made for its request,
//! and expired requests are not run.
//!
//! A server reads the deadline with the request's header ([`RequestDeadline`]). While the servant runs, the
//! thread has it ([`InheritedDeadline`]): calls from there end at the same time, whatever their own policies
//! say. The service contexts with deadlines are in `policies/deadline_contexts.rs`, the limits of single calls in
//! `policies/time_limits.rs`; `cancellation` notifies servants.

mod inherited;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::time::Instant;

pub use inherited::{InheritedDeadline, Unbounded, inherited, remaining_time};

/// The limits on the time of a request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RequestDeadline {
    /// The reply is not needed after that.
    pub answer: Option<Instant>,
    /// The upcall must not begin before that.
    pub start: Option<Instant>,
    /// The upcall must not begin after that.
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
