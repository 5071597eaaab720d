//! The exceptions of calls whose requests were not sent.

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_transport::Deadline;

/// REBIND for a call without an open connection.
pub(crate) fn no_reconnecting() -> SystemException {
    SystemException::rebind(0, CompletionStatus::No)
        .with_detail("no connection is open, and the rebind policy forbids to open one (validate_connection would)")
}

/// TIMEOUT for a request that was not sent.
pub(crate) fn not_sent_in_time(deadline: Option<&Deadline>) -> SystemException {
    let is_for_sending = deadline.is_some_and(Deadline::limits_sending);
    let minor = if is_for_sending { minor::REQUEST_EXPIRED } else { minor::ROUND_TRIP_EXPIRED };
    SystemException::timeout(minor, CompletionStatus::No)
        .with_detail("the time-out passed before the request could be sent")
}
