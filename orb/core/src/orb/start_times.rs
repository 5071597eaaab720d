//! The interface by which a call obeys start times, which `reference` implements.

use spandrel_giop::SystemException;
use spandrel_sync::time::Instant;
use spandrel_transport::Deadline;

use super::Orb;

/// The start times of one call. A program that sets no start time does not contain them.
pub trait StartTimes: std::fmt::Debug {
    /// The start time of the reply, if it is in the future.
    fn reply(&self) -> Option<Instant>;

    /// The start time of the request, if it is in the future.
    ///
    /// # Errors
    /// TIMEOUT, COMPLETED_NO, if a start time is later than the end of the request's time, or of the reply's.
    fn request(&self, deadline: Option<&Deadline>) -> Result<Option<Instant>, SystemException>;

    /// Blocks the thread until the request may be sent.
    ///
    /// # Errors
    /// As [`request`](Self::request); BAD_INV_ORDER if the ORB is shut down meanwhile.
    fn hold_request(&self, orb: &Orb, deadline: Option<&Deadline>) -> Result<(), SystemException>;

    /// Blocks the thread until the reply may be delivered.
    ///
    /// # Errors
    /// BAD_INV_ORDER if the ORB is shut down meanwhile.
    fn hold_reply(&self, orb: &Orb) -> Result<(), SystemException>;
}
