//! Where a call is sent on to: another place, or the same object by another address (CORBA 3.3 Part 2, 9.4.3.1 and 9.6).
//!
//! A forwarding is remembered with the reference and forgotten when the object is no longer there; a permanent one is kept. Which
//! requests may be repeated because a connection failed is no matter of this.

use spandrel_cdr::{Decode, Ior};
use spandrel_giop::{AddressingDisposition, CompletionStatus, ReplyStatus, SystemException, SystemExceptionKind, ids};

use super::{ForwardHistory, ReplyAction, RetryState, unreadable};
use crate::{
    ObjectRef,
    client::{Reply, ReplyKind},
    object::Permanence,
};

impl ObjectRef {
    /// What becomes of a call whose reply is neither a result nor an exception of its operation.
    #[cold]
    pub(super) fn judge_unusual(
        &self,
        reply: &Reply,
        attempts: &mut RetryState,
    ) -> Result<ReplyAction, SystemException> {
        use spandrel_giop::LocateStatus;
        match reply.kind {
            ReplyKind::Reply(ReplyStatus::LocationForward) => self.follow(reply, Permanence::Temporary, attempts),
            ReplyKind::Reply(ReplyStatus::LocationForwardPerm) => self.follow(reply, Permanence::Permanent, attempts),
            ReplyKind::Reply(ReplyStatus::SystemException) => {
                let exception = self.system_exception(reply);
                // A forwarded object that is gone may have moved again: its home knows.
                if gone(&exception) && self.go_home(attempts) { Ok(ReplyAction::AskAgain) } else { Err(exception) }
            }
            ReplyKind::Reply(ReplyStatus::NeedsAddressingMode)
            | ReplyKind::Locate(LocateStatus::LocNeedsAddressingMode) => self.readdress_as_asked(reply, attempts),
            _ => Ok(ReplyAction::Answer),
        }
    }

    fn follow(
        &self,
        reply: &Reply,
        permanence: Permanence,
        attempts: &mut RetryState,
    ) -> Result<ReplyAction, SystemException> {
        self.may_rebind(attempts)?;
        let ior = Ior::decode(&mut self.results(reply))
            .map_err(|error| unreadable("LOCATION_FORWARD", error, CompletionStatus::No))?;
        self.forward_along(&ior, permanence, &mut attempts.history)?;
        self.orb().statistics().forwarded();
        Ok(ReplyAction::AskAgain)
    }

    /// Goes where a reply or an interceptor says, unless that leads in a circle.
    pub(crate) fn forward_along(
        &self,
        ior: &Ior,
        permanence: Permanence,
        history: &mut ForwardHistory,
    ) -> Result<(), SystemException> {
        history.lead(|| self.ior(), ior)?;
        self.forward(ior, permanence)
    }

    /// Binds the reference, or binds it again, whatever its rebind policy says (`_validate_connection`, 8.3.10): asks where the object
    /// is, and follows it there. The answer is whether calls can go by the policies in force, and which of them contradict
    /// those of the server. No policy that this ORB obeys can.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if there is no such object; the system exception that ended the question.
    pub fn validate_connection(&self) -> Result<(bool, Vec<crate::Policy>), SystemException> {
        self.note_bound(false);
        let mut history = ForwardHistory::default();
        loop {
            match self.locate()? {
                crate::Located::Here => return Ok((true, Vec::new())),
                crate::Located::Forward(ior) => self.forward_along(&ior, Permanence::Temporary, &mut history)?,
                crate::Located::ForwardPermanently(ior) => {
                    self.forward_along(&ior, Permanence::Permanent, &mut history)?;
                }
                // Where it was forwarded to it is no more; its home knows whether it has moved again.
                crate::Located::Unknown if self.forget_forward() => {}
                crate::Located::Unknown => {
                    return Err(SystemException::object_not_exist(0, CompletionStatus::No)
                        .with_detail("the server knows no such object"));
                }
            }
        }
    }

    /// The server wants to be told in another way which object is meant; it is, from now on.
    fn readdress_as_asked(&self, reply: &Reply, attempts: &mut RetryState) -> Result<ReplyAction, SystemException> {
        let asked = AddressingDisposition::decode(&mut self.results(reply))
            .map_err(|error| unreadable("NEEDS_ADDRESSING_MODE", error, CompletionStatus::No))?;
        if !attempts.history.readdress() || !self.readdress(asked)? {
            return Err(SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, CompletionStatus::No)
                .with_detail(|| format!("the server asks again and again to be addressed by {asked}")));
        }
        tracing::debug!(%asked, "addressing the object as its server asks");
        Ok(ReplyAction::AskAgain)
    }

    /// Forgets a forwarding, once per call; false if there was none to forget.
    pub(super) fn go_home(&self, attempts: &mut RetryState) -> bool {
        let goes = self.may_rebind(attempts).is_ok()
            && self.forget_forward()
            && !std::mem::replace(&mut attempts.went_home, true);
        if goes {
            self.orb().statistics().rebound();
        }
        goes
    }
}

/// True if the object, or the way to it, is no longer where it was.
fn gone(exception: &SystemException) -> bool {
    exception.kind() == SystemExceptionKind::ObjectNotExist && exception.completed() == CompletionStatus::No
}
