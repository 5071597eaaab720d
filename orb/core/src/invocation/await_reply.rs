//! Synchronous calls whose threads do not read their replies themselves: the wait strategies *on reactor* and *on waker*.
//!
//! Their replies are read as those of asynchronous calls are, and their threads wait for that: asleep, or serving others.

#[cfg(feature = "server")]
use std::task::{Wake, Waker};
use std::time::Duration;

use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::{Arc, Condition, Mutex};
use spandrel_transport::Deadline;

use crate::{
    Orb, WaitStrategy,
    client::{
        CallFailure, ClientConnection, ExpiryReason, Reply, ReplyReceiver, TimedCall, UnsentKind, WriteLimits,
        is_client_reactor_thread,
    },
};
#[cfg(feature = "server")]
use crate::{
    cancellation::CancellationSource,
    client::cancelled,
    server::{NestedWait, NestedWork, served_request},
    upcalls::is_in_upcall,
};

/// Whether this thread is not to read the reply to a call of this ORB itself.
#[inline]
pub(crate) fn is_needed(orb: &Orb) -> bool {
    #[cfg(feature = "server")]
    if NestedWait::is_due() {
        return true;
    }
    orb.settings().leaves_reading && leaves_reading(orb)
}

/// Whether it is by its strategy, or because it must be able to give up before its reply comes.
#[cold]
fn leaves_reading(orb: &Orb) -> bool {
    let is_delegated = orb.settings().wait == WaitStrategy::OnWaker;
    #[cfg(feature = "server")]
    let is_delegated = is_delegated || is_in_upcall();
    is_delegated && !is_client_reactor_thread()
}

/// The time in which a call ends if the request is cancelled that it is made for.
#[cfg(feature = "server")]
struct CancellationLink {
    cancellation: Arc<CancellationSource>,
    key: u64,
}

#[cfg(feature = "server")]
impl CancellationLink {
    /// # Errors
    /// TRANSIENT if it is cancelled already; nothing was sent.
    fn begin(orb: &Orb, awaited: &Arc<AwaitedReply>) -> Result<Option<Self>, SystemException> {
        if !orb.settings().serving.cancels_nested {
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

#[cfg(feature = "server")]
impl Drop for CancellationLink {
    fn drop(&mut self) {
        self.cancellation.forget(self.key);
    }
}

/// Nobody waits any more for what the call is made for.
#[cfg(feature = "server")]
impl Wake for AwaitedReply {
    fn wake(self: Arc<Self>) {
        self.settle(WaitState::Expired(ExpiryReason::Cancelled));
    }
}

/// What a thread waits for.
#[derive(Debug)]
pub(crate) struct AwaitedReply {
    state: Mutex<WaitState>,
    changed: Condition,
    /// Who has work for it meanwhile.
    #[cfg(feature = "server")]
    nested_work: Option<Arc<dyn NestedWork>>,
}

#[derive(Debug)]
enum WaitState {
    Pending,
    Completed(Result<Reply, CallFailure>),
    /// It is over, whatever comes.
    Expired(ExpiryReason),
}

impl AwaitedReply {
    /// `nested_work`: whom the thread will serve.
    pub(crate) fn new(#[cfg(feature = "server")] nested_work: Option<Arc<dyn NestedWork>>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(WaitState::Pending),
            changed: Condition::new(),
            #[cfg(feature = "server")]
            nested_work,
        })
    }

    /// Waits for what comes of a request, which was written so if the server is to be told when it is given up; gives it up if the time is up, or all is over.
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

    /// Only what comes first counts.
    fn settle(&self, state: WaitState) {
        let mut now = self.state.lock();
        if !matches!(*now, WaitState::Pending) {
            return;
        }
        *now = state;
        drop(now);
        self.changed.notify_one();
        #[cfg(feature = "server")]
        if let Some(nested_work) = &self.nested_work {
            nested_work.wake();
        }
    }

    #[cfg(feature = "server")]
    fn is_settled(&self) -> bool {
        !matches!(*self.state.lock(), WaitState::Pending)
    }

    /// Waits until something has come or the time is up.
    fn wait(&self, deadline: Option<&Deadline>) -> WaitState {
        let mut state = self.state.lock();
        loop {
            if !matches!(*state, WaitState::Pending) {
                return std::mem::replace(&mut *state, WaitState::Pending);
            }
            match deadline.map(Deadline::remaining) {
                None => self.changed.wait(&mut state),
                Some(Duration::ZERO) => return WaitState::Expired(ExpiryReason::TimeUp),
                Some(remaining) => drop(self.changed.wait_for(&mut state, remaining)),
            }
        }
    }
}

impl ReplyReceiver for AwaitedReply {
    fn done(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        let no_reply = || CallFailure::new(SystemException::internal(0, CompletionStatus::Maybe));
        self.settle(WaitState::Completed(outcome.and_then(|reply| reply.ok_or_else(no_reply))));
    }

    /// It has its connection.
    fn opened(self: Arc<Self>, _outcome: Result<(), CallFailure>) {}
}

impl TimedCall for AwaitedReply {
    fn end(self: Arc<Self>, reason: ExpiryReason) {
        self.settle(WaitState::Expired(reason));
    }
}

/// As [`ClientConnection::two_way`], but the reply is read by others.
#[cold]
#[inline(never)]
pub(crate) fn two_way(
    orb: &Orb,
    connection: &Arc<ClientConnection>,
    request_id: u32,
    request: &Encoder<'_>,
    deadline: Option<&Deadline>,
    bounds: WriteLimits,
) -> Result<Reply, CallFailure> {
    // Before anything is sent.
    #[cfg(feature = "server")]
    let nested = NestedWait::begin().map_err(|too_deep| {
        orb.statistics().refused_nesting();
        CallFailure::new(too_deep)
    })?;
    let awaited = AwaitedReply::new(
        #[cfg(feature = "server")]
        nested.as_ref().map(NestedWait::others),
    );
    #[cfg(feature = "server")]
    let _cancelling = CancellationLink::begin(orb, &awaited).map_err(CallFailure::new)?;
    let client_reactor = orb.client_reactor();
    client_reactor.registration(connection).map_err(CallFailure::new)?;
    let limited: Arc<dyn TimedCall> = Arc::clone(&awaited) as _;
    let call_id = client_reactor.enter(Arc::downgrade(&limited), None).map_err(CallFailure::new)?;
    let sent = connection.send_soon(request_id, request, UnsentKind::TwoWay, Arc::clone(&awaited) as _, bounds);
    let outcome = sent.and_then(|()| {
        #[cfg(feature = "server")]
        if let Some(nested) = nested {
            nested.serve_until(deadline.map(Deadline::remaining), || awaited.is_settled());
        }
        // Whoever has sent it tells the server, if that is to be told.
        awaited.outcome(connection, request_id, None, deadline)
    });
    client_reactor.leave(call_id);
    outcome
}
