//! The cancellation of requests, as servants see it.
//!
//! GIOP's CancelRequest is advisory (CORBA 3.3 Part 2, 9.4.4): a servant goes on unless it checks. To check,
//! it gets a [`CancellationToken`]; requests without one cost nothing more. A token is cancelled once, for
//! the first [reason](CancelReason). A reply that is given all the same is sent, and the client drops it.
//!
//! A client sends CancelRequest by `ClientConnection::cancel`, in `client/connection/closing.rs`, and for
//! asynchronous calls in `async_calls.rs`.
//!
//! This module has the source of cancellations and its waiters. The server knows the request of a thread,
//! reads CancelRequests and sees connections end.

#[cfg(all(test, shuttle))]
mod models;
mod source;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll},
    time::Duration,
};

use spandrel_sync::Arc;

pub use source::{CancelReason, CancellationSource, SERVING, renew};

/// Tells a servant that its reply is no longer needed. Cheap to clone: all clones are the same token, for any
/// thread.
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
/// A token belongs to one request, and is not cancelled after the reply. Clients cannot cancel one-ways,
/// which have no reply.
#[derive(Clone)]
pub struct CancellationToken(Arc<CancellationSource>);

/// The functions by which the server side finds the request that a thread serves.
#[derive(Clone, Copy, Debug)]
pub struct RequestOfThread {
    /// The source that can cancel the request, if the thread serves one.
    pub served: fn() -> Option<Arc<CancellationSource>>,
    /// The source that can cancel the thread's work: that of its request, or of a call in this process.
    pub current: fn() -> Arc<CancellationSource>,
}

/// Set with the first server side of the process. It selects nothing: all set the same functions, which read the
/// thread-local request of the crate above. A servant that looks for its request has no ORB at hand.
static REQUEST_OF_THREAD: OnceLock<RequestOfThread> = OnceLock::new();

/// Sets the functions by which threads find their requests. Only the first call in a process has an effect.
pub fn set_request_of_thread(functions: RequestOfThread) {
    REQUEST_OF_THREAD.get_or_init(|| functions);
}

/// The source that can cancel the request that this thread serves, if it serves one.
pub(crate) fn served_request() -> Option<Arc<CancellationSource>> {
    (REQUEST_OF_THREAD.get()?.served)()
}

/// The source that can cancel the work of this thread: that of the request that it serves, if it serves one.
pub fn source_of_thread() -> Arc<CancellationSource> {
    REQUEST_OF_THREAD.get().map_or_else(CancellationSource::never, |functions| (functions.current)())
}

impl CancellationToken {
    /// A token that is cancelled when `cancellation` is.
    pub fn new(cancellation: Arc<CancellationSource>) -> Self {
        Self(cancellation)
    }

    /// The token of the request that this thread serves: inside of a servant, or of a future that serves it.
    /// Elsewhere a token that is never cancelled.
    ///
    /// Inside of calls on objects of the same process it is the token of the request from outside, if there is
    /// one.
    #[must_use]
    pub fn current() -> Self {
        Self(source_of_thread())
    }

    /// Whether the reply is no longer needed.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// The reason, once the request is cancelled.
    #[must_use]
    pub fn reason(&self) -> Option<CancelReason> {
        self.0.reason()
    }

    /// A future that is ready once the request is cancelled. If the reply is given before, it stays pending.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { key: self.0.key(), cancellation: Arc::clone(&self.0) }
    }

    /// Waits until the request is cancelled, or the time has passed; returns whether it is cancelled.
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

/// The future of [`CancellationToken::cancelled`].
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
