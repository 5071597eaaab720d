//! Calls among client interceptors: each try is a request of its own to them (CORBA 3.3 Part 1, 16.3.7).
//!
//! What may be tried again, and where, is decided as for other calls; here it is only said before it happens.

use spandrel_giop::{CompletionStatus, ReplyStatus, SystemException};

use super::{Attempts, Deadline, Question, Tour, Verdict, exchange};
use crate::{
    ObjectRef,
    client::{CallFailure, Reply, ReplyKind, not_sent_in_time},
    destination::Destination,
    interception::{self, ClientFlow, Departure, Ending, Wanted},
    object::Permanence,
    policies::Terms,
};

/// One attempt, as far as it has come.
struct Attempt<'t> {
    attempts: &'t mut Attempts,
    tour: Tour,
    deadline: Option<&'t Deadline>,
}

/// What comes after a try.
enum Next {
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
    pub(super) fn ask_intercepted(&self, question: &Question<'_, '_>) -> Result<Option<Reply>, SystemException> {
        let Question::Request { operation, response, is_one_way, .. } = *question else {
            return Err(SystemException::internal(0, CompletionStatus::No));
        };
        let terms = self.terms();
        #[cfg(feature = "policies")]
        if let Some(starts) = &terms.starts {
            starts.hold_request(self.orb(), terms.deadline.as_ref())?;
        }
        let answer = self.ask_intercepted_on(question, operation, (response, is_one_way), &terms)?;
        #[cfg(feature = "policies")]
        if let Some(starts) = &terms.starts {
            starts.hold_reply(self.orb())?;
        }
        Ok(answer)
    }

    fn ask_intercepted_on(
        &self,
        question: &Question<'_, '_>,
        operation: &str,
        wanted: Wanted,
        Terms { deadline, rebind, .. }: &Terms,
    ) -> Result<Option<Reply>, SystemException> {
        let mut departure = Departure::of_thread(self);
        let mut attempts = Attempts::new(*rebind);
        loop {
            let (destinations, effective) = self.effective()?;
            let tour = Tour::new(self, destinations.len());
            let mut attempt = Attempt { attempts: &mut attempts, tour, deadline: deadline.as_ref() };
            while let Some(index) = attempt.tour.next(&destinations) {
                let flow = ClientFlow::new(self, operation, wanted, departure.clone(), (effective.clone(), index));
                match self.try_one(flow, &destinations[index], question, &mut attempt)? {
                    Next::End(reply) => return Ok(reply),
                    Next::Onwards => departure = departure.again(self),
                    Next::AskAgain => {
                        departure = departure.again(self);
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
        question: &Question<'_, '_>,
        attempt: &mut Attempt<'_>,
    ) -> Result<Next, SystemException> {
        if let Err(ending) = flow.send_request() {
            return self.obey(ending, attempt.attempts).map(|()| Next::AskAgain);
        }
        let mut question = *question;
        let (mut is_one_way, joined) = (false, flow.departure().contexts().to_vec());
        let joined = match &mut question {
            Question::Request { contexts, is_one_way: wants_no_answer, .. } => {
                is_one_way = *wants_no_answer;
                [&joined, *contexts].concat()
            }
            Question::Locate => joined,
        };
        if let Question::Request { contexts, .. } = &mut question {
            *contexts = &joined;
        }
        let outcome = self.exchange_leased(destination, &question, attempt);
        let (next, ending) = match &outcome {
            Ok(Some(reply)) => self.after_reply(reply, is_one_way, attempt.attempts),
            Ok(None) => (Next::End(None), sent()),
            Err(None) => (Next::Onwards, retry()),
            Err(Some(failure)) => match self.may_repeat(failure.clone(), attempt.attempts, attempt.deadline) {
                Ok(()) => (Next::AskAgain, retry()),
                Err(exception) => (Next::End(None), Ending::system(exception)),
            },
        };
        let exception = ending.system_exception();
        if let Err(changed) = flow.end(ending, outcome.as_ref().ok().and_then(Option::as_ref)) {
            return self.obey(changed, attempt.attempts).map(|()| Next::AskAgain);
        }
        match (next, exception) {
            (_, Some(exception)) => Err(exception),
            (Next::End(_), None) => {
                let reply = outcome.ok().flatten();
                reply.iter().for_each(|reply| self.note_answer(reply));
                Ok(Next::End(reply))
            }
            (next, None) => Ok(next),
        }
    }

    /// The exchange on a connection, or in place. No failure: the next destination is to be tried.
    fn exchange_leased(
        &self,
        destination: &Destination,
        question: &Question<'_, '_>,
        attempt: &mut Attempt<'_>,
    ) -> Result<Option<Reply>, Option<CallFailure>> {
        if attempt.deadline.is_some_and(|deadline| deadline.left_to_send().is_zero()) {
            return Err(Some(CallFailure::new(not_sent_in_time(attempt.deadline))));
        }
        #[cfg(feature = "server")]
        if destination.is_here && question.waits() {
            return super::exchange_here(self.orb(), destination, question, attempt.deadline).map(Some).map_err(Some);
        }
        let tour = &mut attempt.tour;
        let lease = match self.lease(destination, question, attempt.attempts, tour.share_of(attempt.deadline)) {
            Ok(lease) => lease,
            Err(refused) => {
                tour.refused(refused);
                return Err(tour.take_failure());
            }
        };
        let fresh = lease.fresh;
        match exchange(self.orb(), &lease, destination, question, attempt.deadline) {
            Err(failure) => match tour.failed(failure, fresh, destination) {
                Ok(()) => Err(tour.take_failure()),
                Err(failure) => Err(Some(failure)),
            },
            Ok(Some(reply)) if tour.goes_on_after(&reply, self) => Err(None),
            Ok(answered) => {
                tour.arrived(self);
                Ok(answered)
            }
        }
    }

    /// What a reply has come to, and what comes after it.
    fn after_reply(&self, reply: &Reply, is_one_way: bool, attempts: &mut Attempts) -> (Next, Ending) {
        match self.judge(reply, attempts) {
            Ok(Verdict::AskAgain) => (Next::AskAgain, self.forwarded_by(reply)),
            Err(exception) => (Next::End(None), Ending::system(exception)),
            Ok(Verdict::Answer) if reply.kind == ReplyKind::Reply(ReplyStatus::UserException) => {
                (Next::End(None), Ending::user(reply, self))
            }
            // That the server answered it is no reply to its client.
            Ok(Verdict::Answer) if is_one_way => (Next::End(None), sent()),
            Ok(Verdict::Answer) => (Next::End(None), Ending::Reply),
        }
    }

    /// Why a request is sent again: the reply said where to, or that the object is no longer where it was.
    pub(crate) fn forwarded_by(&self, reply: &Reply) -> Ending {
        let is_forward =
            matches!(reply.kind, ReplyKind::Reply(ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm));
        match self.effective() {
            Ok((_, Some(ior))) if is_forward => Ending::forward(self.orb().reference((*ior).clone())),
            _ => retry(),
        }
    }

    /// What an interceptor has made of a request.
    ///
    /// # Errors
    /// The exception that it ends with; otherwise it is to be asked again.
    pub(crate) fn obey(&self, ending: Ending, attempts: &mut Attempts) -> Result<(), SystemException> {
        match ending {
            // As if a reply had said it.
            Ending::Other(_, Some(target)) => {
                self.forward_along(target.ior(), Permanence::Temporary, &mut attempts.trail)
            }
            Ending::Exception(exception) => Err(exception.into_system()),
            // No interceptor makes a reply, or a retry.
            Ending::Reply | Ending::Other(_, None) => Err(SystemException::internal(0, CompletionStatus::Maybe)),
        }
    }
}

/// A one-way is on its way.
fn sent() -> Ending {
    Ending::Other(interception::ReplyStatus::Successful, None)
}

fn retry() -> Ending {
    Ending::Other(interception::ReplyStatus::TransportRetry, None)
}
