//! Synchronous calls whose threads do not read their own replies: the wait strategies *on reactor* and *on
//! waker*.
//!
//! Their replies are read like those of asynchronous calls. Meanwhile their threads sleep, or serve other
//! requests.
//!
//! With `-ORBCancelNested` a nested call ends when the request that it is made for is cancelled
//! (`CancellationLink`). `blocking` sends the CancelRequest of a synchronous call
//! (`ClientConnection::cancel`), `asynchronous` that of an asynchronous one.

use std::task::{Wake, Waker};
use std::time::Duration;

use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::{Arc, Condition, Mutex};
use spandrel_transport::Deadline;

use super::nesting::{self, NestedWait, NestedWork};
use crate::{
    Orb, WaitStrategy,
    client::{
        CallFailure, ClientConnection, ExpiryReason, Reply, ReplyReceiver, TimedCall, UnsentKind, WriteLimits,
        is_client_reactor_thread,
    },
};
use crate::{
    call::cancellation::{CancellationSource, served_request},
    client::cancelled,
    servant_side::upcall_scope::is_in_upcall,
};

/// Whether this thread delegates the reading of its replies.
#[inline]
pub(super) fn is_needed(orb: &Orb) -> bool {
    let settings = orb.settings();
    nesting::nests()
        || (settings.wait == WaitStrategy::OnWaker || settings.cancels_nested && is_in_upcall())
            && !is_client_reactor_thread()
}

/// Ends a call when the request that it is made for is cancelled.
struct CancellationLink {
    cancellation: Arc<CancellationSource>,
    key: u64,
}

impl CancellationLink {
    /// # Errors
    /// TRANSIENT if the request was cancelled before; nothing was sent.
    fn begin(orb: &Orb, awaited: &Arc<AwaitedReply>) -> Result<Option<Self>, SystemException> {
        if !orb.settings().cancels_nested {
            return Ok(None);
        }
        let Some(cancellation) = served_request() else { return Ok(None) };
        let key = cancellation.key();
        match cancellation.poll(key, &Waker::from(Arc::clone(awaited))) {
            None => Ok(Some(Self { cancellation, key })),
            Some(_) => Err(cancelled(CompletionStatus::No)),
        }
    }
}

impl Drop for CancellationLink {
    fn drop(&mut self) {
        self.cancellation.forget(self.key);
    }
}

/// Woken when the request that the call is made for is cancelled.
impl Wake for AwaitedReply {
    fn wake(self: Arc<Self>) {
        self.settle(WaitState::Expired(ExpiryReason::Cancelled));
    }
}

/// The reply that a thread waits for.
#[derive(Debug)]
pub(crate) struct AwaitedReply {
    state: Mutex<WaitState>,
    changed: Condition,
    /// The source of requests that the thread serves meanwhile.
    nested_work: Option<Arc<dyn NestedWork>>,
}

#[derive(Debug)]
enum WaitState {
    Pending,
    Completed(Result<Reply, CallFailure>),
    /// The wait has ended; a later reply is ignored.
    Expired(ExpiryReason),
}

impl AwaitedReply {
    /// `nested_work`: the source of requests that the thread serves while it waits.
    pub(crate) fn new(nested_work: Option<Arc<dyn NestedWork>>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(WaitState::Pending), changed: Condition::new(), nested_work })
    }

    /// Waits for the outcome of a request, and abandons it at the deadline or on cancellation. With `wire`,
    /// the server is then sent a CancelRequest in that encoding.
    pub(crate) fn outcome(
        &self,
        connection: &ClientConnection,
        request_id: u32,
        wire: Option<Wire>,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure> {
        match self.wait(deadline) {
            WaitState::Completed(outcome) => outcome,
            WaitState::Expired(reason) => {
                let may_have_arrived = connection.abandon(request_id, wire, reason.retires_connection());
                Err(CallFailure::new(reason.exception(may_have_arrived)))
            }
            WaitState::Pending => Err(CallFailure::new(SystemException::internal(0, CompletionStatus::Maybe))),
        }
    }

    /// Sets the outcome; only the first one counts.
    fn settle(&self, state: WaitState) {
        let mut now = self.state.lock();
        if !matches!(*now, WaitState::Pending) {
            return;
        }
        *now = state;
        drop(now);
        self.changed.notify_one();
        if let Some(nested_work) = &self.nested_work {
            nested_work.wake();
        }
    }

    fn is_settled(&self) -> bool {
        !matches!(*self.state.lock(), WaitState::Pending)
    }

    /// Waits until the outcome is set or the deadline has passed.
    fn wait(&self, deadline: Option<&Deadline>) -> WaitState {
        let mut state = self.state.lock();
        loop {
            if !matches!(*state, WaitState::Pending) {
                return std::mem::replace(&mut *state, WaitState::Pending);
            }
            match deadline.map(Deadline::remaining) {
                None => self.changed.wait(&mut state),
                Some(Duration::ZERO) => return WaitState::Expired(ExpiryReason::DeadlinePassed),
                Some(remaining) => drop(self.changed.wait_for(&mut state, remaining)),
            }
        }
    }
}

impl ReplyReceiver for AwaitedReply {
    fn complete(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        let no_reply = || CallFailure::new(SystemException::internal(0, CompletionStatus::Maybe));
        self.settle(WaitState::Completed(outcome.and_then(|reply| reply.ok_or_else(no_reply))));
    }

    /// Not used: the connection is open.
    fn connection_opened(self: Arc<Self>, _outcome: Result<(), CallFailure>) {}
}

impl TimedCall for AwaitedReply {
    fn end(self: Arc<Self>, reason: ExpiryReason) {
        self.settle(WaitState::Expired(reason));
    }
}

/// As [`ClientConnection::two_way`], but another thread reads the reply.
#[cold]
#[inline(never)]
pub(super) fn two_way(
    orb: &Orb,
    connection: &Arc<ClientConnection>,
    request_id: u32,
    request: &Encoder<'_>,
    deadline: Option<&Deadline>,
    bounds: WriteLimits,
) -> Result<Reply, CallFailure> {
    // Before anything is sent.
    let nested = NestedWait::begin().map_err(|too_deep| {
        orb.statistics().refused_nesting();
        CallFailure::new(too_deep)
    })?;
    let awaited = AwaitedReply::new(nested.as_ref().map(NestedWait::pool));
    let _cancelling = CancellationLink::begin(orb, &awaited).map_err(CallFailure::new)?;
    let client_reactor = orb.client_reactor();
    client_reactor.register_connection(connection).map_err(CallFailure::new)?;
    let limited: Arc<dyn TimedCall> = Arc::clone(&awaited) as _;
    let call_id = client_reactor.register_call(Arc::downgrade(&limited), None).map_err(CallFailure::new)?;
    let sent = connection.send_async(request_id, request, UnsentKind::TwoWay, Arc::clone(&awaited) as _, bounds);
    let outcome = sent.and_then(|()| {
        if let Some(nested) = nested {
            nested.serve_until(deadline.map(Deadline::remaining), || awaited.is_settled());
        }
        // Without `wire`: the caller sends the CancelRequest, if any.
        awaited.outcome(connection, request_id, None, deadline)
    });
    client_reactor.unregister(call_id);
    outcome
}
