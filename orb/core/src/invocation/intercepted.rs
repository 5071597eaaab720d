//! Calls among client interceptors: each try is a request of its own to them (CORBA 3.3 Part 1, 16.3.7).
//!
//! What may be tried again, and where, is decided as for other calls; here it is only said before it happens.

use spandrel_giop::{CompletionStatus, ReplyStatus, SystemException};

use super::{Deadline, ProfileSelector, ReplyAction, RetryState, exchange};
use crate::{
    ObjectRef,
    client::{CallFailure, Reply, ReplyKind, not_sent_in_time},
    destination::Destination,
    interception::{self, ClientFlow, OutgoingContexts, RequestOutcome, ResponseRequest},
    object::{CallKind, Permanence},
    policies::CallPolicies,
};

/// One attempt, as far as it has come.
struct InterceptedAttempt<'t> {
    attempts: &'t mut RetryState,
    selector: ProfileSelector,
    deadline: Option<&'t Deadline>,
}

/// What comes after a try.
enum AttemptResult {
    /// Nothing: that was the outcome.
    End(Option<Reply>),
    /// The next destination of the attempt.
    Onwards,
    /// Another attempt.
    AskAgain,
}

impl ObjectRef {
    /// As `ask`, past the interceptors.
    #[cold]
    pub(crate) fn ask_intercepted(&self, question: &CallKind<'_, '_>) -> Result<Option<Reply>, SystemException> {
        let CallKind::Request { operation, response, is_one_way, .. } = *question else {
            return Err(SystemException::internal(0, CompletionStatus::No));
        };
        let call_policies = self.call_policies();
        if let Some(starts) = &call_policies.starts {
            starts.hold_request(self.orb(), call_policies.deadline.as_ref())?;
        }
        let answer = self.ask_intercepted_on(question, operation, (response, is_one_way), &call_policies)?;
        if let Some(starts) = &call_policies.starts {
            starts.hold_reply(self.orb())?;
        }
        Ok(answer)
    }

    fn ask_intercepted_on(
        &self,
        question: &CallKind<'_, '_>,
        operation: &str,
        wanted: ResponseRequest,
        CallPolicies { deadline, rebind, .. }: &CallPolicies,
    ) -> Result<Option<Reply>, SystemException> {
        let mut outgoing = OutgoingContexts::of_thread(self);
        let mut attempts = RetryState::new(*rebind);
        loop {
            let (destinations, effective) = self.effective()?;
            let selector = ProfileSelector::new(self, destinations.len());
            let mut attempt = InterceptedAttempt { attempts: &mut attempts, selector, deadline: deadline.as_ref() };
            while let Some(index) = attempt.selector.next(&destinations) {
                let flow = ClientFlow::new(self, operation, wanted, outgoing.clone(), (effective.clone(), index));
                match self.try_one(flow, &destinations[index], question, &mut attempt)? {
                    AttemptResult::End(reply) => return Ok(reply),
                    AttemptResult::Onwards => outgoing = outgoing.for_retry(self),
                    AttemptResult::AskAgain => {
                        outgoing = outgoing.for_retry(self);
                        break;
                    }
                }
            }
        }
    }

    /// One try at one destination, from the starting points to the ending points.
    fn try_one(
        &self,
        mut flow: ClientFlow<'_>,
        destination: &Destination,
        question: &CallKind<'_, '_>,
        attempt: &mut InterceptedAttempt<'_>,
    ) -> Result<AttemptResult, SystemException> {
        if let Err(ending) = flow.send_request() {
            return self.obey(ending, attempt.attempts).map(|()| AttemptResult::AskAgain);
        }
        let mut question = *question;
        let (mut is_one_way, joined) = (false, flow.outgoing().contexts().to_vec());
        let joined = match &mut question {
            CallKind::Request { contexts, is_one_way: wants_no_answer, .. } => {
                is_one_way = *wants_no_answer;
                [&joined, *contexts].concat()
            }
            CallKind::Locate => joined,
        };
        if let CallKind::Request { contexts, .. } = &mut question {
            *contexts = &joined;
        }
        let outcome = self.exchange_leased(destination, &question, attempt);
        let (next, ending) = match &outcome {
            Ok(Some(reply)) => self.after_reply(reply, is_one_way, attempt.attempts),
            Ok(None) => (AttemptResult::End(None), sent()),
            Err(None) => (AttemptResult::Onwards, retry()),
            Err(Some(failure)) => match self.may_repeat(failure.clone(), attempt.attempts, attempt.deadline) {
                Ok(()) => (AttemptResult::AskAgain, retry()),
                Err(exception) => (AttemptResult::End(None), RequestOutcome::system(exception)),
            },
        };
        let exception = ending.system_exception();
        if let Err(changed) = flow.end(ending, outcome.as_ref().ok().and_then(Option::as_ref)) {
            return self.obey(changed, attempt.attempts).map(|()| AttemptResult::AskAgain);
        }
        match (next, exception) {
            (_, Some(exception)) => Err(exception),
            (AttemptResult::End(_), None) => {
                let reply = outcome.ok().flatten();
                reply.iter().for_each(|reply| self.note_answer(reply));
                Ok(AttemptResult::End(reply))
            }
            (next, None) => Ok(next),
        }
    }

    /// The exchange on a connection, or in place. No failure: the next destination is to be tried.
    fn exchange_leased(
        &self,
        destination: &Destination,
        question: &CallKind<'_, '_>,
        attempt: &mut InterceptedAttempt<'_>,
    ) -> Result<Option<Reply>, Option<CallFailure>> {
        if attempt.deadline.is_some_and(|deadline| deadline.left_to_send().is_zero()) {
            return Err(Some(CallFailure::new(not_sent_in_time(attempt.deadline))));
        }
        #[cfg(feature = "server")]
        if destination.is_collocated && question.waits() {
            return super::exchange_here(self.orb(), destination, question, attempt.deadline).map(Some).map_err(Some);
        }
        let selector = &mut attempt.selector;
        let lease = match self.lease(destination, question, attempt.attempts, selector.share_of(attempt.deadline)) {
            Ok(lease) => lease,
            Err(refused) => {
                selector.refused(refused);
                return Err(selector.take_failure());
            }
        };
        let fresh = lease.fresh;
        match exchange(self.orb(), &lease, destination, question, attempt.deadline) {
            Err(failure) => match selector.failed(failure, fresh, destination) {
                Ok(()) => Err(selector.take_failure()),
                Err(failure) => Err(Some(failure)),
            },
            Ok(Some(reply)) if selector.goes_on_after(&reply, self) => Err(None),
            Ok(answered) => {
                selector.arrived(self);
                Ok(answered)
            }
        }
    }

    /// What a reply has come to, and what comes after it.
    fn after_reply(
        &self,
        reply: &Reply,
        is_one_way: bool,
        attempts: &mut RetryState,
    ) -> (AttemptResult, RequestOutcome) {
        match self.judge(reply, attempts) {
            Ok(ReplyAction::AskAgain) => (AttemptResult::AskAgain, self.forwarded_by(reply)),
            Err(exception) => (AttemptResult::End(None), RequestOutcome::system(exception)),
            Ok(ReplyAction::Answer) if reply.kind == ReplyKind::Reply(ReplyStatus::UserException) => {
                (AttemptResult::End(None), RequestOutcome::user(reply, self))
            }
            // That the server answered it is no reply to its client.
            Ok(ReplyAction::Answer) if is_one_way => (AttemptResult::End(None), sent()),
            Ok(ReplyAction::Answer) => (AttemptResult::End(None), RequestOutcome::Reply),
        }
    }

    /// Why a request is sent again: the reply said where to, or that the object is no longer where it was.
    pub(crate) fn forwarded_by(&self, reply: &Reply) -> RequestOutcome {
        let is_forward =
            matches!(reply.kind, ReplyKind::Reply(ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm));
        match self.effective() {
            Ok((_, Some(ior))) if is_forward => RequestOutcome::forward(self.orb().reference((*ior).clone())),
            _ => retry(),
        }
    }

    /// What an interceptor has made of a request.
    ///
    /// # Errors
    /// The exception that it ends with; otherwise it is to be asked again.
    pub(crate) fn obey(&self, ending: RequestOutcome, attempts: &mut RetryState) -> Result<(), SystemException> {
        match ending {
            // As if a reply had said it.
            RequestOutcome::Other(_, Some(target)) => {
                self.forward_along(target.ior(), Permanence::Temporary, &mut attempts.history)
            }
            RequestOutcome::Exception(exception) => Err(exception.into_system()),
            // No interceptor makes a reply, or a retry.
            RequestOutcome::Reply | RequestOutcome::Other(_, None) => {
                Err(SystemException::internal(0, CompletionStatus::Maybe))
            }
        }
    }
}

/// A one-way is on its way.
fn sent() -> RequestOutcome {
    RequestOutcome::Other(interception::ReplyStatus::Successful, None)
}

fn retry() -> RequestOutcome {
    RequestOutcome::Other(interception::ReplyStatus::TransportRetry, None)
}
