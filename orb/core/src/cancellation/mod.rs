//! Whether anybody still waits for the answer to a request, for the servant that runs it.
//!
//! GIOP's CancelRequest is advisory (CORBA 3.3 Part 2, 9.4.4): a servant goes on unless it looks. One that wants to look asks for a
//! [`CancellationToken`], which costs requests whose servants do not ask nothing. It trips once, for the first [reason](CancelReason) that comes, and
//! stays tripped. An answer that is given all the same is sent; a client that waits no longer drops it.
//!
//! Here is what trips, and who is told. Which request a thread runs, and who reads CancelRequests and sees connections end, is the server's affair.

#[cfg(all(test, shuttle))]
mod models;
mod source;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use spandrel_sync::Arc;

pub(crate) use source::{CancellationSource, SERVING};

/// Why nobody waits for the answer to a request any more.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
#[repr(u8)]
pub enum CancelReason {
    /// The client has said so: its time was up, or whoever waited has given up.
    ClientCancelled = 1,
    /// The time that the client gave the call has passed.
    DeadlineElapsed = 2,
    /// The client is gone, or can be reached no longer.
    ConnectionLost = 3,
    /// The ORB has been shut down, and has waited for the request as long as it does.
    ShuttingDown = 4,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClientCancelled => "the client has cancelled the request",
            Self::DeadlineElapsed => "the client's time for the call has passed",
            Self::ConnectionLost => "the client's connection is lost",
            Self::ShuttingDown => "the ORB shuts down",
        })
    }
}

/// Tells a servant that nobody waits for its answer any more. Cheap to clone; all clones are the same token, and may be used by any thread.
///
/// ```
/// # use spandrel_orb::{CancellationToken, SystemException, CompletionStatus, minor};
/// # fn next_line(at: usize) -> usize { at }
/// fn report(lines: usize) -> Result<usize, SystemException> {
///     let token = CancellationToken::current();
///     let mut sum = 0;
///     for at in 0..lines {
///         if token.is_cancelled() {
///             return Err(SystemException::transient(minor::REQUEST_CANCELLED, CompletionStatus::No));
///         }
///         sum += next_line(at);
///     }
///     Ok(sum)
/// }
/// # assert_eq!(report(3).unwrap(), 3);
/// ```
///
/// A token belongs to one request. It trips no more once that has been answered, and one-ways, whose answers nobody waits for, are not
/// cancelled by their clients.
#[derive(Clone)]
pub struct CancellationToken(Arc<CancellationSource>);

impl CancellationToken {
    pub(crate) fn new(cancellation: Arc<CancellationSource>) -> Self {
        Self(cancellation)
    }

    /// True once nobody waits for the answer any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Why nobody waits, once that is so.
    #[must_use]
    pub fn reason(&self) -> Option<CancelReason> {
        self.0.reason()
    }

    /// Ready once nobody waits for the answer any more. If the request is answered before that, it stays pending.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { key: self.0.key(), cancellation: Arc::clone(&self.0) }
    }

    /// Waits so long at most; true once nobody waits for the answer any more.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.0.wait(timeout)
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken").field("reason", &self.reason()).finish()
    }
}

/// What [`CancellationToken::cancelled`] returns.
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled {
    cancellation: Arc<CancellationSource>,
    key: u64,
}

impl Future for Cancelled {
    type Output = CancelReason;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CancelReason> {
        self.cancellation.poll(self.key, cx.waker()).map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.cancellation.forget(self.key);
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled").finish_non_exhaustive()
    }
}
