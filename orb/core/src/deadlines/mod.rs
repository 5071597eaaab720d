//! Deadlines that travel, where they arrive: how much time a client has left bounds the calls that are made in serving its request, and keeps requests
//! from being run that nobody waits for any more.
//!
//! A server notes what a request says of time when it has read its header ([`RequestDeadline`]). While the servant runs that is the thread's ([`InheritedDeadline`]): calls from
//! there have as much time and no more, whatever their own policies say. How a request says it, and limits of a call's own, are `policies`'; who is
//! told when time is up is `cancellation`'s affair.

mod inherited;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::time::Instant;

pub use inherited::remaining_time;
pub(crate) use inherited::{InheritedDeadline, Unbounded, inherited};

/// Until when a request is worth anything.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct RequestDeadline {
    /// Nobody waits for the answer after that.
    pub(crate) answer: Option<Instant>,
    /// It must not be begun before that.
    pub(crate) start: Option<Instant>,
    /// It must not be begun after that.
    pub(crate) delivery: Option<Instant>,
}

impl RequestDeadline {
    /// Whether it may still be begun.
    ///
    /// # Errors
    /// TIMEOUT, COMPLETED_NO.
    pub(crate) fn check(&self) -> Result<(), SystemException> {
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
            .with_detail("the client's time for the request had passed when its turn came"))
    }
}
