//! Calls with client interceptors. To interceptors, each attempt is a request of its own (CORBA 3.3 Part 1,
//! 16.3.7).
//!
//! Retries and destinations are decided as for other calls; this module only runs the interception points
//! around them.

use spandrel_giop::{CompletionStatus, ReplyStatus, SystemException};

use super::{Deadline, ProfileSelector, ReplyAction, RetryState, exchange};
use crate::{
    ObjectRef,
    client::{CallFailure, Reply, ReplyKind, not_sent_in_time},
    destination::Destination,
    interception::{self, ClientFlow, OutgoingContexts, RequestOutcome, ResponseRequest},
    object::{CallKind, ForwardKind},
    policies::CallPolicies,
};

/// The state of one attempt.
struct InterceptedAttempt<'t> {
    retry_state: &'t mut RetryState,
    selector: ProfileSelector,
    deadline: Option<&'t Deadline>,
}

/// The step that follows an exchange with one destination.
enum AttemptResult {
    /// The call has ended with this outcome.
    End(Option<Reply>),
    /// The next destination of the attempt is tried.
    NextDestination,
    /// Another attempt is made.
    Resend,
}

impl ObjectRef {
    /// As `invoke_with_retries`, with client interceptors.
    #[cold]
    pub(crate) fn invoke_intercepted(&self, call_kind: &CallKind<'_, '_>) -> Result<Option<Reply>, SystemException> {
        let CallKind::Request { operation, response, is_one_way, .. } = *call_kind else {
            return Err(SystemException::internal(0, CompletionStatus::No));
        };
        let call_policies = self.call_policies();
        if let Some(start_times) = &call_policies.start_times {
            start_times.hold_request(self.orb(), call_policies.deadline.as_ref())?;
        }
        let answer = self.invoke_intercepted_with(call_kind, operation, (response, is_one_way), &call_policies)?;
        if let Some(start_times) = &call_policies.start_times {
            start_times.hold_reply(self.orb())?;
        }
        Ok(answer)
    }

    fn invoke_intercepted_with(
        &self,
        call_kind: &CallKind<'_, '_>,
        operation: &str,
        response_request: ResponseRequest,
        CallPolicies { deadline, rebind, .. }: &CallPolicies,
    ) -> Result<Option<Reply>, SystemException> {
        let mut outgoing = OutgoingContexts::of_thread(self);
        let mut retry_state = RetryState::new(*rebind);
        loop {
            let (destinations, effective) = self.effective()?;
            let selector = ProfileSelector::new(self, destinations.len());
            let mut attempt =
                InterceptedAttempt { retry_state: &mut retry_state, selector, deadline: deadline.as_ref() };
            while let Some(index) = attempt.selector.next(&destinations) {
                let flow =
                    ClientFlow::new(self, operation, response_request, outgoing.clone(), (effective.clone(), index));
                match self.attempt_intercepted(flow, &destinations[index], call_kind, &mut attempt)? {
                    AttemptResult::End(reply) => return Ok(reply),
                    AttemptResult::NextDestination => outgoing = outgoing.for_retry(self),
                    AttemptResult::Resend => {
                        outgoing = outgoing.for_retry(self);
                        break;
                    }
                }
            }
        }
    }

    /// An exchange with one destination, from the starting points to the ending points.
    fn attempt_intercepted(
        &self,
        mut flow: ClientFlow<'_>,
        destination: &Destination,
        call_kind: &CallKind<'_, '_>,
        attempt: &mut InterceptedAttempt<'_>,
    ) -> Result<AttemptResult, SystemException> {
        if let Err(request_outcome) = flow.send_request() {
            return self
                .apply_interceptor_outcome(request_outcome, attempt.retry_state)
                .map(|()| AttemptResult::Resend);
        }
        let mut call_kind = *call_kind;
        let (mut is_one_way, joined) = (false, flow.outgoing().contexts().to_vec());
        let joined = match &mut call_kind {
            CallKind::Request { contexts, is_one_way: request_is_one_way, .. } => {
                is_one_way = *request_is_one_way;
                [&joined, *contexts].concat()
            }
            CallKind::Locate => joined,
        };
        if let CallKind::Request { contexts, .. } = &mut call_kind {
            *contexts = &joined;
        }
        let outcome = self.exchange_with_destination(destination, &call_kind, attempt);
        let (next, request_outcome) = match &outcome {
            Ok(Some(reply)) => self.after_reply(reply, is_one_way, attempt.retry_state),
            Ok(None) => (AttemptResult::End(None), sent()),
            Err(None) => (AttemptResult::NextDestination, retry()),
            Err(Some(failure)) => match self.may_retry(failure.clone(), attempt.retry_state, attempt.deadline) {
                Ok(()) => (AttemptResult::Resend, retry()),
                Err(exception) => (AttemptResult::End(None), RequestOutcome::system(exception)),
            },
        };
        let exception = request_outcome.system_exception();
        if let Err(changed) = flow.end(request_outcome, outcome.as_ref().ok().and_then(Option::as_ref)) {
            return self.apply_interceptor_outcome(changed, attempt.retry_state).map(|()| AttemptResult::Resend);
        }
        match (next, exception) {
            (_, Some(exception)) => Err(exception),
            (AttemptResult::End(_), None) => {
                let reply = outcome.ok().flatten();
                reply.iter().for_each(|reply| self.mark_answered(reply));
                Ok(AttemptResult::End(reply))
            }
            (next, None) => Ok(next),
        }
    }

    /// The exchange on a connection, or within the ORB. An error without a failure means that the next
    /// destination is tried.
    fn exchange_with_destination(
        &self,
        destination: &Destination,
        call_kind: &CallKind<'_, '_>,
        attempt: &mut InterceptedAttempt<'_>,
    ) -> Result<Option<Reply>, Option<CallFailure>> {
        if attempt.deadline.is_some_and(|deadline| deadline.left_to_send().is_zero()) {
            return Err(Some(CallFailure::new(not_sent_in_time(attempt.deadline))));
        }
        if destination.is_collocated && call_kind.waits() {
            return super::exchange_here(self.orb(), destination, call_kind, attempt.deadline).map(Some).map_err(Some);
        }
        let selector = &mut attempt.selector;
        let lease =
            match self.lease(destination, call_kind, attempt.retry_state, selector.connect_time(attempt.deadline)) {
                Ok(lease) => lease,
                Err(failure) => {
                    selector.connect_failed(failure);
                    return Err(selector.take_failure());
                }
            };
        let fresh = lease.fresh;
        match exchange(self.orb(), &lease, destination, call_kind, attempt.deadline) {
            Err(failure) => match selector.request_failed(failure, fresh, destination) {
                Ok(()) => Err(selector.take_failure()),
                Err(failure) => Err(Some(failure)),
            },
            Ok(Some(reply)) if selector.continues_after(&reply, self) => Err(None),
            Ok(answered) => {
                selector.mark_preferred(self);
                Ok(answered)
            }
        }
    }

    /// The next step after a reply, and the outcome for the ending points.
    fn after_reply(
        &self,
        reply: &Reply,
        is_one_way: bool,
        retry_state: &mut RetryState,
    ) -> (AttemptResult, RequestOutcome) {
        match self.evaluate_reply(reply, retry_state) {
            Ok(ReplyAction::Resend) => (AttemptResult::Resend, self.resend_outcome(reply)),
            Err(exception) => (AttemptResult::End(None), RequestOutcome::system(exception)),
            Ok(ReplyAction::Answer) if reply.kind == ReplyKind::Reply(ReplyStatus::UserException) => {
                (AttemptResult::End(None), RequestOutcome::user(reply, self))
            }
            // The server's reply to a one-way is not passed to the client.
            Ok(ReplyAction::Answer) if is_one_way => (AttemptResult::End(None), sent()),
            Ok(ReplyAction::Answer) => (AttemptResult::End(None), RequestOutcome::Reply),
        }
    }

    /// The outcome of a request that is sent again: a forwarding, or a retry.
    pub(crate) fn resend_outcome(&self, reply: &Reply) -> RequestOutcome {
        let is_forward =
            matches!(reply.kind, ReplyKind::Reply(ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm));
        match self.effective() {
            Ok((_, Some(ior))) if is_forward => RequestOutcome::forward(self.orb().reference((*ior).clone())),
            _ => retry(),
        }
    }

    /// Applies the exception or the forwarding that an interceptor raised.
    ///
    /// # Errors
    /// The exception that ends the call; otherwise the request is sent again.
    pub(crate) fn apply_interceptor_outcome(
        &self,
        request_outcome: RequestOutcome,
        retry_state: &mut RetryState,
    ) -> Result<(), SystemException> {
        match request_outcome {
            // As for a LOCATION_FORWARD.
            RequestOutcome::Other(_, Some(target)) => {
                self.forward_along(target.ior(), ForwardKind::Temporary, &mut retry_state.history)
            }
            RequestOutcome::Exception(exception) => Err(exception.into_system()),
            // Interceptors cannot create these outcomes.
            RequestOutcome::Reply | RequestOutcome::Other(_, None) => {
                Err(SystemException::internal(0, CompletionStatus::Maybe))
            }
        }
    }
}

/// The outcome of a one-way that was sent.
fn sent() -> RequestOutcome {
    RequestOutcome::Other(interception::ReplyStatus::Successful, None)
}

fn retry() -> RequestOutcome {
    RequestOutcome::Other(interception::ReplyStatus::TransportRetry, None)
}
