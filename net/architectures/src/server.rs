//! A running server of any architecture.

use std::fmt;
use std::time::Duration;

/// A running server. Dropping it stops it at once.
pub trait Server: fmt::Debug + Send + Sync {
    /// The number of open connections, as far as this process knows them.
    fn connections(&self) -> usize;

    /// Stops accepting, without waiting. Accepted connections are served to their end.
    fn retire(&self);

    /// Waits until all connections are closed by their clients or sessions; false after `timeout`.
    #[must_use]
    fn wait_closed(&self, timeout: Duration) -> bool;

    /// Stops accepting, ends the input of all connections, so that requests that have arrived are still answered, and
    /// waits until they are closed, for at most `timeout`. Then cuts the rest, and returns their number.
    #[must_use = "how many connections were cut"]
    fn stop(&self, timeout: Duration) -> usize;
}
