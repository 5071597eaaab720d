//! One asynchronous call, and the events that end or advance it.
//!
//! At any time one thread advances the call (`polling`), or the call waits for one event: a connection, or the
//! outcome of its request. The thread that reports the event advances it. It may also be ended at any time:
//! abandoned, timed out, or by the ORB's shutdown.
//!
//! Client interceptors run in the client's thread before control returns to it. After that they run in the ORB's
//! thread for tasks, never in a thread that reads for other calls.

mod polling;

use std::{
    borrow::Cow,
    sync::Weak,
    task::{Poll, Waker},
};

use spandrel_giop::{CompletionStatus, ResponseFlags, SystemException, minor};
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, Mutex, MutexGuard};
use spandrel_transport::Deadline;

use super::arguments::CallArguments;
use crate::call::timer::TimerFuture;
use crate::{
    CallerState, ObjectRef,
    call::invocation::{ClientPoints, Invocation, InvocationState},
    client::{
        CallFailure, ExpiryReason, Lease, Peer, Reply, ReplyReceiver, TimedCall, TimedCallId, urgency::Urgency, wake,
    },
    diagnostics::{CallOutcome, ObservedCall},
    orb::process_is_a_copy,
    reference::object::Forward,
};

/// The outcome of a call; no reply for a one-way.
pub(super) type Outcome = Result<Option<Reply>, SystemException>;

/// A request and its state.
#[derive(Debug)]
pub(super) struct Call {
    object: ObjectRef,
    operation: Cow<'static, str>,
    response: ResponseFlags,
    arguments: CallArguments,
    deadline: Option<Deadline>,
    /// The urgency of its request on connections that it shares.
    urgency: Urgency,
    /// The start time of its reply.
    reply_start: Option<Instant>,
    /// The diagnostics of the call, if it is observed.
    observed: Option<ObservedCall>,
    state: Mutex<CallState>,
}

#[derive(Debug, Default)]
struct CallState {
    progress: AsyncCallProgress,
    awaited_event: AwaitedEvent,
    call_id: Option<TimedCallId>,
    waker: Option<Waker>,
    outcome: Option<Outcome>,
    /// Whether the call has ended; later events are ignored.
    is_over: bool,
}

/// The progress of a call, which belongs to the thread that advances it.
#[derive(Debug, Default)]
struct AsyncCallProgress {
    invocation: InvocationState,
    /// The client interceptors, if there are any.
    points: Option<Box<ClientPoints>>,
    /// The forwarding that the destinations of the current round belong to.
    forward: Option<Arc<Forward>>,
    /// The index of the destination of the current attempt, whose starting points were called.
    selected: Option<usize>,
    /// Whether it has waited for a connection, which therefore is new.
    has_waited: bool,
}

/// The event that the call waits for.
#[derive(Debug, Default)]
enum AwaitedEvent {
    #[default]
    Idle,
    /// A connection to this peer.
    Connection(Arc<Peer>),
    /// The reply to this request.
    Reply(SentRequest),
}

/// A request on a connection.
#[derive(Debug)]
struct SentRequest {
    lease: Lease<Arc<Peer>>,
    request_id: u32,
    /// The failure of the request in whose place a LocateRequest was sent: the reference names no code sets.
    located_for: Option<Box<CallFailure>>,
}

impl Call {
    /// Sends the request, and returns the call that awaits its reply; fails if it could not be sent.
    pub(super) fn start(
        object: &ObjectRef,
        operation: Cow<'static, str>,
        response: ResponseFlags,
        arguments: CallArguments,
        bound: Option<(CallerState, Urgency)>,
    ) -> Result<Arc<Self>, SystemException> {
        let call_policies = object.call_policies();
        let (held_until, reply_start) = match &call_policies.start_times {
            Some(start_times) => (start_times.request(call_policies.deadline.as_ref())?, start_times.reply()),
            None => (None, None),
        };
        let observed = {
            let diagnostics = object.orb().diagnostics();
            diagnostics.is_observed().then(|| ObservedCall::begin(diagnostics, object.interface_label(), &operation))
        };
        let response_request = (response, response != ResponseFlags::TWO_WAY);
        let urgency = bound.as_ref().map_or(0, |(_, urgency)| *urgency);
        let points = object.orb().has_client_interceptors();
        let points = points.then(|| {
            let points = ClientPoints::new(object, response_request, true);
            Box::new(if let Some((caller, _)) = bound { points.bound(caller) } else { points })
        });
        let (object, deadline, state) = (object.clone(), call_policies.deadline, Mutex::default());
        let call =
            Arc::new(Self { object, operation, response, arguments, deadline, urgency, reply_start, observed, state });
        let weak = Arc::downgrade(&call) as Weak<dyn TimedCall>;
        let call_id = call.object.orb().client_reactor().register_call(weak, call.deadline.as_ref())?;
        let mut state = call.state.lock();
        // The deadline may have passed already.
        let unused_id = if state.is_over { Some(call_id) } else { state.call_id.replace(call_id) };
        let is_over = state.is_over;
        drop(state);
        if let Some(unused_id) = unused_id {
            call.object.orb().client_reactor().unregister(unused_id);
        }
        let invocation = InvocationState::new(call_policies.rebind);
        let progress = AsyncCallProgress { invocation, points, ..AsyncCallProgress::default() };
        if let Some(start) = held_until {
            call.hold(start, move |call, has_elapsed| {
                if !call.state.lock().is_over {
                    match has_elapsed {
                        true => call.advance(progress),
                        false => call.end(ExpiryReason::Shutdown),
                    }
                }
            })?;
            return Ok(call);
        }
        if !is_over {
            call.advance(progress);
        }
        Ok(call)
    }

    /// Resumes the call at this time, or when the ORB ends.
    #[cold]
    fn hold(
        self: &Arc<Self>,
        until: Instant,
        resume: impl FnOnce(Arc<Self>, bool) + Send + 'static,
    ) -> Result<(), SystemException> {
        let (call, orb) = (Arc::clone(self), self.object.orb());
        let delay = TimerFuture::until(orb, until);
        orb.client_reactor().run(Box::pin(async move {
            let has_elapsed = delay.await;
            resume(call, has_elapsed);
        }))
    }

    pub(super) fn object(&self) -> &ObjectRef {
        &self.object
    }

    pub(super) fn operation(&self) -> &str {
        &self.operation
    }

    /// Takes the outcome, once; if there is none, `waker` will be woken when there is.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<Outcome> {
        if self.object.orb().is_copied() {
            return Poll::Ready(Err(process_is_a_copy().with_completed(CompletionStatus::Maybe)));
        }
        self.poll_outcome(waker, Option::take).map_or(Poll::Pending, Poll::Ready)
    }

    /// Whether there is an outcome; if not, `waker` will be woken when there is.
    pub(super) fn has_ended(&self, waker: &Waker) -> bool {
        if self.object.orb().is_copied() {
            return true;
        }
        self.poll_outcome(waker, |outcome| outcome.is_some().then_some(())).is_some()
    }

    /// Reads the outcome by `read`, under the lock. If there is none, `waker` will be woken when there is.
    fn poll_outcome<T>(&self, waker: &Waker, read: impl Fn(&mut Option<Outcome>) -> Option<T>) -> Option<T> {
        let mut state = self.state.lock();
        let outcome = read(&mut state.outcome);
        if outcome.is_some() || state.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
            return outcome;
        }
        drop(state);
        // Cloned, and the old one dropped, outside of the lock: both run code of the program.
        let waker = waker.clone();
        let mut state = self.state.lock();
        let outcome = read(&mut state.outcome);
        let unused = if outcome.is_some() { Some(waker) } else { state.waker.replace(waker) };
        drop(state);
        drop(unused);
        outcome
    }

    /// Abandons the call: its future was dropped.
    pub(super) fn abandon(self: &Arc<Self>) {
        if self.object.orb().is_copied() {
            // The call belongs to the original process.
            return std::mem::forget(Arc::clone(self));
        }
        let Some((_, mut progress)) = self.detach(false) else { return };
        if let Some(observed) = &self.observed {
            observed.end_in(self.object.interface_label(), &self.operation, CallOutcome::Abandoned);
        }
        let cancelled = SystemException::transient(minor::REQUEST_CANCELLED, CompletionStatus::Maybe);
        self.end_points(&mut progress, cancelled);
    }

    /// Calls the ending points for a call that has ended. Returns its exception, which they may change. A
    /// forwarding by an interceptor has no effect any more.
    fn end_points(&self, progress: &mut AsyncCallProgress, exception: SystemException) -> SystemException {
        let Some(points) = &mut progress.points else { return exception };
        let mut invocation = self.invocation(&mut progress.invocation);
        points.end_request(&mut invocation, Err(exception.clone()), None).err().unwrap_or(exception)
    }

    /// The call's decisions, in this state.
    fn invocation<'c>(&'c self, state: &'c mut InvocationState) -> Invocation<'c> {
        Invocation::new(&self.object, &self.operation, self.deadline.as_ref(), state)
    }

    /// Sets the event that the call waits for; false if the call has ended.
    fn set_awaited_event(&self, awaited_event: AwaitedEvent, progress: AsyncCallProgress) -> bool {
        let mut state = self.state.lock();
        if state.is_over {
            return false;
        }
        state.progress = progress;
        let before = std::mem::replace(&mut state.awaited_event, awaited_event);
        drop(state);
        debug_assert!(!matches!(before, AwaitedEvent::Reply(_)), "a call waits for one event");
        true
    }

    /// Takes the awaited_event and the progress to advance the call; `None` if it has ended.
    fn take(&self) -> Option<(AwaitedEvent, AsyncCallProgress)> {
        let mut state = self.state.lock();
        (!state.is_over).then(|| (std::mem::take(&mut state.awaited_event), std::mem::take(&mut state.progress)))
    }

    fn take_progress(&self) -> Option<AsyncCallProgress> {
        self.take().map(|(_, progress)| progress)
    }

    fn take_sent_request(&self) -> Option<(SentRequest, AsyncCallProgress)> {
        match self.take()? {
            (AwaitedEvent::Reply(sent), progress) => Some((sent, progress)),
            _ => None,
        }
    }

    fn finish(self: &Arc<Self>, outcome: Outcome) {
        let mut state = self.state.lock();
        if state.is_over {
            return;
        }
        state.is_over = true;
        if self.reply_start.is_none() && self.observed.is_none() && outcome.is_ok() {
            // The usual end, under the same lock.
            return self.publish_in(state, outcome);
        }
        drop(state);
        if let (Some(start), Ok(Some(_))) = (self.reply_start, &outcome) {
            return self.finish_at(start, outcome);
        }
        self.publish_outcome(outcome);
    }

    /// Publishes the outcome at the start time of the reply.
    #[cold]
    fn finish_at(self: &Arc<Self>, start: Instant, outcome: Outcome) {
        let pending = Arc::new(Mutex::new(Some(outcome)));
        let receiver = Arc::clone(&pending);
        let publish = move |call: Arc<Self>, _has_elapsed| {
            let outcome = receiver.lock().take();
            if let Some(outcome) = outcome {
                call.publish_outcome(outcome);
            }
        };
        if let Err(exception) = self.hold(start, publish) {
            drop(pending.lock().take());
            self.publish_outcome(Err(exception.with_completed(CompletionStatus::Yes)));
        }
    }

    /// Publishes the outcome, and wakes the waiting task.
    fn publish_outcome(&self, outcome: Outcome) {
        let outcome = outcome.map_err(SystemException::of_call);
        if let Some(observed) = &self.observed {
            let status = outcome.as_ref().map(|reply| reply.as_ref().and_then(Reply::status));
            observed.end(self.object.interface_label(), &self.operation, status);
        }
        self.publish_in(self.state.lock(), outcome);
    }

    fn publish_in(&self, mut state: MutexGuard<'_, CallState>, outcome: Outcome) {
        state.outcome = Some(outcome);
        let (waker, call_id) = (state.waker.take(), state.call_id.take());
        drop(state);
        if let Some(call_id) = call_id {
            self.object.orb().client_reactor().unregister(call_id);
        }
        if let Some(waker) = waker {
            wake(waker);
        }
    }

    /// Ends the call; returns whether the server may have received the request. `None` if it had ended.
    fn detach(self: &Arc<Self>, retires: bool) -> Option<(bool, AsyncCallProgress)> {
        let mut state = self.state.lock();
        if state.is_over {
            return None;
        }
        state.is_over = true;
        let (awaited_event, call_id) = (std::mem::take(&mut state.awaited_event), state.call_id.take());
        let progress = std::mem::take(&mut state.progress);
        drop(state);
        if let Some(call_id) = call_id {
            self.object.orb().client_reactor().unregister(call_id);
        }
        let may_have_arrived = match awaited_event {
            AwaitedEvent::Idle => false,
            AwaitedEvent::Connection(peer) => {
                peer.unpark(&(Arc::clone(self) as Arc<dyn ReplyReceiver>));
                false
            }
            AwaitedEvent::Reply(SentRequest { lease, request_id, .. }) => {
                // As for synchronous calls: only servers that are known to handle a CancelRequest get one.
                let destination = self.destination(progress.forward.as_deref(), progress.selected);
                lease.abandon(request_id, destination.is_ours.then(|| destination.template.wire()), retires)
            }
        };
        Some((may_have_arrived, progress))
    }
}

impl Call {
    /// Continues the call in the ORB's thread for tasks if there are client interceptors: this thread may be
    /// reading for other calls.
    fn run_on_client_reactor(self: Arc<Self>, resume: impl FnOnce(Arc<Self>) + Send + 'static) {
        if !self.object.orb().has_client_interceptors() {
            return resume(self);
        }
        let job = Arc::new(Mutex::new(Some(resume)));
        let (call, task) = (Arc::clone(&self), Arc::clone(&job));
        let run = move || {
            let resume = task.lock().take();
            if let Some(resume) = resume {
                resume(Arc::clone(&call));
            }
        };
        let here = run.clone();
        if self.object.orb().client_reactor().run(Box::pin(async move { run() })).is_err() {
            // The ORB is shutting down, and reads no more.
            here();
        }
    }
}

impl ReplyReceiver for Call {
    fn complete(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        self.run_on_client_reactor(|call| call.handle_outcome(outcome));
    }

    fn connection_opened(self: Arc<Self>, outcome: Result<(), CallFailure>) {
        self.run_on_client_reactor(|call| call.handle_connection(outcome, true));
    }

    fn connection_freed(self: Arc<Self>) {
        self.run_on_client_reactor(|call| call.handle_connection(Ok(()), false));
    }
}

impl TimedCall for Call {
    fn end(self: Arc<Self>, reason: ExpiryReason) {
        let Some((may_have_arrived, mut progress)) = self.detach(reason == ExpiryReason::DeadlinePassed) else {
            return;
        };
        let exception = reason.exception(may_have_arrived);
        self.run_on_client_reactor(move |call| {
            let exception = call.end_points(&mut progress, exception);
            call.publish_outcome(Err(exception));
        });
    }
}
